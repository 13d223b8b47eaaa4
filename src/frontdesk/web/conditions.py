"""Watching the gateway's own condition for those who follow it: of what fails no feed tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from frontdesk.app import health
from frontdesk.app.gateway import Gateway
from frontdesk.flow import rounds
from frontdesk.web.streams import EventStreams

LOOK_SECONDS = 3.0


@asynccontextmanager
async def watching(
    gateway: Gateway, streams: EventStreams, seconds: float = LOOK_SECONDS
) -> AsyncIterator[None]:
    """While the block lasts, whoever follows is told once of each change."""
    task = asyncio.create_task(_watch(gateway, streams, seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(gateway: Gateway, streams: EventStreams, seconds: float) -> None:
    known: frozenset[str] | None = None
    while True:
        # While nobody follows, nothing is asked; who comes then may have looked before the first answer.
        if not streams.is_condition_followed:
            known = None
        else:
            with rounds.going_on("watch_failed"):
                found = await health.standing(gateway)
                if found != known and (found or known is not None):
                    streams.tell_condition(gateway.parts.clock.now())
                known = found
        await asyncio.sleep(seconds)
