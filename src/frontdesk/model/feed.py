"""The feed: what changed, in order, for whoever follows."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

Entry = TypeVar("Entry")


class FeedKind(StrEnum):
    TURN = "turn"
    """A turn is in another state."""
    TRANSCRIPT = "transcript"
    """A session has new rows."""
    SESSION = "session"
    """A conversation goes on in another session, or the session has other facts."""
    DELIVERY = "delivery"
    """A delivery is in another state."""


class FeedPosition(msgspec.Struct, frozen=True, order=True):
    """How far somebody has read."""

    xid: int = 0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.xid}-{self.number}"


class FeedEvent(msgspec.Struct, frozen=True, kw_only=True):
    place: FeedPosition
    at: datetime
    kind: FeedKind
    session_key: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    delivery_id: str | None = None
    state: str | None = None


class News(msgspec.Struct, Generic[Entry], frozen=True):
    """What came after a place of a log."""

    entries: list[Entry]
    place: Any
    """Behind the last of them: from here the log is read on."""
    unsettled: list[Entry] = []
    """What others may still come before. It comes again, until nothing can."""
