"""The feed: what changed, in order, for whoever follows."""

import re
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

Entry = TypeVar("Entry")

_WRITTEN = re.compile(r"([0-9]{1,18})-([0-9]{1,18})", re.ASCII)


class FeedKind(StrEnum):
    TURN = "turn"
    """A turn is in another state."""
    TRANSCRIPT = "transcript"
    """A session has new rows."""
    SESSION = "session"
    """A conversation goes on in another session, or the session has other facts."""
    DELIVERY = "delivery"
    """A delivery is in another state."""
    CONFIRMATION = "confirmation"
    """Something is asked for, or what was has been decided, ended, used up or erased; or a rule or a pause
    has changed, which concerns many."""
    PERSON = "person"
    """Somebody asks to be let in, was, is no more, or is known to be somebody else, too."""
    CHECKPOINT = "checkpoint"
    """A checkpoint was made, or one was restored."""
    BACKGROUND = "background"
    """Work for a conversation goes on without a turn, or has ended."""
    NODE = "node"
    """A node takes part, or was told to stop."""


class FeedPosition(msgspec.Struct, frozen=True, order=True):
    """How far somebody has read."""

    xid: int = 0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.xid}-{self.number}"

    @classmethod
    def read(cls, written: str) -> "FeedPosition | None":
        """The place as `str` writes it; None for whatever else somebody may send."""
        found = _WRITTEN.fullmatch(written)
        return cls(int(found[1]), int(found[2])) if found else None


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True):
    place: FeedPosition
    at: datetime
    kind: FeedKind
    session_key: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    delivery_id: str | None = None
    confirmation_id: str | None = None
    state: str | None = None
    owner: str | None = None
    """Whose session it is about, or which person; None while that is nobody's own."""

    @property
    def subjects(self) -> Collection[str]:
        """What it concerns: its kind, and each thing that it names."""
        named = (self.turn_id, self.session_id, self.session_key, self.confirmation_id, self.owner)
        return {str(self.kind), *filter(None, named)}


class News(msgspec.Struct, Generic[Entry], frozen=True):
    """What came after a place of a log."""

    entries: list[Entry]
    place: Any
    """Behind the last of them: from here the log is read on."""
    unsettled: list[Entry] = []
    """What others may still come before. It comes again, until nothing can."""
