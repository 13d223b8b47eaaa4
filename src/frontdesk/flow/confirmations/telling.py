"""Telling people: what is asked, all of it or where all of it is, and what became of it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from frontdesk.contracts.channels import Capabilities, Channel
from frontdesk.contracts.clock import Clock
from frontdesk.formats import actions, quoting
from frontdesk.model import deliveries, lanes
from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.model.deliveries import Delivery
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.sources import SessionSource

FIRST = ("telegram", "discord")
"""Platforms that are tried before any other."""
LONGEST_CHARACTERS = 4_000
MOST_RENDERED_BYTES = 16 * 1024
"""What is longer fits into no message: it is not even tried."""
FRAME_CHARACTERS = 1_000
PROSE_CHARACTERS = 500
"""Kept free for what stands around the action."""
CONFIRMATION, DIGEST = "confirmation", "digest"
"""In a delivery's extra: what a decision made with its buttons is about."""

ASKED = """{who} wants to do this, and waits for somebody to allow it:

{shown}

{prose}
Decide with /approve {id} or /deny {id} REASON until {end:%H:%M} UTC."""
LINK = "\nOr see it and decide here; the link is for you alone: {link}"
TOO_LONG = "It is too long for this chat. See all of it before you decide: {where}"
ERASED = "(what it was about has been erased)"
NO_PAGE = "frontdesk confirm show {id}"
ENDED = {
    Status.APPROVED: "{id} ({action}) was approved by {by}.",
    Status.DENIED: "{id} ({action}) was denied by {by}.",
    Status.EXPIRED: "{id} ({action}) was not decided in time, and is refused.",
}

MakeLink = Callable[[Confirmation], str]
Channels = Mapping[tuple[str, str | None], Channel]


def _rank(platform: str) -> int:
    return FIRST.index(platform) if platform in FIRST else len(FIRST)


def _decider(asked: Confirmation) -> str:
    """Who decided, and beside that what they want to be called."""
    by = quoting.clean_text(asked.resolved_by or "somebody")
    return f"{by} ({quoting.quote(asked.resolved_as)})" if asked.resolved_as else by


class Telling:
    """Who is told of a request that no chat brought: the home channel of the first platform that has one."""

    def __init__(self, channels: Channels, config: GatewayConfig, clock: Clock, page_url: str | None) -> None:
        self._channels = channels
        self._config = config
        self._clock = clock
        self._page_url = page_url
        self._link: MakeLink | None = None

    def offer_links(self, make: MakeLink) -> None:
        """From now on home channels get a link, with which whoever has them decides without signing in."""
        self._link = make

    def __call__(self, asked: Confirmation) -> Sequence[Delivery]:
        return [self._to(home, asked, self._offered(asked)) for home in self._homes()[:1]]

    def _offered(self, asked: Confirmation) -> str:
        return LINK.format(link=self._link(asked)) if self._link and asked.status is Status.PENDING else ""

    def after(self, failed: Delivery, asked: Confirmation) -> Sequence[Delivery]:
        """For the next home channel, when one did not take the message."""
        homes = self._homes()
        places = [lanes.chat_lane(home) for home in homes]
        found = places.index(failed.lane) + 1 if failed.lane in places else len(places)
        return [self._to(home, asked, self._offered(asked)) for home in homes[found : found + 1]]

    def _homes(self) -> list[SessionSource]:
        """In the order in which they are tried."""
        ranked = sorted(self._channels, key=lambda each: (_rank(each[0]), each[0], each[1] or ""))
        homes = [(account, self._config.get_home_channel(platform)) for platform, account in ranked]
        return [
            SessionSource(platform=home.platform, chat_id=home.chat_id, account=account)
            for account, home in homes
            if home
        ]

    def in_chat(self, place: SessionSource, asked: Confirmation) -> Sequence[Delivery]:
        """What the chat is told that a request came from, where people read more than answers."""
        at_home = lanes.chat_lane(place) in map(lanes.chat_lane, self._homes()[:1])
        return () if at_home or not self._capabilities(place).notices else (self._to(place, asked),)

    def _capabilities(self, place: SessionSource) -> Capabilities:
        channel = self._channels.get((str(place.platform), place.account))
        return channel.capabilities if channel else Capabilities()

    def _to(self, place: SessionSource, asked: Confirmation, offered: str = "") -> Delivery:
        """The same state of the same request is told once."""
        capabilities = self._capabilities(place)
        lane = lanes.chat_lane(place, collects=capabilities.collects)
        passed = asked.terms.is_escalated(self._clock.now() - asked.created_at)
        told = f"{asked.id}:{asked.status}:{len(asked.approvals)}:{passed}:{lane}"
        return Delivery(
            id=f"d_{hashlib.sha256(told.encode()).hexdigest()[:16]}",
            kind=deliveries.Kind.NOTICE,
            lane=lane,
            to=place,
            text=self.text(asked, capabilities.text_limit) + offered,
            final=False,
            turn_id=asked.turn_id,
            session_key=asked.session_key,
            extra={CONFIRMATION: asked.id, DIGEST: asked.digest} if asked.status is Status.PENDING else {},
            created_at=self._clock.now(),
        )

    def text(self, asked: Confirmation, limit: int | None = None) -> str:
        names = {"id": asked.id, "action": quoting.clean_text(asked.action)}
        if asked.status is not Status.PENDING:
            return ENDED[asked.status].format(**names, by=_decider(asked))
        return ASKED.format(
            **names,
            who=quoting.clean_text(asked.requester),
            shown=self._shown(asked, limit),
            prose=actions.prose(asked.description, limit=PROSE_CHARACTERS),
            end=asked.expires_at,
        )

    def _shown(self, asked: Confirmation, limit: int | None) -> str:
        """All of the action, or where all of it is: nobody decides about half of it."""
        if asked.payload is None:
            return ERASED
        room = max(min(limit or LONGEST_CHARACTERS, LONGEST_CHARACTERS) - FRAME_CHARACTERS, 1)
        if len(asked.payload) <= MOST_RENDERED_BYTES:
            shown = actions.render(asked.payload, limit=room)
            if shown.whole:
                return shown.text
        where = f"{self._page_url}/approvals/{asked.id}" if self._page_url else NO_PAGE.format(id=asked.id)
        return f"{quoting.clean_text(asked.action)}\n{TOO_LONG.format(where=where)}"
