"""Tidying: what was decided long ago is forgotten, and what the log left out is summed up, now and then."""

from datetime import datetime, timedelta

from frontdesk.flow.steadiness import Steadiness
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import KEY_SECONDS
from frontdesk.stores.confirmations import Confirmations

BATCH = 100
"""So much is done in one transaction, for which others wait."""
PAUSE = timedelta(minutes=1)
KEYS_KEPT = timedelta(seconds=KEY_SECONDS)

log = get_logger(__name__)


class Tidying:
    def __init__(self, kept: Confirmations, steadiness: Steadiness) -> None:
        self._kept = kept
        self._steadiness = steadiness
        self._done_at: datetime | None = None

    async def tidy(self, keep_days: int, now: datetime) -> bool:
        """Do a batch if it is time for it; whether there may be more to do right away. Nothing is forgotten
        by a clock that was not steady for a while."""
        steady = self._steadiness.holds(now)
        if self._done_at is not None and abs(now - self._done_at) < PAUSE:
            return False
        done = [await self._kept.close_echoes(now, BATCH)]
        if steady:
            done += await self._forget(keep_days, now)
        more = BATCH in done
        self._done_at = None if more else now
        return more

    async def _forget(self, keep_days: int, now: datetime) -> tuple[int, int]:
        keys = await self._kept.prune_keys(now - KEYS_KEPT, BATCH)
        pruned = await self._kept.prune(now - timedelta(days=keep_days), now, BATCH)
        if pruned:
            log.info("confirmations_pruned", count=pruned)
        return keys, pruned
