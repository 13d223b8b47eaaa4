"""Slices: many have their turn a few at a time, so that between them goes on whatever else there is to do,
such as taking a message in."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

COST_AT_ONCE = 64
"""Less than a millisecond, most of it the system's for writing to as many connections."""
PAUSE_SECONDS = 0.001
MOST_POSTPONED = 40
"""So many pauses more are made in a round while somebody waits for an answer."""


class Due(Protocol):
    def go(self) -> int:
        """Its turn has come; what that costs, where writing to a connection costs one."""


class Slices:
    """Who is due has its turn after those who were so before. Then nobody has another for a while, in which
    more may happen that they are told together."""

    def __init__(self, interval: Callable[[], float], somebody_waits: Callable[[], bool]) -> None:
        """``interval`` says how many seconds are between the beginnings of two rounds."""
        self._interval = interval
        self._somebody_waits = somebody_waits
        self._due: deque[Due] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0
        """So many have their turn in this round."""
        self._begun_at = 0.0
        self._postponed = 0

    def add(self, due: Due) -> None:
        """It has one turn; whoever adds it knows whether it waits for one already."""
        self._due.append(due)
        if self._timer is None:
            self._wait(self._begun_at + self._interval() - asyncio.get_running_loop().time())

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(max(seconds, PAUSE_SECONDS), self._go)

    def _go(self) -> None:
        if self._postponed < MOST_POSTPONED and self._somebody_waits():
            self._postponed += 1
            self._wait(PAUSE_SECONDS)
            return
        if not self._left:
            self._left, self._begun_at = len(self._due), asyncio.get_running_loop().time()
        # Before anybody has their turn: whoever fails in it keeps nobody else waiting.
        self._wait(PAUSE_SECONDS)
        cost = 0
        while self._left and cost < COST_AT_ONCE:
            self._left -= 1
            cost += self._due.popleft().go()
        if not self._left:
            self._rest()

    def _rest(self) -> None:
        """The round is over; whoever was added meanwhile has the next."""
        assert self._timer
        self._timer.cancel()
        self._timer, self._postponed = None, 0
        if self._due:
            self._wait(self._begun_at + self._interval() - asyncio.get_running_loop().time())
