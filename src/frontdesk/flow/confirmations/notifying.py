"""Telling people: what is asked, all of it or where all of it is, and what became of it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec.structs import replace

from frontdesk.contracts.channels import Capabilities, Channel
from frontdesk.contracts.clock import Clock
from frontdesk.formats import actions, quoting
from frontdesk.model import deliveries, lanes
from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.model.deliveries import Delivery
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn

LONGEST_CHARACTERS = 4_000
MOST_RENDERED_BYTES = 16 * 1024
"""What is longer fits into no message: it is not even tried."""
PROSE_CHARACTERS = 500
NAME_CHARACTERS = (240, 60, 16)
"""How much of each name is told: as much as there is room for."""
CONFIRMATION, DIGEST = deliveries.CONFIRMATION, "digest"
"""In a delivery's extra: what a decision made with its buttons is about."""
HOME = "home"
"""In a delivery's extra: when it does not arrive, somebody else has to be told."""

ASKED = """{who} wants to do this, and waits for somebody to allow it:

{shown}

"""
DECIDE = "Decide with /approve {id} or /deny {id} REASON until {end:%H:%M} UTC."
LINK = "\nOr see it and decide here; the link is for you alone: {link}"
TOO_LONG = "action: {action}\nIt is too long for this chat. See all of it before you decide: {where}"
SHORTEST = "{id} waits for somebody to allow it. See all of it before you decide: {where}"
REVEAL = "See them before you decide: {where}"
ERASED = "(what it was about has been erased)"
NO_PAGE = "frontdesk confirm show {id}"
REVEALING = "--reveal"
ENDED = {
    Status.APPROVED: "{id} ({action}) was approved by {by}.",
    Status.DENIED: "{id} ({action}) was denied by {by}.",
    Status.EXPIRED: "{id} ({action}) was not decided in time, and is refused.",
}
WITHDRAWN = "{id} ({action}) was withdrawn: nobody has to decide about it any more."

MakeLink = Callable[[Confirmation], str]
Form = tuple[str, str]
"""What stands before the agent's words, and after them."""
Channels = Mapping[tuple[str, str | None], Channel]


def _first_within(room: int, forms: Iterable[Form]) -> Form:
    """The first that fits, else the last, which is the shortest."""
    form = ("", "")
    for form in forms:
        if len(form[0]) + len(form[1]) <= room:
            break
    return form


def _whole(asked: Confirmation, room: int, places: Iterable[str]) -> str | None:
    """All of the action, and that something of it is hidden; None when there is no room for it."""
    if asked.payload is None:
        return ERASED
    if len(asked.payload) > MOST_RENDERED_BYTES:
        return None
    shown = actions.render(asked.payload, limit=room)
    if not shown.whole:
        return None
    where = f" {REVEAL.format(where=' or '.join(places))}" if shown.hidden else ""
    return "\n\n".join(part for part in (shown.text, shown.note + where) if part)


def _asked(asked: Confirmation, shown: str, most: int) -> str:
    return ASKED.format(who=quoting.one_line(asked.requester, most), shown=shown)


def _ended(asked: Confirmation, most: int) -> str:
    """What became of it: who decided, and beside that what they want to be called."""
    by = quoting.one_line(asked.resolved_by or "", most) or "somebody"
    if asked.resolved_as:
        by = f"{by} ({quoting.quote_within(asked.resolved_as, most)})"
    text = WITHDRAWN if asked.is_withdrawn else ENDED[asked.status]
    return text.format(id=asked.id, action=quoting.one_line(asked.action, most), by=by)


def _words(description: str, room: int) -> str:
    """The agent's words, as lines of their own, as far as there is room for some."""
    words = actions.prose(description, limit=PROSE_CHARACTERS)
    if len(words) < room:
        return f"{words}\n"
    kept = words[: max(room - len(quoting.ELLIPSIS) - 1, 0)]
    return f"{kept}{quoting.ELLIPSIS}\n" if len(kept) > len(actions.AGENTS_WORDS) else ""


