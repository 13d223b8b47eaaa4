"""The time."""

from datetime import UTC, datetime
from functools import partial
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, with a zone."""


class SystemClock:
    """The machine's clock."""

    now = staticmethod(partial(datetime.now, UTC))
