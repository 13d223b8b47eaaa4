"""Bodies of those who have shown a credential: how much of them is kept at a time, for each and in all."""

import asyncio
from collections import Counter

KEPT_BYTES = 128 * 1024 * 1024
PORTION_OF_SENDER = 4
"""One by this of all is the most that one sender has."""
SHORT_BODY_BYTES = 64 * 1024
"""So much of a body never waits for room."""
WAITING_SECONDS = 10.0


class KeptBodies:
    """Room is taken for a whole body before the rest of it is read: whoever has it can be read to the end, so
    that none waits for one that waits as well."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most_bytes
        self._of_all = 0
        self._of_each: Counter[str] = Counter()
        self.kept: dict[object, tuple[str, int]] = {}
        """What has room: of most requests nothing."""
        self._changed = asyncio.Event()

    async def take(self, what: object, sender: str, size: int) -> None:
        """Wait until there is room for it. TimeoutError when there is none in time."""
        if what in self.kept:
            self.let_go(what)
        async with asyncio.timeout(WAITING_SECONDS):
            while not self._has_room(sender, size):
                await self._changed.wait()
        self.kept[what] = (sender, size)
        self._of_all += size
        self._of_each[sender] += size

    def let_go(self, what: object, rest: int = 0) -> None:
        """It is answered; or no longer than ``rest``, as is known now."""
        sender, size = self.kept.pop(what)
        if rest:
            self.kept[what] = (sender, rest)
        self._of_all -= size - rest
        self._of_each[sender] -= size - rest
        if not self._of_each[sender]:
            del self._of_each[sender]
        self._changed.set()
        self._changed = asyncio.Event()

    def _has_room(self, sender: str, size: int) -> bool:
        """What alone is more than somebody's part has room when they have nothing else."""
        of_sender = self._of_each.get(sender, 0)
        within = not of_sender or of_sender + size <= self._most // PORTION_OF_SENDER
        return within and (not self._of_all or self._of_all + size <= self._most)