class Notifier:
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
        return [self._at_home(home, asked) for home in self._homes()[:1]]

    def _at_home(self, home: SessionSource, asked: Confirmation) -> Delivery:
        make = self._link if asked.status is Status.PENDING else None
        return self._to(home, asked, link=LINK.format(link=make(asked)) if make else "", home=True)

    def after(self, failed: Delivery, asked: Confirmation) -> Sequence[Delivery]:
        """For the next home channel, when one did not take the message."""
        homes = self._homes()
        places = [*map(self._lane, homes)]
        found = places.index(failed.lane) + 1 if failed.lane in places else len(places)
        return [self._at_home(home, asked) for home in homes[found : found + 1]]

    def _homes(self) -> list[SessionSource]:
        """In the order in which they are tried."""
        named = [(self._config.get_home_channel(name), account) for name, account in self._channels]
        homes = [
            SessionSource(platform=home.platform, chat_id=home.chat_id, account=account)
            for home, account in named
            if home
        ]
        return sorted(homes, key=lambda at: (at.platform.facts.telling_rank, at.platform, at.account or ""))

    def in_chat(self, turn: Turn, asked: Confirmation) -> Sequence[Delivery]:
        """What the chat is told whose turn asks, where people read more than answers. Without any home it
        stands in for one."""
        place, homes = turn.source, self._homes()
        at_home = self._lane(place) in map(self._lane, homes[:1])
        if at_home or not self._capabilities(place).notices:
            return ()
        return (replace(self._to(place, asked, home=not homes), event_id=turn.event_id),)

    def _capabilities(self, place: SessionSource) -> Capabilities:
        channel = self._channels.get((str(place.platform), place.account))
        return channel.capabilities if channel else Capabilities()

    def _lane(self, place: SessionSource) -> str:
        return lanes.chat_lane(place, collects=self._capabilities(place).collects)

    def _to(self, place: SessionSource, asked: Confirmation, *, link: str = "", home: bool) -> Delivery:
        """The same state of the same request is told once."""
        lane = self._lane(place)
        passed = asked.terms.is_escalated(self._clock.now() - asked.created_at)
        told = f"{asked.id}:{asked.status}:{len(asked.approvals)}:{passed}:{lane}"
        about = {CONFIRMATION: asked.id, DIGEST: asked.digest} | ({HOME: True} if home else {})
        return Delivery(
            id=f"d_{hashlib.sha256(told.encode()).hexdigest()[:16]}",
            kind=deliveries.DeliveryKind.NOTICE,
            lane=lane,
            to=place,
            text=self.text(asked, self._capabilities(place).text_limit, link),
            final=False,
            turn_id=asked.turn_id,
            session_key=asked.session_key,
            extra=about if asked.status is Status.PENDING else {},
            created_at=self._clock.now(),
        )

    def text(self, asked: Confirmation, limit: int | None = None, link: str = "") -> str:
        """What is told of a request in so many characters. Of what is asked: all of the action, or where all
        of it is; then the link, longer names, and the agent's words, each as far as there is room."""
        room = min(limit or LONGEST_CHARACTERS, LONGEST_CHARACTERS)
        if asked.status is not Status.PENDING:
            return _first_within(room, [("", _ended(asked, most)) for most in NAME_CHARACTERS])[1]
        before, after = _first_within(room, self._forms(asked, room, link))
        words = _words(asked.description, room - len(before) - len(after)) if before else ""
        return before + words + after

    def _forms(self, asked: Confirmation, room: int, link: str) -> Iterator[Form]:
        """How it can be told, the best first: nobody decides about half of the action."""
        decide = DECIDE.format(id=asked.id, end=asked.expires_at)
        places = self._places(asked)
        whole = _whole(asked, room, [*places[:-1], f"{places[-1]} {REVEALING}"])
        for end, most in product((decide + link, decide), NAME_CHARACTERS):
            if whole is not None:
                yield _asked(asked, whole, most), end
        for where, end, most in product(places, (decide + link, decide), NAME_CHARACTERS):
            shown = TOO_LONG.format(action=quoting.quote_within(asked.action, most), where=where)
            yield _asked(asked, shown, most), end
        for where in places:
            yield "", SHORTEST.format(id=asked.id, where=where)

    def _places(self, asked: Confirmation) -> list[str]:
        """Where all of it is shown."""
        page = [f"{self._page_url}/approvals/{asked.id}"] if self._page_url else []
        return [*page, NO_PAGE.format(id=asked.id)]
