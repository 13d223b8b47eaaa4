"""Numbers that callers hand in: how long ago, how many."""

from datetime import UTC, datetime, timedelta

from frontdesk import errors

LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)
MOST = 2**31


def ago(now: datetime, name: str, value: float, unit: timedelta) -> datetime:
    """The moment so many units before now; beyond the calendar, its beginning."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise errors.InvalidInput(what=f"{name} = {value!r}", why="use a number from 0")
    try:
        return now - value * unit
    except OverflowError:
        return LONG_AGO


def check_limit(limit: int) -> int:
    """How many at most, when it is a count."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= MOST:
        raise errors.InvalidInput(what=f"limit = {limit!r}", why=f"use a whole number from 0 to {MOST}")
    return limit
