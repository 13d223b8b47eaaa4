"""Rounds: what is done whenever it is due, and now and then, for as long as anything runs."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from frontdesk import errors
from frontdesk.contracts.bells import Bells, Topic
from frontdesk.flow.clockwatch import ClockTrust
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import KEY_SECONDS
from frontdesk.stores.confirmations import Confirmations

LOOK_SECONDS = 1.0
IDLE_SECONDS = 5.0
"""Until another look when nothing waits: a bell may have been lost on its way from another node."""
SHORTEST_PAUSE_SECONDS = 0.02
TROUBLE_PAUSE_SECONDS = 0.5
TIDIED_AT_ONCE = 100
"""So much is done in one transaction, for which others wait."""
TIDY_EVERY = timedelta(minutes=1)
KEYS_KEPT = timedelta(seconds=KEY_SECONDS)

log = get_logger(__name__)


@contextmanager
def going_on(failure: str = "job_failed", **about: str) -> Iterator[None]:
    """The outermost door of what is done again and again: whatever fails in it, it is done another time."""
    try:
        yield
    except errors.StoreError as error:
        log.warning("store_troubled", why=str(error), **about)
    except Exception:
        log.exception(failure, **about)


async def make_rounds(bells: Bells, job: Callable[[], Awaitable[float]]) -> None:
    """Do the job, wait for as long as it says or until confirmations change, and again, until cancelled."""
    bell = bells.listen(Topic.CONFIRMATIONS)
    try:
        while True:
            pause = TROUBLE_PAUSE_SECONDS
            with going_on():
                pause = await job()
            await bell.wait(pause)
    finally:
        bell.silence()


def pause_until(due: datetime | None, now: datetime) -> float:
    """How long to wait for what is due then; no longer than until another look."""
    if due is None:
        return IDLE_SECONDS
    return min(max((due - now).total_seconds(), SHORTEST_PAUSE_SECONDS), LOOK_SECONDS)


class Tidying:
    """What was decided long ago is forgotten, and what the log left out is summed up."""

    def __init__(self, kept: Confirmations, trust: ClockTrust) -> None:
        self._kept = kept
        self._trust = trust
        self._done_at: datetime | None = None

    async def tidy(self, keep_days: int, now: datetime) -> bool:
        """Do a batch if it is time for it; whether there may be more to do right away. Nothing is forgotten
        by a clock that was not steady for a while."""
        steady = self._trust.holds(now)
        if self._done_at is not None and abs(now - self._done_at) < TIDY_EVERY:
            return False
        done = [await self._kept.close_echoes(now, TIDIED_AT_ONCE)]
        if steady:
            done.append(await self._kept.prune_keys(now - KEYS_KEPT, TIDIED_AT_ONCE))
            done.append(await self._kept.prune(now - timedelta(days=keep_days), now, TIDIED_AT_ONCE))
            if done[-1]:
                log.info("confirmations_pruned", count=done[-1])
        more = TIDIED_AT_ONCE in done
        self._done_at = None if more else now
        return more
