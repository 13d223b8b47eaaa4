"""Files of messages and answers: what is kept of each, and how much may be."""

from datetime import datetime
from enum import StrEnum

import msgspec

from frontdesk import errors
from frontdesk.model.chats import StoredFile

MIB = 1024 * 1024
MAX_NAME_CHARACTERS = 120


class FileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What each field means is said once, in the table of settings."""

    most_bytes: int = 20 * MIB
    most_files: int = 10
    fetch_seconds: float = 60.0
    keep_days: int = 30
    transcribe: tuple[str, ...] = ()
    transcribe_seconds: float = 120.0
    spoken_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("most_bytes", "most_files", "keep_days"):
            if getattr(self, name) < 1:
                raise errors.InvalidSetting(key=name, value=getattr(self, name), allowed="1 or more")


class FileWay(StrEnum):
    """Where a file was going when it came by."""

    IN = "in"
    OUT = "out"


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file of a turn: we have it, or it says why not."""

    turn_id: str
    way: FileWay
    place: int
    session_id: str
    name: str
    kind: str
    """Its media type: what its bytes are where they tell, else what it was said to be."""
    size: int = 0
    digest: str | None = None
    """By which its bytes are found; None when they could not be had."""
    said: str | None = None
    """What is heard in it, if somebody has written that down."""
    why: str | None = None
    """What is wrong with it."""
    kept_at: datetime
    brought_by: str | None = None
    """Who brought it, until it is sent with a message: it has no session then, and an id of its own in the
    place of a turn's."""

    @property
    def stored(self) -> StoredFile | None:
        if self.digest is None:
            return None
        return StoredFile(digest=self.digest, name=self.name, kind=self.kind, size=self.size)
