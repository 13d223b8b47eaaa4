"""The daily boundary: the moment a local clock passes a full hour, in any zone, across DST changes."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from frontdesk import errors

DAY = timedelta(days=1)
PRECISION = timedelta(seconds=1)


def load_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise errors.InvalidSetting(
            key="timezone", value=name, allowed="an IANA name such as Europe/Berlin"
        ) from None


def latest_passing(now: datetime, hour: int, zone: tzinfo) -> datetime:
    """The last moment, not after ``now``, at which the clock of ``zone`` passed ``hour``."""
    between = _latest.get((hour, zone))
    if between is None or not between[0] <= now < between[1]:
        _latest[hour, zone] = between = _passings_around(now, hour, zone)
    return between[0]


_latest: dict[tuple[int, tzinfo], tuple[datetime, datetime]] = {}
"""The passings around the last moment asked about: they hold for a day."""


def _passings_around(now: datetime, hour: int, zone: tzinfo) -> tuple[datetime, datetime]:
    """The passing before a moment and the one after it. Days enough for clocks set back over midnight."""
    today = now.astimezone(zone).date()
    passings = [passing_of(today + days * DAY, hour, zone) for days in range(-2, 4)]
    return max(each for each in passings if each <= now), min(each for each in passings if each > now)


@lru_cache(maxsize=1024)
def passing_of(day: date, hour: int, zone: tzinfo) -> datetime:
    """When the clock of ``zone`` passed ``hour`` on that day, in UTC: the first time, when it did twice;
    the moment of the jump, when a jump skipped the hour."""
    wanted = datetime.combine(day, time(hour), zone)
    moment = wanted.astimezone(UTC)
    shown = moment.astimezone(zone).replace(tzinfo=None)
    if shown == wanted.replace(tzinfo=None):
        return moment
    return _jump(wanted.replace(fold=1).astimezone(UTC), moment, zone)


def _jump(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first moment in (before, after] that has the offset of ``after``."""
    offset = after.astimezone(zone).utcoffset()
    while after - before > PRECISION:
        middle = before + (after - before) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after.replace(microsecond=0)
