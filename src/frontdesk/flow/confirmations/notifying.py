"""Telling people: what is asked, all of it or where all of it is, and what became of it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from frontdesk.contracts.channels import Capabilities, Channel, capabilities_in
from frontdesk.contracts.clock import Clock
from frontdesk.formats import cards, precedents, quoting
from frontdesk.model import buttons, deliveries, lanes
from frontdesk.model.buttons import Decides, LiveButton
from frontdesk.model.chats import TextUnit
from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.model.deliveries import Delivery
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Turn

LONGEST_CHARACTERS = 4_000
MOST_RENDERED_BYTES = 16 * 1024
"""What is longer fits into no message: it is not even tried."""
NAME_CHARACTERS = (240, 60, 16)
"""How much of each name is told: as much as there is room for."""
CONFIRMATION, DIGEST, REPLACES = deliveries.CONFIRMATION, "digest", deliveries.REPLACES
"""In a delivery's extra: what a decision made with its buttons is about, and the message that it changes."""
HOME = "home"
"""In a delivery's extra: when it does not arrive, somebody else has to be told."""

DECIDE = "Decide with /approve {id}{target} or /deny {id} REASON until {end:%H:%M} UTC."
DENY = "Approve it where you see all of it, or refuse it with /deny {id} REASON until {end:%H:%M} UTC."
TARGET = " TARGET"
TYPED = "TARGET is {what}."
SO_FAR = "{count} of the {quorum} who have to approve it have done so.\n"
TAP = " Or react with {yes} to approve it, or with {no} to deny it."
TAP_NO = " Or react with {no} to deny it."
LINK = "\nOr see it and decide here; the link is for you alone: {link}"
TOO_LONG = "It is too long for this chat. See all of it before you decide: {where}"
SHORTEST = "{id} waits for somebody to allow it. See all of it before you decide: {where}"
REVEAL = "See what is hidden before you decide: {where}"
ERASED = "(what it was about has been erased)"
ACTION = f"{cards.ACTION}: {{action}}"
NO_PAGE = "frontdesk confirm show {id}"
REVEALING = "--reveal"
ENDED = {
    Status.APPROVED: "{id} ({action}) was approved by {by}.",
    Status.DENIED: "{id} ({action}) was denied by {by}.",
    Status.EXPIRED: "{id} ({action}) was not decided in time, and is refused.",
}
WITHDRAWN = "{id} ({action}) was withdrawn: nobody has to decide about it any more."

APPROVE_LABEL, DENY_LABEL = "Approve", "Deny"
FEWEST_BUTTONS = 2
"""A yes and a no; with fewer, there are none."""
LONGEST_CHARACTER = {TextUnit.CHARACTERS: 1, TextUnit.UTF16: 2, TextUnit.BYTES: 4}
"""How much one character can count."""

MakeLink = Callable[[Confirmation], str]
Channels = Mapping[tuple[str, str | None], Channel]


class Pressing(StrEnum):
    """How people decide besides with words: not at all where nobody knows who they are."""

    NOT = "not"
    BUTTONS = "buttons"
    SIGNS = "signs"

    @classmethod
    def of(cls, capabilities: Capabilities) -> "Pressing":
        if not capabilities.reliable_sender_ids or capabilities.collects:
            return cls.NOT
        if capabilities.most_buttons >= FEWEST_BUTTONS:
            return cls.BUTTONS
        return cls.SIGNS if capabilities.reactions else cls.NOT


