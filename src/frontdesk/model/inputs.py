"""What callers hand in: kinds, times, how long ago, how many; what settings hold."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from frontdesk import errors

LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)
MOST = 2**31

Choice = TypeVar("Choice", bound=StrEnum)


def check_kind(name: str, value: object, *kinds: type) -> None:
    """Refuse a value of another kind; a truth value is no number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise errors.InvalidInput(what=f"{name} = {type(value).__name__}", why=f"use {wanted}")


def check_time(name: str, value: datetime | None) -> None:
    """Refuse a time without a zone: nobody knows when that is."""
    if value is not None:
        check_kind(name, value, datetime)
        if value.tzinfo is None:
            raise errors.InvalidInput(what=f"{name} = {value}", why="use a time with a zone")


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


def check_flags(record: object, *names: str) -> None:
    """Refuse what is neither true nor false in these settings."""
    for name in names:
        if not isinstance(getattr(record, name), bool):
            raise errors.InvalidSetting(key=name, value=getattr(record, name), allowed="true or false")


def read_choice(name: str, value: object, kind: type[Choice]) -> Choice:
    """One of the words that a setting takes."""
    try:
        return kind(str(value))
    except ValueError:
        raise errors.InvalidSetting(key=name, value=value, allowed=", ".join(kind)) from None
