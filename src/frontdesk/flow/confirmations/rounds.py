"""Rounds: something that is done whenever it is due, for as long as anything runs."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from frontdesk import errors
from frontdesk.contracts.bells import Bells, Topic
from frontdesk.logs import get_logger

LOOK_SECONDS = 1.0
IDLE_SECONDS = 5.0
"""Until another look when nothing waits: a bell may have been lost on its way from another node."""
SHORTEST_PAUSE_SECONDS = 0.02
TROUBLE_PAUSE_SECONDS = 0.5

log = get_logger(__name__)


async def make_rounds(bells: Bells, job: Callable[[], Awaitable[float]]) -> None:
    """Do the job, wait for as long as it says or until confirmations change, and again, until cancelled.

    The outermost door of what is done by the clock.
    """
    bell = bells.listen(Topic.CONFIRMATIONS)
    try:
        while True:
            try:
                await bell.wait(await job())
            except errors.StoreError as error:
                log.warning("store_troubled", why=str(error))
                await asyncio.sleep(TROUBLE_PAUSE_SECONDS)
            except Exception:
                log.exception("job_failed")
                await asyncio.sleep(TROUBLE_PAUSE_SECONDS)
    finally:
        bell.silence()


def pause_until(due: datetime | None, now: datetime) -> float:
    """How long to wait for what is due then; no longer than until another look."""
    if due is None:
        return IDLE_SECONDS
    return min(max((due - now).total_seconds(), SHORTEST_PAUSE_SECONDS), LOOK_SECONDS)
