"""Trying again: when other work came first, and while the server is away."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.stores.postgres.faults import Conflict

T = TypeVar("T")

CONFLICT_ATTEMPTS = 12
OUTAGE_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.5

log = get_logger(__name__)


async def persist(attempt: Callable[[], Awaitable[T]]) -> T:
    """Run the attempt until it succeeds, conflicts too often, or the server stays away for too long."""
    deadline: float | None = None
    number = 0
    while True:
        number += 1
        try:
            return await attempt()
        except Conflict:
            if number >= CONFLICT_ATTEMPTS:
                raise
        except errors.StoreUnavailable as error:
            if deadline is None:
                deadline = time.monotonic() + OUTAGE_SECONDS
                log.warning("store_tried_again", why=str(error))
            elif time.monotonic() > deadline:
                raise
        await pause(number)


async def pause(number: int) -> None:
    """Wait before the next attempt, longer after each one, and not in step with others."""
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(number, 16))
    await asyncio.sleep(random.uniform(longest / 2, longest))
