"""Transcripts as people read them: every row of all generations of a conversation."""

from datetime import datetime

import msgspec

from frontdesk.model.confirmations import Status
from frontdesk.model.messages import Plain
from frontdesk.model.sessions import Session
from frontdesk.model.turns import TurnState

PAGE_ROWS = 100
MOST_ROWS = 5_000


class TranscriptRow(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    position: int
    role: str
    at: datetime
    turn_id: str | None = None
    undone_by: str | None = None
    """What took it out of the transcript: a rewind or a rewrite."""
    message: Plain | None = None
    """None when it cannot be read."""


class TurnApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a turn asked to be allowed, and what became of that."""

    id: str
    turn_id: str
    action: str
    status: Status
    asked_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    decided_as: str | None = None
    """The name that whoever decided had then."""
    reason: str | None = None


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that ended without an answer, or in the middle of one."""

    turn_id: str
    state: TurnState
    at: datetime | None = None
    by: str | None = None
    """Who stopped it."""
    why: str | None = None


class TranscriptPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows of a transcript, oldest first."""

    session: Session
    """The one that was asked for."""
    rows: list[TranscriptRow]
    generations: list[Session]
    """Those that the rows are from, oldest first: where one ends another begins. At the newest end also those
    in which nothing was said yet."""
    approvals: list[TurnApproval]
    """Of the turns that the rows belong to."""
    endings: list[TurnEnd]
    """Those of these turns which were not simply answered."""
    older: str | None = None
    """Where earlier rows begin; None when these are the first."""
    newer: str | None = None
    """Where later rows begin; None when these are the newest."""
