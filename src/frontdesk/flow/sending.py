"""Sending what answers nobody: to where it came from, to a home channel, to any chat; through the outbox."""

import hashlib
from collections.abc import Mapping

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.channels import Channel, capabilities_in
from frontdesk.contracts.clock import Clock
from frontdesk.flow.parts import Parts
from frontdesk.formats.markdown import splitting
from frontdesk.model import destinations, events, lanes, routing
from frontdesk.model.deliveries import Delivery
from frontdesk.model.destinations import Destination
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn

MOST_CHARACTERS = 100_000
"""Of one message; what is longer is no message for people."""
MOST_IN_A_TURN = 20
AGENT = "The agent"
ELSEWHERE = "it may send to its own chat, to home channels, and where gateway.send_to says; not to {to}"

Channels = Mapping[tuple[str, str | None], Channel]


class Outlets:
    """The chats that a gateway reaches."""

    def __init__(self, channels: Channels, config: GatewayConfig, clock: Clock) -> None:
        self._channels = channels
        self._config = config
        self._clock = clock

    def find(self, to: str, origin: SessionSource | None = None) -> SessionSource:
        """The chat that is meant; UnknownDestination when there is none, or nobody would ever see it."""
        place = self._place(destinations.parse(to), origin)
        channel = self._channels.get((str(place.platform), place.account))
        if channel is None:
            raise errors.UnknownDestination(to=to, why=self._not_connected(place))
        if channel.capabilities.collects and not channel.capabilities.notices:
            why = f"{place.platform} gives answers to requests alone"
            raise errors.UnknownDestination(to=to, why=why)
        return place

    def find_for_agent(self, to: str, origin: SessionSource, allowed: tuple[str, ...]) -> SessionSource:
        """The chat that an agent means; NotAllowed for one where it has nothing to say."""
        place = self.find(to, origin)
        own = map(lanes.chat_lane, (origin, *self._homes_near(origin)))
        listed = self._is_of_one_profile(place, origin) and any(self._lists(each, place) for each in allowed)
        if lanes.chat_lane(place) not in own and not listed:
            raise errors.NotAllowed(who=AGENT, rule=ELSEWHERE.format(to=to))
        return place

    def homes_near(self, origin: SessionSource) -> list[str]:
        """The platforms whose home channel an agent may send to."""
        return list(dict.fromkeys(str(each.platform) for each in self._homes_near(origin)))

    def listed_near(self, origin: SessionSource, allowed: tuple[str, ...]) -> list[str]:
        """Of the chats that agents may send to, those of the same profile."""
        return [each for each in allowed if self._is_listed_near(destinations.parse(each), origin)]

    def _is_listed_near(self, entry: Destination, origin: SessionSource) -> bool:
        return self._is_of_one_profile(_of(entry, self._account(entry, None)), origin)

    def _homes_near(self, origin: SessionSource) -> list[SessionSource]:
        homes = filter(None, (self._home(platform, account) for platform, account in self._channels))
        return [each for each in homes if self._is_of_one_profile(each, origin)]

    def _lists(self, allowed: str, place: SessionSource) -> bool:
        entry = destinations.parse(allowed)
        return replace(entry, account=self._account(entry, None)).covers(place)

    def _place(self, meant: Destination, origin: SessionSource | None) -> SessionSource:
        if meant.platform is None:
            if origin is None:
                raise errors.UnknownDestination(to=meant.text, why="there is none here; name a session")
            return replace(origin, message_id=None)
        account = self._account(meant, origin)
        if meant.chat_id is None:
            home = self._home(meant.platform, account)
            if home is None:
                why = (
                    f"{meant.platform} has no home channel (platforms.{meant.platform}.home_channel.chat_id)"
                )
                raise errors.UnknownDestination(to=meant.text, why=why)
            return home
        chat = SessionSource(
            platform=meant.platform, account=account, chat_id=meant.chat_id, thread_id=meant.thread_id
        )
        known = origin and lanes.chat_lane(origin) == lanes.chat_lane(chat)
        return replace(origin, message_id=None) if origin and known else chat

    def _home(self, platform: str, account: str | None) -> SessionSource | None:
        home = self._config.get_home_channel(platform)
        if home is None:
            return None
        return SessionSource(
            platform=home.platform, chat_id=home.chat_id, thread_id=home.thread_id, account=account
        )

    def _account(self, meant: Destination, origin: SessionSource | None) -> str | None:
        """The one that is named; else that of the origin; else, of its profile if there are any, that without
        a name or that which stands first."""
        if meant.account is None and origin and origin.platform is meant.platform:
            return origin.account
        named = [account for name, account in self._channels if name == meant.platform]
        if meant.account or not named:
            return meant.account
        near = [each for each in named if origin and self._is_of_one_profile(_of(meant, each), origin)]
        return None if None in (near or named) else (near or named)[0]

    def _is_of_one_profile(self, place: SessionSource, origin: SessionSource) -> bool:
        """Whether what is written there is dealt with by the same profile: an agent speaks through no account
        of another one."""
        if not self._config.profiles:
            return True
        theirs, ours = self._config.profile_of(place)[0], self._config.profile_of(origin)[0]
        return routing.named(theirs) == routing.named(ours)

    def _not_connected(self, place: SessionSource) -> str:
        there = [account for name, account in self._channels if name == place.platform]
        if place.account and there:
            known = ", ".join(account or "one without a name" for account in there)
            return f"{place.platform} has no account {place.account!r}; there is {known}"
        return f"no channel is connected for {place.platform}"

    def write(
        self,
        place: SessionSource,
        text: str,
        key: str,
        *,
        is_markdown: bool = False,
        session_id: str | None = None,
    ) -> list[Delivery]:
        """The text as the chat takes it, in as many pieces as its limit asks for. The same key to the same
        chat is the same message."""
        _check_text(text)
        capabilities = capabilities_in(self._channels[(str(place.platform), place.account)], place)
        lane = lanes.chat_lane(place, collects=capabilities.collects)
        first = f"d_{hashlib.sha256(f'{lane} {key}'.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        limit, unit = capabilities.text_limit, capabilities.text_unit
        pieces = splitting.split(text, limit, unit, is_markdown=is_markdown)
        return [
            Delivery(
                id=first if number == 1 else f"{first}-{number}",
                lane=lane,
                to=place,
                text=piece,
                is_markdown=is_markdown,
                final=number == len(pieces),
                session_id=session_id,
                created_at=self._clock.now(),
            )
            for number, piece in enumerate(pieces, 1)
        ]


