"""Requests as they come in: each is known already, decided at once, joined to one that waits, or waits.

Budgets bound how much may be asked of people, and how much may be decided without them.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.confirmations import Rules, Tell
from frontdesk.contracts.store import NewId, Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import (
    AT_ONCE_SECONDS,
    MOST_AT_ONCE,
    MOST_CALLBACKS,
    MOST_KEYS,
    MOST_PENDING,
    MUTE_SECONDS,
    MUTED,
    RULE,
    AskedAction,
    Confirmation,
    Settings,
    Status,
    Submission,
    Submitted,
    is_reserved,
)
from frontdesk.model.rules import Effect, Ruling
from frontdesk.model.spellings import skeleton
from frontdesk.stores import audit
from frontdesk.stores.columns import from_micros, to_micros
from frontdesk.stores.confirmations.requests import (
    at,
    entry_of,
    hash_key,
    insert,
    locked,
    new_confirmation,
    pass_entrance,
    ring_bells,
    tell_of,
)
from frontdesk.stores.confirmations.rules import holding
from frontdesk.stores.rows import CONFIRMATIONS, read_callbacks, write_callbacks
from frontdesk.stores.work import Noun, value, writes

MUTE = timedelta(seconds=MUTE_SECONDS)


class SubmissionIntentions(Noun):
    @writes
    def submit(
        self,
        submission: Submission,
        rules: Rules,
        settings: Settings,
        now: datetime,
        *,
        new_id: NewId,
        tell: Tell,
    ) -> Work[Submitted]:
        """Take a request in, in one transaction and in this order: the same idempotency key of the same
        requester (KeyReused when it was for another action); a rule that denies; the same action denied to
        the same requester a while ago, which stays denied; the same action of the same requester in the same
        conversation, and of the same turn, that waits already; a rule that allows; the action's rate, however
        it is written (RateLimited); the budget of prompts (TooManyPending); else it waits. ``tell`` is asked
        only for one that waits anew.

        Who joins one that waits takes its description, terms and end as they are; its decision is sent to the
        joiner's callback as well. What is decided at once is bounded, too, and so are keys and callbacks of
        one that waits (RateLimited); of what is denied at once neither payload nor description is kept."""
        yield from pass_entrance()
        if known := (yield from _of_key(submission)):
            return Submitted(confirmation=known, repeated=True, automatic=known.is_by_rule)
        ruling = rules((yield from holding(now)))
        same = yield from alike(submission, now)
        verdict = _verdict(ruling, same)
        if verdict is None and same:
            return (yield from _join(submission, same[-1], now))
        fresh = new_confirmation(submission, ruling.terms, new_id(), now)
        if verdict:
            return (yield from _decide_at_once(submission, fresh, *verdict))
        yield from check_load(submission.action, settings, now)
        yield from insert(fresh)
        yield from _keep_key(submission, fresh.id, now)
        yield from tell_of([fresh], tell)
        yield from audit.append(_entry(AuditKind.SUBMITTED, fresh, now, rule=fresh.terms.rule))
        yield from ring_bells(told=True)
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
        used = {"requester": submission.requester, "key": hash_key(submission.idempotency_key)}
        yield "put_confirmation_key", {**used, "confirmation_id": confirmation_id, "now": to_micros(now)}


def alike(wanted: AskedAction, now: datetime) -> Work[Sequence[Confirmation]]:
    """The same request, as far as it waits or mutes. A clock that was set back mutes nothing for long."""
    return (
        yield from CONFIRMATIONS.many(
            "same_requests",
            requester=wanted.requester,
            digest=wanted.digest,
            session_key=wanted.session_key,
            turn_id=wanted.turn_id,
            **at(now),
            **_around(now, MUTE),
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
        yield from _check_keys(waiting, now)
    waiting = yield from _add_callback(submission, waiting, now)
    yield from _keep_key(submission, waiting.id, now)
    yield from audit.append(*(yield from audit.admit(_entry(AuditKind.COALESCED, waiting, now))))
    yield from ring_bells()
    return Submitted(confirmation=waiting, repeated=True)


def _add_callback(submission: Submission, waiting: Confirmation, now: datetime) -> Work[Confirmation]:
    """The request, which may have been decided meanwhile: then the answer says so, and nobody is called."""
    wanted = read_callbacks(submission.callback_url)
    if set(wanted) <= set(waiting.callbacks):
        return waiting
    found = yield from locked(waiting.id)
    if found.status is not Status.PENDING:
        return found
    _check_callbacks(waiting, now)
    joined = replace(waiting, callbacks=(*waiting.callbacks, *wanted))
    callbacks = write_callbacks(joined.callbacks)
    yield "put_callbacks", {"confirmation_id": joined.id, "callbacks": callbacks}
    return joined


def _decide_at_once(
    submission: Submission, fresh: Confirmation, kind: AuditKind, status: Status, by: str
) -> Work[Submitted]:
    """What is denied will never be carried out: of that nothing is kept that could be long."""
    now = fresh.created_at
    yield from _check_haste(submission, now)
    decided = fresh.resolved(status, by=by, at=now)
    if status is Status.DENIED:
        decided = replace(decided, payload=None, description="", callbacks=())
    yield from insert(decided)
    yield from _keep_key(submission, decided.id, now)
    yield from audit.append(_entry(kind, decided, now))
    yield from ring_bells()
    return Submitted(confirmation=decided, automatic=decided.is_by_rule)


def _entry(kind: AuditKind, request: Confirmation, at: datetime, **facts: Any) -> AuditEntry:
    """The entry of something that was asked for: its requester's, or of whatever decided at once."""
    actor = request.resolved_by or request.requester
    about = {"action": request.action, "requester": request.requester}
    return entry_of(kind, request, actor, at, **about, **facts)


