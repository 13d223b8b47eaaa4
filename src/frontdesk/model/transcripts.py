"""What happens to a transcript as a whole."""

from datetime import datetime
from enum import StrEnum

import msgspec

from frontdesk.model.messages import Plain


class RevisionKind(StrEnum):
    REWIND = "rewind"
    REWRITE = "rewrite"


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A change that took rows out of a transcript; they can still be loaded under its number."""

    number: int
    kind: RevisionKind
    created_at: datetime
    rows: int


class Rewound(msgspec.Struct, frozen=True, kw_only=True):
    """What an undo took away, or a redo brought back."""

    rewound_count: int
    turns_undone: int
    target_text: str


class NewestRows(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a transcript."""

    messages: list[Plain]
    is_whole: bool
    """Whether there is nothing before it."""
