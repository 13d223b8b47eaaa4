"""Work that nobody waits for: kept until other work is done, or a moment has passed."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from frontdesk.contracts.store import Work
from frontdesk.logs import get_logger

log = get_logger(__name__)

KEPT_SECONDS = 0.2
KEPT_POSTS = 256

Start = Callable[[], Work[Any]]


class Posts:
    """Posted work, the latest for each mark. A turn's first write usually makes its post needless."""

    def __init__(self, put: Callable[[Start], "asyncio.Future[Any]"]) -> None:
        self._put = put
        self.kept: dict[str, Start] = {}
        self._under_way: set[asyncio.Future[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door = threading.Lock()

    def add(self, mark: str, start: Start) -> None:
        with self._door:
            self.kept[mark] = start
            self._set_timer(asyncio.get_running_loop())
        if len(self.kept) >= KEPT_POSTS:
            self.flush()

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """The timer of another event loop is as good as one of this, unless that loop has ended."""
        if self._timer is None or (self._loop and self._loop.is_closed()):
            self._loop, self._timer = loop, loop.call_later(KEPT_SECONDS, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.flush()

    def flush(self, without: str | None = None) -> None:
        """Have everything written, except what is superseded."""
        if not self.kept:
            return
        with self._door:  # of two event loops that flush at once, each post is handed over by one
            self.kept.pop(without or "", None)
            kept, self.kept = self.kept, {}
        for start in kept.values():
            future = self._put(start)
            self._under_way.add(future)
            future.add_done_callback(self._settled)

    def _settled(self, future: "asyncio.Future[Any]") -> None:
        self._under_way.discard(future)
        if not future.cancelled() and (error := future.exception()):
            log.warning("post_failed", error=str(error))

    async def stored(self, without: str | None = None) -> None:
        """Wait until everything that was posted on this event loop can be read, except what is superseded."""
        self.flush(without)
        if not self._under_way:
            return
        loop = asyncio.get_running_loop()
        if under_way := [future for future in tuple(self._under_way) if future.get_loop() is loop]:
            await asyncio.wait(under_way)
