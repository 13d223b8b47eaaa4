"""Bells: a hint that there is something to do. Nobody relies on hearing one."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum


class Topic(StrEnum):
    TURNS = "turns"
    CONTROL = "control"
    SIGNALS = "signals"
    DELIVERIES = "deliveries"
    FEED = "feed"
    CONFIRMATIONS = "confirmations"


class Bell:
    """Rings for one who listens."""

    def __init__(self, silence: Callable[["Bell"], None]) -> None:
        self.rung = asyncio.Event()
        self.heard_on: asyncio.AbstractEventLoop | None = None
        """Where somebody has waited for it."""
        self._silence = silence

    def ring_elsewhere(self) -> None:
        """For a listener on another event loop; one that has ended hears nothing."""
        if self.heard_on:
            with suppress(RuntimeError):
                self.heard_on.call_soon_threadsafe(self.rung.set)

    async def wait(self, seconds: float) -> bool:
        """Wait until it rings, no longer than so many seconds; whether it did, now or since the last wait."""
        self.heard_on = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                await self.rung.wait()
        except TimeoutError:
            return False
        self.rung.clear()
        return True

    def silence(self) -> None:
        """Listen no more."""
        self._silence(self)


class Bells:
    """The bells of one process; a store for many nodes carries the ringing further."""

    def __init__(self) -> None:
        self._hung: dict[Topic, set[Bell]] = {topic: set() for topic in Topic}
        self.carry: Callable[[Topic], None] | None = None
        """Takes the ringing to other nodes, where there are any."""

    def listen(self, *topics: Topic) -> Bell:
        bell = Bell(self._silence)
        for topic in topics:
            self._hung[topic].add(bell)
        return bell

    def ring(self, topic: Topic, *, far: bool = True) -> None:
        """Ring here, and on the other nodes too unless they need not know."""
        here = asyncio._get_running_loop()
        for bell in tuple(self._hung[topic]):  # other event loops may listen, and silence theirs, meanwhile
            if bell.heard_on is None or bell.heard_on is here:
                bell.rung.set()
            else:
                bell.ring_elsewhere()
        if far and self.carry:
            self.carry(topic)

    def _silence(self, bell: Bell) -> None:
        for bells in self._hung.values():
            bells.discard(bell)