def check_load(action: str, settings: Settings, now: datetime) -> Work[None]:
    """An action counts however it is written. What was asked for after now, by a clock that was set back,
    counts as long as what was asked before. What was withdrawn counts, too: people were told of it."""
    window = timedelta(seconds=settings.window_seconds)
    values = {"reads_as": skeleton(action), **_around(now, window), **at(now)}
    ((lately, first_at, waiting, ends_at),) = yield "confirmation_load", values
    if lately >= settings.rate_limit:
        raise errors.RateLimited(
            action=action,
            limit=settings.rate_limit,
            window_seconds=settings.window_seconds,
            retry_after_seconds=_seconds_until(first_at, window, now, most=settings.window_seconds),
        )
    if waiting >= MOST_PENDING:
        raise errors.TooManyPending(
            pending=waiting,
            window_seconds=settings.window_seconds,
            retry_after_seconds=_seconds_until(ends_at, timedelta(0), now, most=settings.window_seconds),
        )


def _check_haste(submission: Submission, now: datetime) -> Work[None]:
    """Nobody's time limits what no person decides; the space that it takes does. Those without a credential
    share one allowance: a name that anybody can change bounds nobody."""
    window = timedelta(seconds=AT_ONCE_SECONDS)
    query = "decided_at_once" if is_reserved(submission.requester) else "decided_at_once_of_strangers"
    ((lately, first_at),) = yield query, {"requester": submission.requester, **_around(now, window)}
    if lately >= MOST_AT_ONCE:
        raise errors.RateLimited(
            action=submission.action,
            limit=MOST_AT_ONCE,
            window_seconds=AT_ONCE_SECONDS,
            retry_after_seconds=_seconds_until(first_at, window, now, most=AT_ONCE_SECONDS),
        )


def _check_keys(waiting: Confirmation, now: datetime) -> Work[None]:
    """Who joins a request with ever new keys takes space, too."""
    if (yield from value("count_confirmation_keys", confirmation_id=waiting.id)) >= MOST_KEYS:
        raise _joined_too_often(waiting, MOST_KEYS, now)


def _check_callbacks(waiting: Confirmation, now: datetime) -> None:
    """And so does who joins it with ever new addresses."""
    if len(waiting.callbacks) >= MOST_CALLBACKS:
        raise _joined_too_often(waiting, MOST_CALLBACKS, now)


def _around(now: datetime, window: timedelta) -> dict[str, int]:
    return {"since": to_micros(now - window), "until": to_micros(now + window)}


def _joined_too_often(waiting: Confirmation, limit: int, now: datetime) -> errors.RateLimited:
    ends_at, most = to_micros(waiting.expires_at), waiting.timeout_seconds
    return errors.RateLimited(
        action=waiting.action,
        limit=limit,
        window_seconds=most,
        retry_after_seconds=_seconds_until(ends_at, timedelta(0), now, most=most),
    )


def _seconds_until(first_at: int | None, window: timedelta, now: datetime, *, most: int) -> int:
    """In how many seconds, one at least, there is room again when nobody decides before."""
    if first_at is None:
        return max(most, 1)
    left = (from_micros(first_at) + window - now).total_seconds()
    return max(1, min(math.ceil(left), most))
