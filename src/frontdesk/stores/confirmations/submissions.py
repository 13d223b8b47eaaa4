"""Requests as they come in: each is known already, decided at once, joined to one that waits, or waits."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.confirmations import Rules, Tell
from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import (
    MUTE_SECONDS,
    MUTED,
    RULE,
    Confirmation,
    Settings,
    Status,
    Submission,
    Submitted,
)
from frontdesk.model.rules import Effect, Ruling
from frontdesk.stores import audit
from frontdesk.stores.columns import to_micros
from frontdesk.stores.confirmations import asked, budgets, echoes, rules
from frontdesk.stores.confirmations.asked import NewId
from frontdesk.stores.confirmations.requests import (
    hash_key,
    new_confirmation,
)
from frontdesk.stores.rows import CONFIRMATIONS, read_callbacks, write_callbacks

MUTE = timedelta(seconds=MUTE_SECONDS)


def submit(
    submission: Submission, decide: Rules, settings: Settings, now: datetime, new_id: NewId, tell: Tell
) -> Work[Submitted]:
    yield from asked.pass_door()
    if known := (yield from _of_key(submission)):
        return Submitted(confirmation=known, repeated=True, automatic=known.is_by_rule)
    ruling = decide((yield from rules.holding(now)))
    same = yield from alike(submission, now)
    verdict = _verdict(ruling, same)
    if verdict is None and same:
        return (yield from _join(submission, same[-1], now))
    fresh = new_confirmation(submission, ruling.terms, new_id(), now)
    if verdict:
        return (yield from _decide_at_once(submission, fresh, *verdict))
    yield from budgets.check_load(submission.action, settings, now)
    yield from asked.insert(fresh)
    yield from _keep_key(submission, fresh.id, now)
    yield from asked.tell_of([fresh], tell)
    yield from audit.append(_entry(AuditKind.SUBMITTED, fresh, now, rule=fresh.terms.rule))
    return Submitted(confirmation=fresh)


def _of_key(submission: Submission) -> Work[Confirmation | None]:
    """What the requester's idempotency key was used for."""
    if submission.idempotency_key is None:
        return None
    values = {"requester": submission.requester, "key": hash_key(submission.idempotency_key)}
    known = yield from CONFIRMATIONS.one("confirmation_of_key", **values)
    if known and known.digest != submission.digest:
        raise errors.KeyReused()
    return known


def _keep_key(submission: Submission, confirmation_id: str, now: datetime) -> Work[None]:
    if submission.idempotency_key is not None:
        yield (
            "put_confirmation_key",
            {
                "requester": submission.requester,
                "key": hash_key(submission.idempotency_key),
                "confirmation_id": confirmation_id,
                "now": to_micros(now),
            },
        )


def alike(wanted: Submission | Confirmation, now: datetime) -> Work[Sequence[Confirmation]]:
    """The same request, as far as it waits or mutes. A clock that was set back mutes nothing for long."""
    return (
        yield from CONFIRMATIONS.many(
            "same_requests",
            requester=wanted.requester,
            digest=wanted.digest,
            session_key=wanted.session_key,
            turn_id=wanted.turn_id,
            **asked.at(now),
            since=to_micros(now - MUTE),
            until=to_micros(now + MUTE),
        )
    )


def _verdict(ruling: Ruling, same: Sequence[Confirmation]) -> tuple[AuditKind, Status, str] | None:
    """What becomes of a request at once, and by whose word; None when it waits, with another or by itself."""
    rule = f"{RULE}{ruling.terms.rule}"
    if ruling.effect is Effect.DENY:
        return AuditKind.RULE_DENIED, Status.DENIED, rule
    if any(each.status is Status.DENIED for each in same):
        return AuditKind.MUTED, Status.DENIED, MUTED
    if ruling.effect is Effect.ALLOW and not same:
        return AuditKind.AUTO_APPROVED, Status.APPROVED, rule
    return None


def _join(submission: Submission, waiting: Confirmation, now: datetime) -> Work[Submitted]:
    """The first one's description and time count; whoever joins is told of the decision, too."""
    if submission.idempotency_key is not None:
        yield from budgets.check_keys(waiting, now)
    waiting = yield from _add_callback(submission, waiting, now)
    yield from _keep_key(submission, waiting.id, now)
    yield from audit.append(*(yield from echoes.admit(_entry(AuditKind.COALESCED, waiting, now))))
    return Submitted(confirmation=waiting, repeated=True)


def _add_callback(submission: Submission, waiting: Confirmation, now: datetime) -> Work[Confirmation]:
    """The request, which may have been decided meanwhile: then the answer says so, and nobody is called."""
    wanted = read_callbacks(submission.callback_url)
    if set(wanted) <= set(waiting.callbacks):
        return waiting
    found = yield from asked.locked(waiting.id)
    if found.status is not Status.PENDING:
        return found
    budgets.check_callbacks(waiting, now)
    joined = replace(waiting, callbacks=(*waiting.callbacks, *wanted))
    callbacks = write_callbacks(joined.callbacks)
    yield "put_callbacks", {"confirmation_id": joined.id, "callbacks": callbacks}
    return joined


def _decide_at_once(
    submission: Submission, fresh: Confirmation, kind: AuditKind, status: Status, by: str
) -> Work[Submitted]:
    """What is denied will never be carried out: of that nothing is kept that could be long."""
    now = fresh.created_at
    yield from budgets.check_haste(submission, now)
    decided = fresh.resolved(status, by=by, at=now)
    if status is Status.DENIED:
        decided = replace(decided, payload=None, description="", callbacks=())
    yield from asked.insert(decided)
    yield from _keep_key(submission, decided.id, now)
    yield from audit.append(_entry(kind, decided, now))
    return Submitted(confirmation=decided, automatic=decided.is_by_rule)


def _entry(kind: AuditKind, request: Confirmation, at: datetime, **facts: Any) -> AuditEntry:
    """The entry of something that was asked for: its requester's, or of whatever decided at once."""
    actor = request.resolved_by or request.requester
    about = {"action": request.action, "requester": request.requester}
    return asked.entry_of(kind, request, actor, at, **about, **facts)
