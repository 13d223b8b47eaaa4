"""Ticks: one timer of the process for everybody who is to be called every so often."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

QUIET_SECONDS = 25.0
"""After so long without a word, whoever listens to a stream is told that we are still here."""
BEAT_SECONDS = 0.1
"""Who came within that time is called together: all at once would keep others waiting."""

Call = Callable[[], None]
Step = TypeVar("Step")


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
    loop = asyncio.get_running_loop()
    if (there := _TICKERS.get(loop)) is None:
        there = _TICKERS[loop] = Ticker()
    return there


class Waker:
    """Wakes the one task that waits for it, whoever rings."""

    __slots__ = ("_rung", "_waiting")

    def __init__(self) -> None:
        self._rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self._rung = True
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self) -> None:
        """Until it rings, now or since the last time."""
        if not self._rung:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        self._rung = False


async def with_ticks(
    steps: AsyncIterator[Step], waker: Waker, ticks: Ticker | None = None
) -> AsyncGenerator[Step | None, None]:
    """Each step as it comes, and None at every tick without one, or when somebody rings."""
    ticks = ticker() if ticks is None else ticks
    ticks.add(waker.ring)
    coming: asyncio.Task[Step] | None = None
    try:
        while True:
            if coming is None:
                coming = asyncio.create_task(_next(steps))
                coming.add_done_callback(lambda _: waker.ring())
            await waker.wait()
            if coming.done():
                step, coming = coming.result(), None
                yield step
            else:
                yield None
    except StopAsyncIteration:
        return
    finally:
        ticks.remove(waker.ring)
        await _leave(steps, coming)


async def _next(steps: AsyncIterator[Step]) -> Step:
    return await anext(steps)


async def _leave(steps: AsyncIterator[Step], coming: asyncio.Task[Step] | None) -> None:
    if coming is not None:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
    if isinstance(steps, AsyncGenerator):
        await steps.aclose()
