"""Whether the clock goes as time does. What is forgotten by one that jumped is gone for good, and
what waits for a moment of one that was set back would wait for all that time once more."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from frontdesk.logs import get_logger

TOLERANCE = timedelta(minutes=10)
"""So far may the clock be put right."""
FIRST_SECONDS = 3600.0
"""So long it is watched before it is trusted: a machine may start with a wrong clock."""
AFTER_JUMP_SECONDS = 24 * 3600.0
"""And so long after it jumped, until somebody has put it right."""
SET_BACK = timedelta(seconds=1)
"""By more than this a clock is set back; by less it is put right all the time."""

Elapsed = Callable[[], float]
"""Seconds since some moment, which no clock that is set changes."""

log = get_logger(__name__)


since_boot: Elapsed = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Counts on while the machine sleeps."""


class ClockTrust:
    """What is old may be forgotten only by a clock that has been steady for long enough."""

    def __init__(self, elapsed: Elapsed = since_boot) -> None:
        self._elapsed = elapsed
        self._origin: datetime | None = None
        self._trusted_at = 0.0

    def holds(self, now: datetime) -> bool:
        """Whether the clock, which shows now, has been steady for long enough."""
        elapsed = self._elapsed()
        origin = now - timedelta(seconds=elapsed)
        if self._origin is None:
            self._origin, self._trusted_at = origin, elapsed + FIRST_SECONDS
        elif abs(origin - self._origin) > TOLERANCE:
            by = round((origin - self._origin).total_seconds())
            log.warning("clock_jumped", seconds=by, nothing_forgotten_for=round(AFTER_JUMP_SECONDS))
            self._origin, self._trusted_at = origin, elapsed + AFTER_JUMP_SECONDS
        return elapsed >= self._trusted_at


class Setbacks:
    """Notices when the clock is set back."""

    def __init__(self, elapsed: Elapsed = since_boot) -> None:
        self._elapsed = elapsed
        self._origin: datetime | None = None

    def happened(self, now: datetime) -> bool:
        """Whether the clock, which shows now, was set back since the last look. Before the first look nobody
        knows: it may have been, while nothing ran."""
        origin = now - timedelta(seconds=self._elapsed())
        before, self._origin = self._origin, origin
        if before is not None and before - origin > SET_BACK:
            log.warning("clock_set_back", seconds=round((before - origin).total_seconds()))
            return True
        return before is None
