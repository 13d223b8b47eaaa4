"""Slices: many are called a few at a time, so that between them goes on whatever else there is to do, such as
taking a message in."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

CALLED_AT_ONCE = 50
"""About a millisecond, most of it the system's for writing to as many connections."""
PAUSE_SECONDS = 0.001


class Due(Protocol):
    def go(self) -> None:
        """Its turn has come."""


class Slices:
    """Who is due has its turn after those who were so before, and after a moment in which more may happen
    that it is told together with."""

    def __init__(self, gather: Callable[[], float]) -> None:
        """``gather`` says how many seconds that moment lasts."""
        self._gather = gather
        self._due: deque[Due] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, due: Due) -> None:
        """It is called once; whoever adds it knows whether it is waiting already."""
        self._due.append(due)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._gather(), self._go)

    def _go(self) -> None:
        count = min(len(self._due), CALLED_AT_ONCE)
        self._timer = None
        if len(self._due) > count:  # before anybody is called: whoever fails keeps nobody else waiting
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._go)
        for _ in range(count):
            self._due.popleft().go()
