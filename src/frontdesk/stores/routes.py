"""Routes: which session a key is at. One that loses its key has ended."""

from datetime import datetime

from msgspec.structs import replace

from frontdesk.contracts.store import Work
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session, SessionStatus
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import session_row
from frontdesk.stores.work import value


def leave(current: Session | None, reason: EndReason, now: datetime) -> Work[None]:
    """End the session that loses its key; one that was merely closed is over now, too."""
    if current is None:
        return
    if current.status is SessionStatus.OPEN:
        yield "end_session", {"session_id": current.id, "reason": str(reason), "now": to_micros(now)}
    elif current.reason is EndReason.CLOSED:
        yield "update_session", session_row(replace(current, end_reason=str(reason)))


def point(key: str, session: Session) -> Work[None]:
    yield "drop_route_to", {"session_id": session.id}
    yield "point_route", {"key": key, "session_id": session.id}


def route_of(session_id: str) -> Work[str | None]:
    """The key that the session is current for."""
    return value("route_of", session_id=session_id)
