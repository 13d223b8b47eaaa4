"""Ticks: one timer of the process for everybody who is to be called every so often."""

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

QUIET_SECONDS = 25.0
"""After so long without a word, whoever listens to a stream is told that we are still here."""
BEAT_SECONDS = 0.1
"""Who came within that time is called together: all at once would keep others waiting."""

Call = Callable[[], None]


class Ticker:
    """Calls each who was added every so many seconds, until it is removed. It has a timer only while there is
    anybody."""

    def __init__(self, seconds: float = QUIET_SECONDS) -> None:
        beats = max(1, round(seconds / BEAT_SECONDS))
        self._beat_seconds = seconds / beats
        self._beats: list[set[Call]] = [set() for _ in range(beats)]
        self._of: dict[Call, int] = {}
        self._at = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._of)

    def add(self, call: Call) -> None:
        self._of[call] = (self._at - 1) % len(self._beats)  # the farthest from now
        self._beats[self._of[call]].add(call)
        if self._timer is None:
            self._wait()

    def remove(self, call: Call) -> None:
        self._beats[self._of.pop(call)].discard(call)
        if self._timer and not self._of:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._beat_seconds, self._beat)

    def _beat(self) -> None:
        due, self._at = tuple(self._beats[self._at]), (self._at + 1) % len(self._beats)
        self._wait()
        for call in due:
            call()


_TICKERS: WeakKeyDictionary[asyncio.AbstractEventLoop, Ticker] = WeakKeyDictionary()


def ticker() -> Ticker:
    """The one of the event loop that runs."""
    return _TICKERS.setdefault(asyncio.get_running_loop(), Ticker())
