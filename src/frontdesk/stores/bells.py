"""Bells within one process; a store for many nodes carries them further."""

import asyncio
from collections.abc import Callable

from frontdesk.contracts.bells import Topic


class Bell:
    def __init__(self, hang_down: Callable[["Bell"], None]) -> None:
        self._rung = asyncio.Event()
        self._hang_down = hang_down

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def silence(self) -> None:
        self._hang_down(self)


class Bells:
    def __init__(self) -> None:
        self._hung: dict[Topic, set[Bell]] = {topic: set() for topic in Topic}
        self.carry: Callable[[Topic], None] | None = None
        """Takes the ringing to other nodes, where there are any."""

    def listen(self, *topics: Topic) -> Bell:
        bell = Bell(self._hang_down)
        for topic in topics:
            self._hung[topic].add(bell)
        return bell

    def ring(self, topic: Topic, *, far: bool = True) -> None:
        self.ring_here(topic)
        if far and self.carry:
            self.carry(topic)

    def ring_here(self, topic: Topic) -> None:
        for bell in self._hung[topic]:
            bell.ring()

    def _hang_down(self, bell: Bell) -> None:
        for bells in self._hung.values():
            bells.discard(bell)
