"""Background work: what goes on for a conversation when no turn runs, for as long as somebody says so."""

from datetime import datetime

import msgspec

from frontdesk import errors
from frontdesk.model.sources import readable

DEFAULT_NAME = "work"
DEFAULT_SECONDS = 3600.0
MAX_SECONDS = 7 * 24 * 3600.0
"""Whoever works longer says it again: one that died holds a conversation no longer than this."""
MAX_NAME_CHARACTERS = 100


class BackgroundTask(msgspec.Struct, frozen=True, kw_only=True):
    """Holds back resets by policy, and pruning."""

    session_key: str
    name: str = DEFAULT_NAME
    """Which work of the conversation it is; said again, it counts from then."""
    begun_at: datetime
    until: datetime


def check_name(name: str) -> str:
    """The name as it is kept."""
    kept = readable(name).strip() if isinstance(name, str) else ""
    if not kept or len(kept) > MAX_NAME_CHARACTERS:
        why = f"use a name of 1 to {MAX_NAME_CHARACTERS} characters"
        raise errors.InvalidInput(what="The name of background work", why=why)
    return kept


def check_seconds(seconds: float) -> float:
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= MAX_SECONDS:
        why = f"use more than 0 and at most {MAX_SECONDS:.0f} seconds; say it again when it takes longer"
        raise errors.InvalidInput(what=f"{seconds!r}", why=why)
    return float(seconds)