def _of(meant: Destination, account: str | None) -> SessionSource:
    assert meant.platform
    return SessionSource(platform=meant.platform, account=account, chat_id=meant.chat_id or "")


def _check_text(text: str) -> None:
    if not text.strip():
        raise errors.InvalidInput(what="The text", why="it is empty")
    if len(text) > MOST_CHARACTERS:
        raise errors.InvalidInput(what="The text", why=f"it has more than {MOST_CHARACTERS} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise errors.InvalidInput(what="The text", why="it is no valid Unicode") from None


def chats_for_agent(parts: Parts, origin: SessionSource) -> tuple[str, ...]:
    """Where an agent may send besides its own chat: home channels, and what the settings name."""
    outlets = _outlets(parts)
    return (*outlets.homes_near(origin), *outlets.listed_near(origin, parts.running.send_to))


def _outlets(parts: Parts) -> Outlets:
    return Outlets(parts.channels, parts.conversations.config, parts.clock)


def write_for_agent(
    parts: Parts, turn: Turn, wish: events.Send, number: int, session_id: str
) -> list[Delivery]:
    """What an agent sends besides its answer, if it may; the same for every attempt at the turn. It is no
    answer to the turn's message, so it does not belong to the turn."""
    if number > MOST_IN_A_TURN:
        raise errors.NotAllowed(who=AGENT, rule=f"{MOST_IN_A_TURN} messages besides the answer are enough")
    outlets = _outlets(parts)
    place = outlets.find_for_agent(wish.to, turn.source, parts.running.send_to)
    words = f"id {wish.id}" if wish.id else f"text {wish.text}"
    key = f"{turn.id} {words}"
    return outlets.write(place, wish.text, key, is_markdown=True, session_id=session_id)
