"""Searching transcripts."""

from datetime import datetime
from typing import Any

import msgspec

from frontdesk.model.messages import Role

MAX_HITS = 200


class Term(msgspec.Struct, frozen=True):
    """Words that must stand next to each other; the last may be a beginning only."""

    words: tuple[str, ...]
    prefix: bool = False


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A question: every term must be in the message."""

    terms: tuple[Term, ...]
    role: Role | None = None
    platform: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 20
    around: int = 1
    """How many messages to show before and after a hit."""
    whole: bool = True
    """Whether each message is wanted as it is stored. Else of a long one there is only the beginning of its
    text: who chooses among many needs no more."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was found, with its surroundings."""

    session_id: str
    position: int
    role: Role
    message: dict[str, Any]
    created_at: datetime
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]
    snippet: str = ""
    is_whole: bool = True
    """Whether all these messages are as they are stored."""
