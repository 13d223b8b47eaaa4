"""Sessions whose time is over: found in the background, finalized once, in their conversation's own lane."""

from frontdesk.flow import occasions
from frontdesk.flow.parts import Parts, new_id
from frontdesk.model.sessions import Session, SessionStatus
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Admission, Turn, TurnKind

BATCH = 500


class Expiry:
    """Puts an order to finalize into the lane of every conversation whose session has expired."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def sweep(self) -> int:
        """Look at every session that is not finalized; for how many an order is new."""
        found, after = 0, None
        while batch := await self._parts.store.sessions.unfinalized(after, BATCH):
            for session in batch:
                found += await self._order(session)
            after = batch[-1]
        return found

    async def _order(self, session: Session) -> bool:
        conversations = self._parts.conversations
        if not await conversations.is_session_finalizable(session.entry):
            return False
        if await conversations.due_reason(session) is None:
            return False
        accepted = await self._parts.store.turns.accept(self._turn(session), lambda *_: Admission())
        return not accepted.repeated

    def _turn(self, session: Session) -> Turn:
        """The order. There is one a day as long as it comes to nothing, on however many nodes.

        A node of an older version that claims it looks for the session's id in the text, finds none and ends
        the order. Then the session is finalized by a later day's order, on a node of this version.
        """
        now = self._parts.clock.now()
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
    if session is None or session.entry.expiry_finalized or session.status is SessionStatus.ENDED:
        return
    reason = await parts.conversations.due_reason(session)
    if reason is not None:
        await occasions.take_leave(parts, session, reason)
