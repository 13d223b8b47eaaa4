"""The end of a session as hooks and the agent hear of it."""

from frontdesk.contracts.hooks import HookEvent
from frontdesk.flow import occasions
from frontdesk.flow.parts import Parts
from frontdesk.logs import get_logger
from frontdesk.model.policies import AUTOMATIC, EndReason
from frontdesk.model.sessions import Relation, Session, SessionEntry, SessionStatus

log = get_logger(__name__)


async def take_leave(parts: Parts, session: Session, reason: EndReason) -> None:
    """Of a session that ends by itself: tell the hooks, free the agent, record it once the hooks have heard.

    After a crash in between, all of it happens again.
    """
    await occasions.tell(parts, HookEvent.END, session.entry, reason)
    heard = await occasions.tell(parts, HookEvent.FINALIZE, session.entry, reason)
    await parts.agent.release(session.id)
    if heard:
        await parts.store.sessions.finalize(session.id)
        log.info("session_finalized", session=session.id, reason=str(reason))


async def leave(parts: Parts, entry: SessionEntry, reason: EndReason) -> None:
    """Of a session that a person has left: tell the hooks, free the agent."""
    await occasions.tell(parts, HookEvent.END, entry, reason)
    await parts.agent.release(entry.session_id)
    log.info("session_left", session=entry.session_id, reason=str(reason))


async def take_leave_of_parent(parts: Parts, session: Session) -> None:
    """The same for the session that this one has replaced by itself, when nobody has done it yet."""
    if session.parent_id is None or session.relation is not Relation.RESET:
        return
    parent = await parts.store.sessions.find(session.parent_id)
    if parent is None or parent.status is SessionStatus.OPEN or parent.entry.expiry_finalized:
        return
    if parent.reason in AUTOMATIC:
        await take_leave(parts, parent, parent.reason)