class Room(NamedTuple):
    """How much a chat takes, and what can be done there beside writing."""

    characters: int = LONGEST_CHARACTERS
    unit: TextUnit = TextUnit.CHARACTERS
    wide: bool = False
    """Whether others may read there."""
    pressing: Pressing = Pressing.NOT

    @classmethod
    def of(cls, capabilities: Capabilities, *, wide: bool) -> "Room":
        limit = min(capabilities.text_limit or LONGEST_CHARACTERS, LONGEST_CHARACTERS)
        return cls(limit, capabilities.text_unit, wide, Pressing.of(capabilities))

    def without(self, *texts: str) -> int:
        """How much is left after these."""
        return self.characters - sum(map(self.unit.length, texts))

    def cut(self, text: str, most: int) -> str:
        """As much of the beginning as surely fits."""
        return text[: max(most, 0) // LONGEST_CHARACTER[self.unit]]


class Notice(NamedTuple):
    """How a request can be told."""

    who: str = ""
    words: str = ""
    """The agent's, which are left out first."""
    rest: str = ""
    whole: bool = False
    """Whether all of the action is shown."""
    by_tap: bool = False
    """Whether, besides, nothing has to be typed, so that a button can decide."""

    def fits(self, room: Room) -> bool:
        return room.without(self.who, self.rest) >= 0

    def text(self, room: Room) -> str:
        return self.who + self._words(room) + self.rest

    def _words(self, room: Room) -> str:
        """As far as there is room for some."""
        if room.without(self.who, self.rest, self.words) >= 0:
            return self.words
        kept = room.cut(self.words, room.without(self.who, self.rest, f"{quoting.ELLIPSIS}\n\n"))
        return f"{kept}{quoting.ELLIPSIS}\n\n" if len(kept) > len(cards.AGENTS_WORDS) else ""


def _buttons(asked: Confirmation, pressing: Pressing, *, by_tap: bool) -> tuple[LiveButton, ...]:
    """A no, and a yes to what can be decided without typing anything."""
    if pressing is Pressing.NOT or asked.status is not Status.PENDING or asked.terms.needs_reason:
        return ()
    signs = pressing is Pressing.SIGNS
    offered = [(APPROVE_LABEL, buttons.APPROVE_SIGN, True)] if by_tap else []
    return tuple(
        LiveButton(
            label=label,
            token=buttons.new_token(),
            sign=sign if signs else None,
            does=Decides(confirmation_id=asked.id, digest=asked.digest, approves=approves),
            until=asked.expires_at,
        )
        for label, sign, approves in [*offered, (DENY_LABEL, buttons.DENY_SIGN, False)]
    )


def _first_within(room: Room, notices: Iterable[Notice]) -> Notice:
    """The first that fits without the agent's words, else the last, which is the shortest."""
    notice = Notice()
    for notice in notices:
        if notice.fits(room):
            break
    return notice


def _ended(asked: Confirmation, most: int) -> str:
    """What became of it: who decided, and beside that what they want to be called."""
    by = quoting.shown_id(asked.resolved_by or "", most) or "somebody"
    if asked.resolved_as:
        by = f"{by} ({quoting.quote_name(asked.resolved_as, most)})"
    text = WITHDRAWN if asked.is_withdrawn else ENDED[asked.status]
    return text.format(id=asked.id, action=quoting.quote_within(asked.action, most), by=by)


def card_of(asked: Confirmation, *, wide: bool = False, reveal: bool = False) -> cards.Card | None:
    """What a chat shows of it, widely masked where others read along; None when it was erased."""
    card = precedents.card_of(asked, wide=wide, reveal=reveal)
    return card and replace(card, comparison=())


def _asked_by(asked: Confirmation, most: int) -> str:
    asked_by = cards.ASKED_BY.format(requester=quoting.quote_within(asked.requester, most))
    person = precedents.person_of(asked, most)
    return f"{asked_by}\n{cards.ON_BEHALF.format(person=person)}" if person else asked_by


def _question(asked: Confirmation, card: cards.Card, pressing: Pressing) -> str:
    """How to decide. What is hidden in this chat is not approved in it."""
    if card.hidden:
        return _deny(asked, pressing)
    target = TARGET if card.typed else ""
    typed = f" {TYPED.format(what=card.typed.what)}" if card.typed else ""
    tap = _tap(asked, pressing, TAP_NO if card.typed else TAP)
    return _so_far(asked) + DECIDE.format(id=asked.id, target=target, end=asked.expires_at) + typed + tap


def _deny(asked: Confirmation, pressing: Pressing) -> str:
    return _so_far(asked) + DENY.format(id=asked.id, end=asked.expires_at) + _tap(asked, pressing, TAP_NO)


def _so_far(asked: Confirmation) -> str:
    """What people see of the votes of others, where it takes several."""
    count = len(asked.approvals)
    return SO_FAR.format(count=count, quorum=asked.terms.quorum) if count else ""


def _tap(asked: Confirmation, pressing: Pressing, text: str) -> str:
    """Which sign means what, where signs decide."""
    if pressing is not Pressing.SIGNS or asked.terms.needs_reason:
        return ""
    return text.format(yes=buttons.APPROVE_SIGN, no=buttons.DENY_SIGN)


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

    def __call__(self, asked: Confirmation, shown: Sequence[Delivery] = ()) -> Sequence[Delivery]:
        """Messages that show it as it was are changed; a home that has none of them gets one of its own."""
        changed = [self._changed(card, asked) for card in shown if self._capabilities(card.to).edits]
        lanes_told = {each.lane for each in changed}
        homes = [home for home in self._homes()[:1] if self._lane(home) not in lanes_told]
        return [*changed, *[self._at_home(home, asked) for home in homes]]

    def _changed(self, card: Delivery, asked: Confirmation) -> Delivery:
        make = self._link if HOME in card.extra and asked.status is Status.PENDING else None
        link = LINK.format(link=make(asked)) if make else ""
        return self._to(card.to, asked, link=link, card=card)

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
            SessionSource(
                platform=home.platform, chat_id=home.chat_id, thread_id=home.thread_id, account=account
            )
            for home, account in named
            if home
        ]
        return sorted(homes, key=lambda at: (at.platform.facts.telling_rank, at.platform, at.account or ""))

    def in_chat(self, turn: Turn, asked: Confirmation, shown: Sequence[Delivery] = ()) -> Sequence[Delivery]:
        """What the chat is told whose turn asks, where people read more than answers, and no message there is
        changed. Without any home it stands in for one."""
        place, homes = turn.source, self._homes()
        capabilities, lane = self._capabilities(place), self._lane(place)
        at_home = lane in map(self._lane, homes[:1])
        if at_home or not capabilities.notices:
            return ()
        if capabilities.edits and lane in [card.lane for card in shown]:
            return ()
        return (replace(self._to(place, asked, home=not homes), event_id=turn.event_id),)

    def _capabilities(self, place: SessionSource) -> Capabilities:
        channel = self._channels.get((str(place.platform), place.account))
        return capabilities_in(channel, place) if channel else Capabilities()

    def _lane(self, place: SessionSource) -> str:
        return lanes.chat_lane(place, collects=self._capabilities(place).collects)

    def _to(
        self,
        place: SessionSource,
        asked: Confirmation,
        *,
        link: str = "",
        home: bool = False,
        card: Delivery | None = None,
    ) -> Delivery:
        """The same state of the same request is told once; in the place of a message that is there."""
        lane = self._lane(place)
        passed = asked.terms.is_escalated(self._clock.now() - asked.created_at)
        told = f"{asked.id}:{asked.status}:{len(asked.approvals)}:{passed}:{lane}"
        room = self._room(place)
        notice = self._notice(asked, room, link)
        about = {CONFIRMATION: asked.id} | ({HOME: True} if home else {})
        about |= {DIGEST: asked.digest} if notice.by_tap else {}
        about = about if asked.status is Status.PENDING else {}
        if card:
            told, about = f"{told}:{card.id}", about | {REPLACES: card.id}
        return Delivery(
            id=f"d_{hashlib.sha256(told.encode()).hexdigest()[:16]}",
            kind=deliveries.DeliveryKind.NOTICE,
            lane=lane,
            to=place,
            text=notice.text(room),
            final=False,
            turn_id=asked.turn_id,
            session_key=asked.session_key,
            event_id=card.event_id if card else None,
            extra=about,
            buttons=_buttons(asked, room.pressing, by_tap=notice.by_tap),
            created_at=self._clock.now(),
        )

    def is_wide(self, place: SessionSource) -> bool:
        """Whether others may read there: in a group, and in a home channel, of which nobody knows."""
        return place.others_read or self._lane(place) in map(self._lane, self._homes())

    def is_whole(self, asked: Confirmation, place: SessionSource) -> bool:
        """Whether that chat shows all of the action, so that it can be approved there."""
        return self._notice(asked, self._room(place), "").whole

    def _room(self, place: SessionSource) -> Room:
        return Room.of(self._capabilities(place), wide=self.is_wide(place))

    def ended(self, asked: Confirmation, place: SessionSource) -> str:
        """What that chat is told of a request that was decided, or is over."""
        room = self._room(place)
        return self._notice(asked, room, "").text(room)

    def text(
        self, asked: Confirmation, limit: int | None = None, link: str = "", *, wide: bool = False
    ) -> str:
        """What is told of a request in so many characters. Of what is asked: the action, all of it or where
        all of it is, and how to decide; then the link, longer names, and before them all the agent's words,
        each as far as there is room."""
        room = Room.of(Capabilities(text_limit=limit), wide=wide)
        return self._notice(asked, room, link).text(room)

    def _notice(self, asked: Confirmation, room: Room, link: str) -> Notice:
        if asked.status is not Status.PENDING:
            return _first_within(room, [Notice(rest=_ended(asked, most)) for most in NAME_CHARACTERS])
        return _first_within(room, self._forms(asked, link, room))

    def _forms(self, asked: Confirmation, link: str, room: Room) -> Iterator[Notice]:
        """How it can be told, the best first: nobody decides about half of the action, or about what they
        have not seen."""
        places = self.places_of(asked)
        ends = (link, "") if link else ("",)
        if len(asked.payload or b"") <= MOST_RENDERED_BYTES and (card := card_of(asked, wide=room.wide)):
            how = REVEAL.format(where=" or ".join([*places[:-1], f"{places[-1]} {REVEALING}"]))
            parts = (
                card.oddities(how),
                card.arguments(),
                f"{card.closing()}\n{_question(asked, card, room.pressing)}",
            )
            rest = "\n\n".join(part for part in parts if part)
            words = f"{card.words_said(places[0])}\n\n" if card.words else ""
            for end, most in product(ends, NAME_CHARACTERS):
                who, whole = f"{_asked_by(asked, most)}\n", not card.hidden
                by_tap = whole and card.typed is None and not asked.terms.needs_reason
                yield Notice(who, words or "\n", rest + end, whole, by_tap)
        for where, end, most in product(places, ends, NAME_CHARACTERS):
            shown = ERASED if asked.payload is None else TOO_LONG.format(where=where)
            action = ACTION.format(action=quoting.quote_within(asked.action, most))
            deny = _deny(asked, room.pressing)
            yield Notice(f"{_asked_by(asked, most)}\n\n{shown}\n", "", f"{action}\n{deny}{end}")
        for where in places:
            yield Notice(rest=SHORTEST.format(id=asked.id, where=where))

    def places_of(self, asked: Confirmation) -> list[str]:
        """Where all of it is shown."""
        page = [f"{self._page_url}/approvals/{asked.id}"] if self._page_url else []
        return [*page, NO_PAGE.format(id=asked.id)]
