"""Where a conversation begins anew, or goes on after a while: what stands there between two messages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from frontdesk.app.office.listing import LineageStep
from frontdesk.formats import quoting
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Relation
from frontdesk.web.pages.wording import say
from frontdesk.web.site.chips import reason_of
from frontdesk.web.site.messages import NAME_CHARACTERS, ShownMessage

AT_THE_END = ""


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    """``fresh`` by hand, ``reset`` by a rule, ``begins`` for a reason that stands on another page,
    ``compressed``, ``branch`` or ``resumed``."""
    at: datetime
    who: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        return say(f"breaks.{self.kind}", reason=self.reason)

    @property
    def note(self) -> str:
        """What it means for the agent."""
        return say(f"boundary_notes.{self.kind}")


def boundaries_in(
    shown: Sequence[ShownMessage], generations: Sequence[LineageStep], *, goes_on: bool
) -> Mapping[str, Sequence[Boundary]]:
    """What stands before a message, by its name on the page, and at the end, unless more messages follow."""
    found: dict[str, list[Boundary]] = defaultdict(list)
    order = {step["id"]: place for place, step in enumerate(generations)}
    for place, step in enumerate(generations):
        own = [message for message in shown if message.session_id == step["id"]]
        after = next((each.anchor for each in shown if order[each.session_id] > place), AT_THE_END)
        for made in _boundaries(step, generations[place - 1] if place else None):
            if (anchor := _first_after(made, step, own, after)) is not None:
                found[anchor].append(made)
    if goes_on:
        found.pop(AT_THE_END, None)
    return found


def _boundaries(step: LineageStep, before: LineageStep | None) -> Iterable[Boundary]:
    if step["relation"]:
        yield Boundary(
            id=step["id"],
            kind=_kind_of(step, before),
            at=datetime.fromisoformat(step["created_at"]),
            who=quoting.one_line(step["begun_by"] or "", NAME_CHARACTERS),
            reason=reason_of(before["end_reason"]) if before else "",
        )
    if step["resumed_at"]:
        yield Boundary(
            id=f"{step['id']}-again",
            kind="resumed",
            at=datetime.fromisoformat(step["resumed_at"]),
            who=quoting.one_line(step["resumed_by"] or "", NAME_CHARACTERS),
        )


def _kind_of(step: LineageStep, before: LineageStep | None) -> str:
    if step["relation"] != Relation.RESET:
        return str(step["relation"])
    if step["begun_by"] or (before and before["end_reason"] == EndReason.NEW):
        return "fresh"
    return "reset" if before else "begins"


def _first_after(made: Boundary, step: LineageStep, own: Sequence[ShownMessage], after: str) -> str | None:
    """The message that it stands before, of its own session or ``after`` that; None when it stands on another
    page."""
    if made.kind == "resumed":
        earlier = sum(message.number < step["resumed_from"] for message in own)
    elif made.kind == Relation.BRANCH:  # what was copied is older than the copy
        earlier = sum(message.at < made.at for message in own)
    elif own:
        return own[0].anchor if own[0].number == 1 else None
    else:
        return after
    if own and not earlier:
        return None
    return own[earlier].anchor if earlier < len(own) else after
