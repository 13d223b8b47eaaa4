"""Work that nobody waits for: kept until other work goes to the writer, or a moment has passed."""

import asyncio
from collections.abc import Callable
from typing import Any

from frontdesk.logs import get_logger
from frontdesk.stores.sqlite.lanes import Lane
from frontdesk.stores.work import Work

log = get_logger(__name__)

KEPT_SECONDS = 0.2
KEPT_POSTS = 256


class Posts:
    """Posted work, the latest for each mark. A turn's first write usually makes its post needless."""

    def __init__(self, writer: Lane) -> None:
        self._writer = writer
        self._kept: dict[str, Callable[[], Work[Any]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, mark: str, start: Callable[[], Work[Any]]) -> None:
        self._kept[mark] = start
        if len(self._kept) >= KEPT_POSTS:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self.flush)

    def flush(self, without: str | None = None) -> list["asyncio.Future[Any]"]:
        """Hand everything to the writer, except what is superseded."""
        if not self._kept:
            return []
        self._kept.pop(without or "", None)
        kept, self._kept = self._kept, {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return [self._hand_over(start) for start in kept.values()]

    def _hand_over(self, start: Callable[[], Work[Any]]) -> "asyncio.Future[Any]":
        future = self._writer.put(start, lazy=True)
        future.add_done_callback(_log_failure)
        return future


def _log_failure(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled() and (error := future.exception()):
        log.warning("post_failed", error=str(error))
