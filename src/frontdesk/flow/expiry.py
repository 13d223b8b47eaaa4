"""Sessions whose time is over: found in the background, finalized once, in their conversation's own lane. And
what nobody asks for any more, which is forgotten."""

from datetime import timedelta
from functools import partial

from frontdesk.flow import hook_calls
from frontdesk.flow.clockwatch import ClockTrust, Elapsed, since_boot
from frontdesk.flow.parts import Parts, new_id
from frontdesk.logs import get_logger
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session, SessionStatus
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Admission, Turn, TurnKind

BATCH = 500
FEED_KEPT = timedelta(days=7)

log = get_logger(__name__)


async def order_expired(parts: Parts) -> int:
    """Put an order to finalize into the lane of every conversation whose session has expired; how many are
    new. There is one a day as long as it comes to nothing, on however many nodes."""
    found, after, conversations = 0, None, parts.conversations
    while batch := await parts.store.sessions.unfinalized(after, BATCH):
        for session in batch:
            expires = await conversations.is_session_finalizable(session.entry)
            if expires and await conversations.due_reason(session):
                accepted = await parts.store.turns.accept(_order(parts, session), lambda *_: Admission())
                found += not accepted.repeated
        after = batch[-1]
    return found


def _order(parts: Parts, session: Session) -> Turn:
    now = parts.clock.now()
    return Turn(
        id=new_id("t"),
        kind=TurnKind.EXPIRY,
        session_key=session.entry.session_key,
        source=session.entry.origin or SessionSource.local_cli(),
        text="",
        about=session.id,
        event_id=f"expiry:{session.id}:{session.entry.updated_at.isoformat()}:{now:%Y%m%d}",
        received_at=now,
    )


async def finalize(parts: Parts, turn: Turn) -> None:
    """Take leave of a session, unless that was done or the session was active again meanwhile."""
    # An order that an older version has written has the id in the place of a message.
    session = await parts.store.sessions.find(turn.about or turn.text)
    # This is the conversation's own lane: nobody begins a turn in the session between this look and the end.
    if session is None or session.entry.expiry_finalized or session.status is SessionStatus.ENDED:
        return
    reason = await parts.conversations.due_reason(session)
    if reason is not None:
        await hook_calls.take_leave(parts, session, reason)


class Forgetting:
    """Nothing is forgotten by a clock that was not steady for a while."""

    def __init__(self, parts: Parts, elapsed: Elapsed = since_boot) -> None:
        self._parts = parts
        self._trust = ClockTrust(elapsed)

    async def sweep(self) -> None:
        """Some at a time, so that nobody waits for it."""
        parts, store, now = self._parts, self._parts.store, self._parts.clock.now()
        if not self._trust.holds(now):
            return
        await store.feed.prune(now - FEED_KEPT)
        await store.background.prune(now)
        await self._forget_work()
        leave = partial(_take_leave, parts)
        if pruned := await parts.conversations.prune_old_entries(parts.running.prune_days, leave):
            log.info("conversations_pruned", conversations=pruned)
        await parts.filing.sweep()

    async def _forget_work(self) -> None:
        store, running, now = self._parts.store, self._parts.running, self._parts.clock.now()
        kept = now - timedelta(days=running.keep_days)
        unwanted = now - timedelta(seconds=running.delivery_max_age_seconds)
        for forget, before in (
            (store.turns.prune, kept),
            (store.deliveries.prune, kept),
            (store.buttons.prune, kept),
            (partial(store.deliveries.expire_boxes, now), unwanted),
        ):
            while await forget(before, BATCH) == BATCH:
                continue


async def _take_leave(parts: Parts, key: str) -> None:
    """Hooks and the agent hear of the end of a session, unless they have."""
    session = await parts.store.sessions.current(key)
    if session and session.status is SessionStatus.OPEN and not session.entry.expiry_finalized:
        await hook_calls.take_leave(parts, session, EndReason.PRUNED)
