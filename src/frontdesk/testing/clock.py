"""A clock that stands still until it is set."""

from datetime import UTC, datetime, timedelta


class SettableClock:
    def __init__(self, start: datetime | None = None) -> None:
        self.set(start or datetime(2026, 1, 5, 12, 0, tzinfo=UTC))

    def now(self) -> datetime:
        return self._now

    def set(self, moment: datetime) -> None:
        """Jump to a moment, which must have a zone."""
        if moment.tzinfo is None:
            raise ValueError("the moment needs a zone")
        self._now = moment

    def advance(self, by: timedelta | None = None, **units: float) -> None:
        """Go on: ``clock.advance(hours=2)``."""
        self._now += by or timedelta(**units)
