"""What becomes of a session, in two or three words with a sign."""

import msgspec

from frontdesk.app.office.listing import SessionRow
from frontdesk.formats import quoting
from frontdesk.model.policies import EndReason
from frontdesk.web.pages.wording import say

REASONS = frozenset(map(str, EndReason))
REASON_CHARACTERS = 60


class StateChip(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    sign: str = ""
    kind: str = ""
    """How it looks: ``work``, ``wait``, ``bad``, or like any other."""
    why: str = ""
    """What there is to say about it besides."""
    is_quiet: bool = False
    """Whether there is nothing to see in it."""


def chip_of(row: SessionRow) -> StateChip:
    """How a session is, and why."""
    match row["state"]:
        case "working":
            return StateChip(kind="work", text=say("sessions.working"))
        case "waiting":
            return StateChip(sign="◔", kind="wait", text=say("sessions.waiting"))
        case "queued":
            return StateChip(sign="…", text=say("sessions.queued", count=row["queued"]))
        case "trouble" if row["trouble"] == "set_aside":
            return StateChip(sign="⏸", kind="bad", text=say("sessions.set_aside"), why=_why(row))
        case "trouble":
            return StateChip(sign="✕", kind="bad", text=say("sessions.undelivered"), why=_why(row))
        case "ended":
            return StateChip(text=say("sessions.ended_because", reason=reason_of(row["end_reason"])))
    return StateChip(text=say("sessions.idle"), is_quiet=True)


def reason_of(reason: str | None) -> str:
    """Why a session ended; a reason of another program as it stands."""
    if reason in REASONS:
        return say(f"ended.{reason}")
    return quoting.one_line(reason or "", REASON_CHARACTERS) or say("ended.unknown")


def _why(row: SessionRow) -> str:
    return quoting.one_line(row["trouble_reason"] or "")
