"""Grants that nobody used in time: they stay lapsed, whatever the clock says later."""

from datetime import datetime

from frontdesk.flow.clockwatch import Elapsed, Setbacks
from frontdesk.logs import get_logger
from frontdesk.stores.confirmations import Confirmations

LAPSED_AT_ONCE = 100

log = get_logger(__name__)


class Lapses:
    """Writes down which grants have lapsed, before a clock that is set back can deny it."""

    def __init__(self, kept: Confirmations, elapsed: Elapsed, now: datetime) -> None:
        self._kept = kept
        self._setbacks = Setbacks(elapsed)
        self._setbacks.happened(now)

    async def heed_clock(self, now: datetime) -> None:
        """When the clock was set back since the last look, nobody knows how old a grant is: all have lapsed,
        and are asked again."""
        if self._setbacks.happened(now) and (lapsed := await self._kept.lapse_all(now)):
            log.warning("grants_lapsed", count=lapsed)

    async def sweep(self, now: datetime) -> None:
        await self.heed_clock(now)
        await self._kept.lapse(now, LAPSED_AT_ONCE)
