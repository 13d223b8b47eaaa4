"""What the pages for approvers show, as values for their templates."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from frontdesk.app.office.listing import SessionRow
from frontdesk.formats import actions, cards, links, precedents, quoting
from frontdesk.formats.cards import Card, Oddity
from frontdesk.formats.headlines import HeadlinePart, HeadlineRole
from frontdesk.model.confirmations import (
    GRANT_SECONDS,
    MAX_TEXT_CHARACTERS,
    NAMELESS,
    STRANGER,
    Caller,
    Confirmation,
    RequesterPause,
    Status,
)
from frontdesk.web import addresses
from frontdesk.web.pages.frame import Onlooker, PagePlace
from frontdesk.web.pages.wording import say

PATH = "/approvals"
NAME_CHARACTERS = 60
REPEATED_CHARACTERS = 110
"""What is longer is repeated by what is marked in it."""
LEFT_OUT = " … "
SOON = timedelta(minutes=5)
MOST_FLAGS = 4
MOST_KEPT = 128

Values = dict[str, Any]


def home() -> str:
    """Where the pages are, as a browser asks for them."""
    return addresses.link(PATH)


class GrantUse(StrEnum):
    """What becomes of a yes."""

    NONE = "none"
    """There is none."""
    OPEN = "open"
    """It can be used still."""
    REDEEMED = "redeemed"
    LAPSED = "lapsed"
    """Nobody used it in time."""
    ERASED = "erased"
    """What it was about was erased before somebody used it."""


class Gist(msgspec.Struct, frozen=True, kw_only=True):
    """What a list tells of an action."""

    title: str
    headline: tuple[HeadlinePart, ...]
    flags: tuple[Oddity, ...]
    is_high_risk: bool


class AskingSession(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation that a request comes from."""

    name: str
    href: str


def asking(row: SessionRow) -> AskingSession:
    name = row["title"] or row["name"] or say("chat.title")
    return AskingSession(name=name, href=addresses.link(f"/sessions/{row['id']}"))


class WaitingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the list."""

    id: str
    digest: str
    gist: Gist
    requester: str
    """As it calls itself, or the conversation that asks."""
    on_behalf_of: str
    votes: str
    created_at: datetime
    expires_at: datetime
    passed_on_at: datetime | None
    is_soon: bool

    @property
    def is_danger(self) -> bool:
        return any(flag.sign == cards.DANGER for flag in self.gist.flags)


Askers = Mapping[str, AskingSession]
"""The conversations that ask, by turn."""


def rows(found: Sequence[Confirmation], now: datetime, askers: Askers) -> list[WaitingRow]:
    """What waits, the worst first, and of it what ends soonest."""
    listed = (_row(asked, now, askers.get(asked.turn_id or "")) for asked in found)
    return sorted(listed, key=lambda row: (not row.is_danger, row.expires_at))


def waiting(
    found: Sequence[Confirmation],
    pauses: Sequence[RequesterPause],
    caller: Caller,
    now: datetime,
    total: int,
    askers: Askers,
) -> Values:
    """What waits, or a page of it: the worst first there."""
    listed = rows(found, now, askers)
    groups = {
        "high_risk": [row for row in listed if row.gist.is_high_risk],
        "dangerous": [row for row in listed if row.is_danger and not row.gist.is_high_risk],
        "others": [row for row in listed if not row.is_danger and not row.gist.is_high_risk],
    }
    name = say("places.approvals")
    return {
        **_frame(caller, now),
        "title": f"({total}) {name}" if total else name,
        "count": total,
        "groups": [(name, each) for name, each in groups.items() if each],
        "pauses": [(pause, _paused(pause)) for pause in pauses],
        "state": " ".join(
            (
                str(total),
                *(f"{asked.id}:{len(asked.approvals)}" for asked in found),
                *(f"{pause.paused_at.timestamp()}:{pause.denials}" for pause in pauses),
            )
        ),
    }


def _paused(pause: RequesterPause) -> str:
    return NAMELESS if pause.requester == STRANGER else quoting.one_line(pause.requester)


def request(
    asked: Confirmation,
    card: Card | None,
    caller: Caller,
    now: datetime,
    *,
    link: str | None,
    obstacle: str | None,
) -> Values:
    """One request, whole, and how to decide where the one who looks may."""
    is_pending = asked.status is Status.PENDING
    through = f"?{links.PARAMETER}={link}" if link else ""
    is_command = card is not None and any(each.name == cards.COMMAND for each in card.matters)
    values = {
        **_frame(caller, now, is_signed_in=link is None),
        "title": _title(asked, card),
        "asked": asked,
        "is_pending": is_pending,
        "card": card,
        "link": link,
        "obstacle": obstacle,
        "question": say("approvals.run_it") if is_command else say("approvals.allow_it"),
        "ask": say("approvals.run") if is_command else say("approvals.allow"),
        "requester": quoting.one_line(asked.requester),
        "asker": None,
        "on_behalf_of": precedents.person_of(asked),
        "session_key": quoting.one_line(asked.session_key or ""),
        "votes": votes(asked) if asked.terms.quorum > 1 else "",
        "passed_on_at": _passed_on_at(asked, now),
        "most_characters": MAX_TEXT_CHARACTERS,
        "events": f"{home()}/{asked.id}/events{through}" if can_change(asked, now) else None,
        "state": f"{asked.status} {len(asked.approvals)} {use_of(asked, now)} {obstacle}",
    }
    values |= _decided(asked, now) if not is_pending else {}
    return values | (_about(asked, card, obstacle) if card else {"gone": _gone(asked)})


def repeated(headline: Sequence[HeadlinePart]) -> tuple[HeadlinePart, ...]:
    """The action once more, right above the buttons; of a long one what is marked."""
    if sum(len(part.text) for part in headline) <= REPEATED_CHARACTERS:
        return tuple(headline)
    return tuple(_marked(headline)) or tuple(headline)


def outcome(asked: Confirmation) -> str:
    """What a decision has led to."""
    if asked.status is Status.PENDING:
        return say("approvals.your_yes", votes=votes(asked))
    return say(f"approval_outcomes.{asked.status}", seconds=GRANT_SECONDS)


def votes(asked: Confirmation) -> str:
    return say("approvals.votes", count=len(asked.approvals), of=asked.terms.quorum)


def _frame(caller: Caller, now: datetime, *, is_signed_in: bool = True) -> Values:
    """What surrounds every page."""
    place = PagePlace(name=say("places.approvals"), path=home(), picture="check", is_here=True)
    who = Onlooker(id=caller.id, name=caller.id, is_signed_in=is_signed_in)
    return {
        "home": home(),
        "inbox": home(),
        "events": f"{home()}/events",
        "places": [place],
        "who": who,
        "may_decide": True,
        "now": now,
    }


def _row(asked: Confirmation, now: datetime, asker: AskingSession | None) -> WaitingRow:
    return WaitingRow(
        id=asked.id,
        digest=asked.digest,
        gist=_gist(asked),
        requester=_name(asker.name if asker else asked.requester),
        on_behalf_of=precedents.person_of(asked) or "",
        votes=votes(asked) if asked.terms.quorum > 1 else "",
        created_at=asked.created_at,
        expires_at=asked.expires_at,
        passed_on_at=_passed_on_at(asked, now),
        is_soon=asked.expires_at - now < SOON,
    )


# Everybody who has the list open asks for it whenever something happens, and reading a long action takes a
# tenth of a second: what waits is read once.
@lru_cache(maxsize=MOST_KEPT)
def _gist(asked: Confirmation) -> Gist:
    card = precedents.card_of(asked)
    headline = repeated(card.headline) if card else _too_long(asked)
    return Gist(
        title=_shortened("".join(map(str, headline))),
        headline=headline,
        flags=tuple(_flags(card)) if card else (),
        is_high_risk=card is None or card.is_high_risk,
    )


def _too_long(asked: Confirmation) -> tuple[HeadlinePart, ...]:
    name = HeadlinePart(text=actions.spelled(asked.action), role=HeadlineRole.VERB)
    return name, HeadlinePart(text=f" {say('approvals.too_long')}", role=HeadlineRole.OURS)


def _flags(card: Card) -> Iterator[Oddity]:
    """What is unusual, in a few words each."""
    yield from card.unusual[:MOST_FLAGS]
    if card.hidden:
        count = len(card.hidden)
        label = say("approvals.hidden_values", count=count)
        yield Oddity(sign=cards.ODD, text=card.note, label=label)


def _about(asked: Confirmation, card: Card, obstacle: str | None) -> Values:
    """What the page of a request says of its action."""
    may_decide = asked.status is Status.PENDING and obstacle is None
    note = say("approvals.look") if may_decide else ""
    is_digest_typed = card.typed is not None and card.typed.argument is None
    todo = [("look", "hidden", say("approvals.todo_look"))] if card.hidden else []
    todo += [("end", "end", say("approvals.todo_end"))] if card.is_long else []
    return {
        "hidden_note": note if obstacle is None else say("approvals.they_can_see"),
        "can_reveal": obstacle is None,
        "arguments": _shortened(", ".join(card.argument_names)),
        "words_title": cards.AGENTS_WORDS,
        "unusual": [each for each in card.unusual if each.sign != cards.DIFFERS],
        "different": [each for each in card.unusual if each.sign == cards.DIFFERS],
        "repeated": repeated(card.headline),
        "is_long_headline": sum(len(part.text) for part in card.headline) > REPEATED_CHARACTERS,
        # What the headline leaves out is there without a click.
        "is_open": card.is_long
        or is_digest_typed
        or any(part.role is HeadlineRole.OURS for part in card.headline),
        "todo": todo,
    }


def _passed_on_at(asked: Confirmation, now: datetime) -> datetime | None:
    """When others may decide, too; None where nobody else will, or they may already."""
    terms = asked.terms
    waits = (party.escalate_after_seconds for party in (terms.parties or (terms,)))
    moments = (asked.created_at + timedelta(seconds=each) for each in waits if each is not None)
    return min((each for each in moments if now < each < asked.expires_at), default=None)


def _decided(asked: Confirmation, now: datetime) -> Values:
    """What was decided, by whom and why."""
    by = asked.resolved_by if asked.status is not Status.EXPIRED else None
    return {
        "standing": say("approvals.withdrawn")
        if asked.is_withdrawn
        else say(f"approval_standings.{asked.status}"),
        "decider": quoting.shown_id(by or "", MAX_TEXT_CHARACTERS),
        "decider_name": quoting.quote_name(asked.resolved_as, NAME_CHARACTERS) if asked.resolved_as else "",
        "reason": quoting.one_line(asked.reason or ""),
        "use": say(f"approval_uses.{use_of(asked, now)}", seconds=GRANT_SECONDS),
        "user": quoting.one_line(asked.redeemed_by or ""),
    }


def use_of(asked: Confirmation, now: datetime) -> GrantUse:
    """What became of it, or still can."""
    if asked.grant_until is None:
        return GrantUse.NONE
    if asked.spent:
        return GrantUse(asked.spent)
    return GrantUse.OPEN if asked.lapsed_at is None and now < asked.grant_until else GrantUse.LAPSED


def can_change(asked: Confirmation, now: datetime) -> bool:
    """Whether anything more can become of it by itself."""
    return asked.status is Status.PENDING or use_of(asked, now) is GrantUse.OPEN


def _gone(asked: Confirmation) -> str:
    if asked.was_denied_at_once:
        return say("approvals.not_kept")
    return say("approvals.erased")


def _title(asked: Confirmation, card: Card | None) -> str:
    shown = _shortened("".join(map(str, card.headline))) if card else _name(asked.action)
    return f"{shown}?" if asked.status is Status.PENDING else f"{asked.status}: {shown}"


def _name(words: str) -> str:
    """What the agent calls something, on one line of the list."""
    return quoting.one_line(words)[:NAME_CHARACTERS]


def _shortened(text: str) -> str:
    return text if len(text) <= NAME_CHARACTERS else f"{text[:NAME_CHARACTERS]}…"


def _marked(headline: Sequence[HeadlinePart]) -> Iterator[HeadlinePart]:
    """What is marked, with what is left out between."""
    gap: HeadlinePart | None = None
    for part in headline:
        if part.role not in (HeadlineRole.VERB, HeadlineRole.TARGET):
            gap = part if part.text == " " and gap is None else HeadlinePart(text=LEFT_OUT)
            continue
        if gap is not None:
            yield gap
        yield part
        gap = None
    if gap is not None:
        yield gap
