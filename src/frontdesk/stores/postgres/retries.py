"""Trying again: when other work came first or is in the way, and while the server is away."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.stores.postgres.faults import Conflict, Locked

T = TypeVar("T")

CONFLICT_ATTEMPTS = 12
OUTAGE_SECONDS = 5.0
LOCK_SECONDS = 30.0
"""How long work waits in all for what others have locked. It lets go of its own locks in between."""
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.5

log = get_logger(__name__)


async def persist(attempt: Callable[[int], Awaitable[T]], relieve: Callable[[], Awaitable[None]]) -> T:
    """Run the attempt until it succeeds, conflicts too often, waits too long for others, or the server stays
    away for too long. It is told how often it was cut off before. When others are in the way, ``relieve`` is
    called."""
    deadlines: dict[type[errors.StoreUnavailable], float] = {}
    conflicts = cuts = 0
    while True:
        try:
            return await attempt(cuts)
        except Conflict:
            conflicts += 1
            if conflicts >= CONFLICT_ATTEMPTS:
                raise
        except Locked as error:
            _keep_bound(deadlines, error, LOCK_SECONDS)
            with suppress(errors.StoreUnavailable):  # the next attempt finds out
                await relieve()
        except errors.StoreUnavailable as error:
            cuts += 1
            _keep_bound(deadlines, error, OUTAGE_SECONDS)
        await pause(conflicts + cuts)


def _keep_bound(
    deadlines: dict[type[errors.StoreUnavailable], float], error: errors.StoreUnavailable, seconds: float
) -> None:
    """Raise the error when such trouble has lasted for too long."""
    kind, now = type(error), time.monotonic()
    if kind not in deadlines:
        log.warning("store_tried_again", why=str(error))
    if now > deadlines.setdefault(kind, now + seconds):
        raise error


async def pause(number: int) -> None:
    """Wait before the next attempt, longer after each one, and not in step with others."""
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(number, 16))
    await asyncio.sleep(random.uniform(longest / 2, longest))
