"""Routes: which session a key is at. One that loses its key has ended."""

import math
from datetime import datetime

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model.chats import ChatBound
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session, SessionStatus
from frontdesk.stores.columns import maybe_time, to_micros, to_minute
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


def check_bound(key: str, bound: ChatBound) -> Work[None]:
    """TooManyChats for somebody who begins one after the other; one that there is goes on."""
    # The lock before the look: of many that are begun at once, each sees those before it.
    yield "lock_key", {"key": f"begun:{bound.owner}"}
    if (yield from value("routed", key=key)) is not None:
        return
    since = bound.now - bound.within
    values = {"owner": bound.owner, "platform": bound.platform, "since": to_micros(since)}
    ((count, first),) = yield "begun_by", {"minute": to_minute(since), **values}
    first_at = maybe_time(first)
    if first_at is not None and count >= bound.most:
        seconds = math.ceil((first_at + bound.within - bound.now).total_seconds())
        raise errors.TooManyChats(count=count, retry_after_seconds=max(1, seconds))
