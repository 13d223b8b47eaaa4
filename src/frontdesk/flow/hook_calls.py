"""What hooks are told of, and told again when they could not be started; and the end of a session as they and
the agent hear of it."""

from datetime import timedelta
from functools import partial

import msgspec

from frontdesk import errors
from frontdesk.contracts import hooks
from frontdesk.contracts.hooks import HookEvent
from frontdesk.flow.parts import Parts, new_id
from frontdesk.logs import get_logger
from frontdesk.model.policies import AUTOMATIC, EndReason
from frontdesk.model.sessions import Relation, Session, SessionEntry, SessionStatus
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Admission, Again, Turn, TurnKind

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 3600.0
MAX_TELLINGS = 30
"""About a day, with these pauses; then the hook is given up."""

log = get_logger(__name__)


class HookCall(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a session, as it is kept for another time."""

    event: HookEvent
    session_id: str
    reason: EndReason | None


async def tell(parts: Parts, event: HookEvent, entry: SessionEntry, reason: EndReason | None = None) -> bool:
    """Whether the hooks have heard of it. If one could not be started, they are told again by themselves."""
    occasion = HookCall(event=event, session_id=entry.session_id, reason=reason)
    if await _hear(parts, occasion, entry):
        return True
    await parts.store.turns.accept(_order(parts, occasion, entry), lambda *_: Admission())
    return False


async def tell_again(parts: Parts, turn: Turn) -> Again | None:
    """Tell the hooks once more; how to go on when they still could not be started."""
    occasion = msgspec.json.decode(turn.text, type=HookCall)
    session = await parts.store.sessions.find(occasion.session_id)
    if session is None or (occasion.event is HookEvent.FINALIZE and session.entry.expiry_finalized):
        return None
    if not await _hear(parts, occasion, session.entry):
        if turn.attempts < MAX_TELLINGS:
            return _later(parts, turn)
        log.warning("hook_given_up", hook_event=str(occasion.event), session=session.id, times=turn.attempts)
    if occasion.event is HookEvent.FINALIZE:
        await parts.store.sessions.finalize(session.id)
    return None


async def take_leave(parts: Parts, session: Session, reason: EndReason) -> None:
    """Of a session that ends by itself: tell the hooks, free the agent, record it once the hooks have heard.

    After a crash in between, all of it happens again.
    """
    await tell(parts, HookEvent.END, session.entry, reason)
    heard = await tell(parts, HookEvent.FINALIZE, session.entry, reason)
    await parts.release(session.entry)
    if heard:
        await parts.store.sessions.finalize(session.id)
        log.info("session_finalized", session=session.id, reason=str(reason))


async def leave(parts: Parts, entry: SessionEntry, reason: EndReason) -> None:
    """Of a session that a person has left: tell the hooks, free the agent."""
    await tell(parts, HookEvent.END, entry, reason)
    await parts.release(entry)
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


async def _hear(parts: Parts, occasion: HookCall, entry: SessionEntry) -> bool:
    load = partial(parts.conversations.load_transcript, occasion.session_id)
    try:
        await hooks.tell(parts.hooks, occasion.event, entry, occasion.reason, load)
    except errors.HookNotStarted:
        return False
    return True


def _order(parts: Parts, occasion: HookCall, entry: SessionEntry) -> Turn:
    """In a lane of its own, so that nobody's messages wait for it."""
    order = f"{TurnKind.HOOK}:{occasion.event}:{entry.session_id}"
    return Turn(
        id=new_id("t"),
        kind=TurnKind.HOOK,
        session_key=order,
        source=entry.origin or SessionSource.local_cli(),
        text=msgspec.json.encode(occasion).decode(),
        event_id=f"{order}:{entry.updated_at.isoformat()}",
        received_at=parts.clock.now(),
    )


def _later(parts: Parts, turn: Turn) -> Again:
    seconds = min(FIRST_PAUSE_SECONDS * 2 ** (turn.attempts - 1), LONGEST_PAUSE_SECONDS)
    return Again(due_at=parts.clock.now() + timedelta(seconds=seconds), counts=False)
