"""Sweeps: what happens to requests by the clock, and when nobody waits for them any more."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from frontdesk.contracts.confirmations import Tell
from frontdesk.contracts.store import Row, Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import TIMEOUT, WITHDRAWN, Confirmation, Status
from frontdesk.model.lanes import Lease
from frontdesk.stores import audit
from frontdesk.stores.columns import to_micros
from frontdesk.stores.confirmations.asked import at, tell_of
from frontdesk.stores.confirmations.requests import DIGEST, ID
from frontdesk.stores.lanes import hold
from frontdesk.stores.rows import CONFIRMATIONS

ESCALATION = "system:escalation"


def expire(now: datetime, limit: int, tell: Tell) -> Work[Sequence[Confirmation]]:
    overdue = yield "overdue_confirmations", {**at(now), "limit": limit}
    ended = yield from _end(overdue, TIMEOUT, now)
    unwanted = yield "waiting_for_nobody", {"limit": limit}
    ended += yield from _end(unwanted, WITHDRAWN, now)
    yield from tell_of(ended, tell)
    yield from audit.append(
        *_swept(AuditKind.EXPIRED, overdue, TIMEOUT, now, Status.EXPIRED),
        *_swept(AuditKind.WITHDRAWN, unwanted, WITHDRAWN, now, Status.EXPIRED),
    )
    return ended


def withdraw(turn_id: str, lease: Lease | None, now: datetime, tell: Tell) -> Work[Sequence[Confirmation]]:
    found = yield "waiting_of_turn", {"turn_id": turn_id}
    if lease:
        yield from hold(lease)
    ended = yield from _end(found, WITHDRAWN, now)
    yield from tell_of(ended, tell)
    yield from audit.append(*_swept(AuditKind.WITHDRAWN, found, WITHDRAWN, now, Status.EXPIRED))
    return ended


def _end(found: list[Row], by: str, now: datetime) -> Work[list[Confirmation]]:
    """Those that can be read, as they are then."""
    for each in found:
        yield "expire_confirmation", {"confirmation_id": each[ID], "now": to_micros(now), "by": by}
    readable = filter(None, map(CONFIRMATIONS.read, found))
    return [asked.resolved(Status.EXPIRED, by=by, at=now) for asked in readable]


def escalate(now: datetime, limit: int, tell: Tell) -> Work[Sequence[Confirmation]]:
    found = yield "escalating_confirmations", {**at(now), "limit": limit}
    for each in found:
        yield "escalate_confirmation", {"confirmation_id": each[ID], "now": to_micros(now)}
    passed = list(filter(None, map(CONFIRMATIONS.read, found)))
    yield from tell_of(passed, tell)
    yield from audit.append(*_swept(AuditKind.ESCALATED, found, ESCALATION, now, Status.PENDING))
    return passed


def _swept(
    kind: AuditKind, found: list[Row], actor: str, now: datetime, status: Status
) -> Iterable[AuditEntry]:
    """Entries also of rows that cannot be read, which would come back for ever otherwise."""
    for each in found:
        facts = {"status": str(status)}
        yield AuditEntry(
            kind=kind, at=now, actor=actor, confirmation_id=each[ID], digest=each[DIGEST], facts=facts
        )
