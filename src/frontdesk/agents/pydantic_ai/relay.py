"""Events on their way out of a task."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine

from frontdesk.model import events

CANCELLED = "The agent cancelled its own run"


class Relay:
    """Hands events over one by one; who hands one in goes on when the next is asked for.

    The library's scopes must be left in the task that entered them, which an iterator cannot promise.
    So its work is done in a task of its own.
    """

    def __init__(self) -> None:
        # Who puts an event waits, so that there are never more of them than senders.
        self._queue: asyncio.Queue[events.Event | None] = asyncio.Queue()

    async def put(self, event: events.Event) -> None:
        self._queue.put_nowait(event)
        await self._queue.join()

    async def run(self, work: Coroutine[None, None, None]) -> AsyncGenerator[events.Event]:
        """What the work hands in, until it ends. Closing the iterator ends the work."""
        task = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while (event := await self._queue.get()) is not None:
                yield event
                self._queue.task_done()
            if task.cancelled():
                yield events.Failed(message=CANCELLED)
        finally:
            task.cancel()
            await asyncio.wait([task])
