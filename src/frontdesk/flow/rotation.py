"""After a turn: a session that has reached a limit is checkpointed and followed by a new one."""

import asyncio
from datetime import datetime

from msgspec.structs import replace

from frontdesk.flow import handover, notices, occasions
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


class Rotation:
    """A session that is over after a turn: carried out once the turn's rows are written."""

    def __init__(self, parts: Parts, claim: TurnClaim, session: Session, reason: EndReason) -> None:
        self._parts = parts
        self._claim = claim
        self._session = session
        self._reason = reason

    async def carry_out(self, held: Held[TurnClaim]) -> None:
        """Checkpoint, take leave, end the session, start the next, tell people, let go of the lane."""
        await held.confirm()
        parts, session = self._parts, self._session
        checkpointed = await self._checkpoint()
        written = await parts.store.sessions.find(session.id)
        await held.confirm()
        await occasions.take_leave(parts, written or session, self._reason)
        now, fresh_id = parts.clock.now(), parts.conversations.new_id()
        settled = await parts.store.turns.rotate(
            self._claim,
            lambda situation: self._decide(situation, fresh_id, now, checkpointed),
            parts.conversations.new_id,
            self._notices,
            now,
        )
        if isinstance(settled.move, moves.Start):
            log.info("session_rotated", session=session.id, reason=str(self._reason))

    def _decide(self, situation: Situation, fresh_id: str, now: datetime, checkpointed: bool) -> Move:
        current = situation.current
        if current is None or current.id != self._session.id:
            return moves.Stay()
        fresh = current.successor(fresh_id, now, self._reason)
        fresh = replace(fresh, reset_told=True, checkpointed=checkpointed)
        return moves.Start(session=fresh, ends=self._reason)

    def _notices(self, session: Session) -> tuple[Delivery, ...]:
        return reset_notices(self._parts, self._claim.turn, session)

    async def _checkpoint(self) -> bool:
        """Whether there is a checkpoint of the directory as it is now."""
        parts, directory = self._parts, self._parts.running.working_dir
        if not (parts.running.checkpoints and parts.snapshots and directory):
            return False
        session_id, turn_id = self._session.id, self._claim.turn.id
        label = LABEL.format(session_id=session_id)
        try:
            async with asyncio.timeout(CHECKPOINT_SECONDS):
                await parts.snapshots.create_checkpoint(directory, label, session_id, turn_id)
        except Exception:
            log.exception("snapshot_failed", session=session_id)
            return False
        return True


def reset_notices(parts: Parts, turn: Turn, session: Session) -> tuple[Delivery, ...]:
    """What people are told of the automatic reset that a session begins with."""
    if not parts.capabilities_of(turn.source).notices:
        return ()
    text = notices.reset_notice(
        session.entry,
        parts.conversations.policy_for(session.entry, turn.source),
        checkpointed=session.checkpointed,
        handed_over=handover.is_due(session),
        previous=session.parent_id,
    )
    return parts.notices(turn, text, session_id=session.id) if text else ()
