"""After a turn: a session that has reached a limit is checkpointed and followed by a new one."""

import asyncio
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from frontdesk.flow import handover, hook_calls, notices
from frontdesk.flow.crew import Held
from frontdesk.flow.parts import Parts
from frontdesk.logs import get_logger
from frontdesk.model import moves
from frontdesk.model.deliveries import Delivery
from frontdesk.model.moves import Move, Situation
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session
from frontdesk.model.turns import Turn, TurnClaim

LABEL = "marathon-{session_id}"
CHECKPOINT_SECONDS = 600.0

log = get_logger(__name__)


async def rotate(parts: Parts, held: Held[TurnClaim], session: Session, reason: EndReason) -> None:
    """Once a turn's rows are written and its session is over: checkpoint, take leave, end the session, start
    the next, tell people, let go of the lane."""
    claim = held.claim
    await held.confirm()
    checkpointed = await _checkpoint(parts, session.id, claim.turn)
    written = await parts.store.sessions.find(session.id)
    await held.confirm()  # a checkpoint may have taken longer than a lease lasts
    await hook_calls.take_leave(parts, written or session, reason)
    now, fresh_id = parts.clock.now(), parts.conversations.new_id()

    def decide(situation: Situation) -> Move:
        current = situation.current
        if current is None or current.id != session.id:  # somebody has switched or reset meanwhile
            return moves.Stay()
        fresh = current.successor(fresh_id, now, reason)
        return moves.Start(session=replace(fresh, reset_told=True, checkpointed=checkpointed), ends=reason)

    tell = partial(reset_notices, parts, claim.turn, now)
    settled = await parts.store.turns.rotate(claim, decide, parts.conversations.new_id, tell, now)
    if isinstance(settled.move, moves.Start):
        log.info("session_rotated", session=session.id, reason=str(reason))


async def _checkpoint(parts: Parts, session_id: str, turn: Turn) -> bool:
    """Whether there is a checkpoint of the directory as it is now."""
    directory = parts.working_dir_of(turn.source)
    if not (parts.running.checkpoints and parts.snapshots and directory):
        return False
    label = LABEL.format(session_id=session_id)
    try:
        async with asyncio.timeout(CHECKPOINT_SECONDS):
            await parts.snapshots.create_checkpoint(directory, label, session_id, turn.id)
            await parts.store.feed.tell_checkpoint(parts.clock.now(), session_id=session_id, turn_id=turn.id)
    except Exception:
        log.exception("snapshot_failed", session=session_id)
        return False
    return True


def reset_notices(parts: Parts, turn: Turn, now: datetime, session: Session) -> tuple[Delivery, ...]:
    """What people are told of the automatic reset that a session begins with: once, whoever tells it."""
    text = notices.reset_notice(
        session.entry,
        parts.conversations.policy_for(session.entry, turn.source),
        checkpointed=session.checkpointed,
        handed_over=handover.is_due(session),
        previous=session.parent_id,
    )
    named = f"{session.id}-reset"
    told = parts.notices(turn, text, delivery_id=named, at=now) if text else ()
    return tuple(replace(each, session_id=session.id) for each in told)
