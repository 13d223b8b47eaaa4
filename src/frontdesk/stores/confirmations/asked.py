"""Confirmations as they are looked up and written in a transaction, and what the log says of them.

Locks are taken in one order, so that nobody waits in a circle: the rows of confirmations, the entrance that
requests come in through, lanes, the audit log. Who joins a request locks it behind the entrance; those who
hold a row and want the entrance hold one that waits no longer.
"""

import hmac
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from frontdesk import errors
from frontdesk.contracts.confirmations import Tell
from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import CLOCK_SLACK_SECONDS, Confirmation, Status
from frontdesk.stores import deliveries
from frontdesk.stores.columns import maybe_micros, to_micros
from frontdesk.stores.confirmations.requests import confirmation_row, payload_row, read_listed
from frontdesk.stores.rows import CONFIRMATIONS, read_callbacks
from frontdesk.stores.work import first

ENTRANCE = "confirmations"
CLOCK_SLACK = timedelta(seconds=CLOCK_SLACK_SECONDS)

NewId = Callable[[], str]


def listed(query: str, **values: Any) -> Work[Sequence[Confirmation]]:
    found = map(read_listed, (yield query, values))
    return [each for each in found if each is not None]


def locked(confirmation_id: str) -> Work[Confirmation]:
    """The confirmation, which nobody else changes until the transaction ends."""
    found = yield from CONFIRMATIONS.one("confirmation_locked", confirmation_id=confirmation_id)
    if found is None:
        raise errors.UnknownConfirmation(confirmation_id=confirmation_id)
    return found


def pass_door() -> Work[None]:
    """Requests come in one after the other, on however many nodes."""
    yield "lock_key", {"key": ENTRANCE}


def insert(asked: Confirmation) -> Work[None]:
    yield "insert_confirmation", confirmation_row(asked)
    if asked.payload is not None:
        yield "insert_payload", payload_row(asked)


def tell_of(told: Iterable[Confirmation], tell: Tell) -> Work[None]:
    """Tell people, and programs that want to hear of it. Lanes are locked in the order of their names."""
    told = tuple(told)
    for each in told:
        if each.status is not Status.PENDING:
            yield from _owe(each)
    found = [delivery for each in told for delivery in tell(each)]
    yield from deliveries.add(sorted(found, key=lambda delivery: delivery.lane))


def _owe(ended: Confirmation) -> Work[None]:
    """To whoever wants to hear of it by now: somebody may have joined while its row was waited for."""
    found = first((yield "callbacks_of", {"confirmation_id": ended.id}))
    for url in read_callbacks(found[0] if found else None):
        yield (
            "owe_callback",
            {"confirmation_id": ended.id, "url": url, "now": maybe_micros(ended.resolved_at)},
        )


def at(now: datetime) -> dict[str, int]:
    """By which times a query tells what waits: now, and what is too far after it to be true."""
    return {"now": to_micros(now), "latest": to_micros(now + CLOCK_SLACK)}


def same_digest(known: str, given: str) -> bool:
    """In a time that tells nothing about where they differ."""
    return hmac.compare_digest(known.encode(), given.encode(errors="replace"))


def entry_of(kind: AuditKind, asked: Confirmation, actor: str, at: datetime, **facts: Any) -> AuditEntry:
    known = {name: value for name, value in facts.items() if value is not None}
    return AuditEntry(
        kind=kind,
        at=at,
        actor=actor,
        confirmation_id=asked.id,
        digest=asked.digest,
        facts={"status": str(asked.status), **known},
    )
