"""Votes: what people say to a request, until one decides it or its time is over."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.confirmations import Check, Tell
from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditKind
from frontdesk.model.confirmations import TIMEOUT, Confirmation, Status, Vote
from frontdesk.stores import audit
from frontdesk.stores.columns import clean, maybe_micros, to_micros
from frontdesk.stores.confirmations.asked import entry_of, locked, same_digest, tell_of
from frontdesk.stores.confirmations.requests import hash_text


def cast(confirmation_id: str, check: Check, vote: Vote, now: datetime, tell: Tell) -> Work[Confirmation]:
    """The confirmation after the vote; an expired one came too late for it."""
    asked = yield from locked(confirmation_id)
    if asked.is_overdue(now):
        return (yield from time_out(asked, now, tell))
    if asked.status is not Status.PENDING:
        raise asked.too_late
    check(asked)
    _check_vote(asked, vote)
    names = vote.people | {vote.by}
    others = tuple(person for person in asked.approvals if person not in names)
    if vote.approves and len(others) < len(asked.approvals):
        return asked
    return (yield from _count(asked, others, vote, now, tell))


def _check_vote(asked: Confirmation, vote: Vote) -> None:
    if vote.digest is not None and not same_digest(asked.digest, vote.digest):
        raise errors.DigestMismatch(confirmation_id=asked.id)
    if asked.terms.needs_reason and not (vote.reason or "").strip():
        raise errors.ReasonMissing(confirmation_id=asked.id)


def _count(
    asked: Confirmation, others: tuple[str, ...], vote: Vote, now: datetime, tell: Tell
) -> Work[Confirmation]:
    """Add a vote: the last that was needed decides."""
    name, reason = clean(vote.name), clean(vote.reason)
    approvals = (*others, vote.by) if vote.approves else others
    voted = replace(asked, approvals=approvals)
    kind = AuditKind.VOTED
    if not vote.approves or len(approvals) >= asked.terms.quorum:
        status = Status.APPROVED if vote.approves else Status.DENIED
        kind = AuditKind(status)
        voted = voted.resolved(status, by=vote.by, at=now, resolved_as=name, reason=reason)
    yield (
        "put_vote",
        {
            "confirmation_id": asked.id,
            "person": vote.by,
            "approves": int(vote.approves),
            "name": name,
            "reason": reason,
            "now": to_micros(now),
        },
    )
    yield from _write(voted)
    yield from tell_of([voted], tell)
    facts = {"approvals": len(approvals), "quorum": asked.terms.quorum}
    said = None if reason is None else hash_text(reason)
    yield from audit.append(entry_of(kind, voted, vote.by, now, **facts, reason_digest=said))
    return voted


def _write(voted: Confirmation) -> Work[None]:
    values: dict[str, Any] = {"confirmation_id": voted.id, "approvals": msgspec.json.encode(voted.approvals)}
    if voted.status is Status.PENDING:
        yield "count_approval", values
        return
    values |= {"status": str(voted.status), "now": maybe_micros(voted.resolved_at), "by": voted.resolved_by}
    if not (yield "resolve_confirmation", values):
        raise (yield from locked(voted.id)).too_late


def time_out(asked: Confirmation, now: datetime, tell: Tell) -> Work[Confirmation]:
    ended = asked.resolved(Status.EXPIRED, by=TIMEOUT, at=now)
    yield "expire_confirmation", {"confirmation_id": asked.id, "now": to_micros(now), "by": TIMEOUT}
    yield from tell_of([ended], tell)
    yield from audit.append(entry_of(AuditKind.EXPIRED, ended, TIMEOUT, now))
    return ended
