"""Forgetting what nobody asks for any more: old turns and deliveries, conversations that rest for long."""

from datetime import timedelta
from functools import partial

from frontdesk.flow import occasions
from frontdesk.flow.parts import Parts
from frontdesk.flow.steadiness import Elapsed, Steadiness, since_boot
from frontdesk.logs import get_logger
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import SessionStatus

BATCH = 500
FEED_KEPT = timedelta(days=7)

log = get_logger(__name__)


class Forgetting:
    """Nothing is forgotten by a clock that was not steady for a while."""

    def __init__(self, parts: Parts, elapsed: Elapsed = since_boot) -> None:
        self._parts = parts
        self._steadiness = Steadiness(elapsed)

    async def sweep(self) -> None:
        """Some at a time, so that nobody waits for it."""
        store, now = self._parts.store, self._parts.clock.now()
        if not self._steadiness.holds(now):
            return
        await store.feed.prune(now - FEED_KEPT)
        await store.background.prune(now)
        await self._forget_work()
        await self._prune_conversations()

    async def _forget_work(self) -> None:
        store, running, now = self._parts.store, self._parts.running, self._parts.clock.now()
        kept = now - timedelta(days=running.keep_days)
        unwanted = now - timedelta(seconds=running.delivery_max_age_seconds)
        for forget, before in (
            (store.turns.prune, kept),
            (store.deliveries.prune, kept),
            (store.deliveries.expire_boxes, unwanted),
        ):
            while await forget(before, BATCH) == BATCH:
                continue

    async def _prune_conversations(self) -> None:
        parts = self._parts
        leave = partial(_take_leave, parts)
        if pruned := await parts.conversations.prune_old_entries(parts.running.prune_days, leave):
            log.info("conversations_pruned", conversations=pruned)


async def _take_leave(parts: Parts, key: str) -> None:
    """Hooks and the agent hear of the end of a session, unless they have."""
    session = await parts.store.sessions.current(key)
    if session and session.status is SessionStatus.OPEN and not session.entry.expiry_finalized:
        await occasions.take_leave(parts, session, EndReason.PRUNED)
