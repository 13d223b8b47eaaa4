"""Requests as they come in: each is known already, decided at once, joined to one that waits, or waits.

Budgets bound how much may be asked of people, and how much may be decided without them.
"""

import math
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.confirmations import Rules, Tell
from frontdesk.contracts.store import NewId, Swift, Work
from frontdesk.model import confirmations
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import AskedAction, Confirmation, Settings, Status, Submission, Submitted
from frontdesk.model.rules import Effect, Ruling
from frontdesk.model.spellings import skeleton
from frontdesk.stores import audit
from frontdesk.stores.columns import MICROS_A_SECOND, to_micros
from frontdesk.stores.confirmation_rows import (
    CONFIRMATIONS,
    read_callbacks,
    write_callbacks,
)
from frontdesk.stores.confirmations import requests
from frontdesk.stores.work import Noun, value

MUTE = timedelta(seconds=confirmations.MUTE_SECONDS)


class SubmissionIntentions(Noun):
    def submit(
        self,
        submission: Submission,
        rules: Rules,
        settings: Settings,
        now: datetime,
        *,
        new_id: NewId,
        tell: Tell,
    ) -> Coroutine[Any, Any, Submitted]:
        """Take a request in, in one transaction and in this order: the same idempotency key of the same
        requester (KeyReused when it was for another action); a rule that denies; the same action denied to
        the same credential a while ago, which stays denied; the same action of the same requester in the same
        conversation, and of the same turn, that waits already; a rule that allows; the same details denied
        under another name; a pause of the credential (RequesterPaused); the action's rate, however it is
        written (RateLimited); the credential's budget of prompts (PromptsUsedUp); how many wait
        (TooManyPending); else it waits. ``tell`` is asked only for one that waits anew,
        without a precedent: who submits has looked for it before, and held up nobody.

        Who joins one that waits takes its description, terms and end as they are; its decision is sent to the
        joiner's callback as well. What is decided at once is bounded, too, and so are keys and callbacks of
        one that waits (RateLimited); of what is denied at once neither payload nor description is kept."""
        # What is long is looked through by the rules, too, before anybody is told of it.
        form = Swift if len(submission.payload) <= requests.SWIFT_BYTES else partial
        return self._engine.write(form(_take_in, submission, rules, settings, now, new_id, tell))


def _take_in(
    submission: Submission, rules: Rules, settings: Settings, now: datetime, new_id: NewId, tell: Tell
) -> Work[Submitted]:
    yield from requests.pass_entrance()
    if known := (yield from _of_key(submission)):
        return Submitted(confirmation=known, repeated=True, automatic=known.is_by_rule)
    ruling = rules((yield from requests.rules_to_ask(now)))
    same = yield from alike(submission, now)
    waiting = [each for each in same if each.status is Status.PENDING]
    verdict = _verdict(submission, ruling, same)
    if verdict is None and waiting:
        return (yield from _join(submission, waiting[-1], now))
    fresh = requests.new_confirmation(submission, ruling.terms, new_id(), now)
    if verdict:
        return (yield from _decide_at_once(submission, fresh, *verdict))
    yield from check_load(submission, settings, now)
    yield from requests.insert(fresh)
    yield from _keep_key(submission, fresh.id, now)
    yield from requests.tell_of([fresh], tell, looks=False)
    submitted = _entry(AuditKind.SUBMITTED, fresh, now, rule=fresh.terms.rule)
    yield from requests.write_down(submitted, told=True)
    return Submitted(confirmation=fresh)


def _of_key(submission: Submission) -> Work[Confirmation | None]:
    """What the requester's idempotency key was used for."""
    if submission.idempotency_key is None:
        return None
    values = {"requester": submission.requester, "key": requests.hash_key(submission.idempotency_key)}
    known = yield from CONFIRMATIONS.one("confirmation_of_key", **values)
    if known and known.digest != submission.digest:
        raise errors.KeyReused()
    return known


def _keep_key(submission: Submission, confirmation_id: str, now: datetime) -> Work[None]:
    if submission.idempotency_key is not None:
        used = {"requester": submission.requester, "key": requests.hash_key(submission.idempotency_key)}
        yield "put_confirmation_key", {**used, "confirmation_id": confirmation_id, "now": to_micros(now)}


def alike(wanted: Submission | Confirmation, now: datetime) -> Work[Sequence[Confirmation]]:
    """The same request as far as it waits, and what mutes it: the same details, whatever they are asked for
    as. A clock that was set back mutes nothing for long."""
    return (
        yield from CONFIRMATIONS.many(
            "same_requests",
            requester=wanted.requester,
            digest=wanted.digest,
            credential=confirmations.credential_of(wanted.requester),
            subject=requests.subject_of(wanted),
            session_key=wanted.session_key,
            turn_id=wanted.turn_id,
            **requests.at(now),
            **_around(now, MUTE),
        )
    )


def _verdict(
    submission: Submission, ruling: Ruling, same: Sequence[Confirmation]
) -> tuple[AuditKind, Status, str] | None:
    """What becomes of a request at once, and by whose word; None when it waits, with another or by itself."""
    rule = f"{confirmations.RULE}{ruling.terms.rule}"
    muted = AuditKind.MUTED, Status.DENIED, confirmations.MUTED
    denied = [each.digest for each in same if each.status is Status.DENIED]
    if ruling.effect is Effect.DENY:
        return AuditKind.RULE_DENIED, Status.DENIED, rule
    if submission.digest in denied:
        return muted
    if len(denied) < len(same):
        return None
    if ruling.effect is Effect.ALLOW:  # nobody is asked, whatever else was denied under another name
        return AuditKind.AUTO_APPROVED, Status.APPROVED, rule
    return muted if denied else None


def _join(submission: Submission, waiting: Confirmation, now: datetime) -> Work[Submitted]:
    """The first one's description and time count; whoever joins is told of the decision, too."""
    if submission.idempotency_key is not None:
        keys = yield from value("count_confirmation_keys", confirmation_id=waiting.id)
        _check_joined(waiting, keys, confirmations.MOST_KEYS, now)
    waiting = yield from _add_callback(submission, waiting, now)
    yield from _keep_key(submission, waiting.id, now)
    yield from requests.write_down(*(yield from audit.admit(_entry(AuditKind.COALESCED, waiting, now))))
    return Submitted(confirmation=waiting, repeated=True)


def _add_callback(submission: Submission, waiting: Confirmation, now: datetime) -> Work[Confirmation]:
    """The request, which may have been decided meanwhile: then the answer says so, and nobody is called."""
    wanted = read_callbacks(submission.callback_url)
    if set(wanted) <= set(waiting.callbacks):
        return waiting
    found = yield from requests.locked(waiting.id)
    if found.status is not Status.PENDING:
        return found
    _check_joined(waiting, len(waiting.callbacks), confirmations.MOST_CALLBACKS, now)
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
    yield from requests.insert(decided)
    yield from _keep_key(submission, decided.id, now)
    yield from requests.write_down(_entry(kind, decided, now))
    return Submitted(confirmation=decided, automatic=decided.is_by_rule)


def _entry(kind: AuditKind, request: Confirmation, when: datetime, **facts: Any) -> AuditEntry:
    """The entry of something that was asked for: its requester's, or of whatever decided at once."""
    actor = request.resolved_by or request.requester
    about = {"action": request.action, "requester": request.requester}
    return requests.entry_of(kind, request, actor, when, **about, **facts)


def check_load(wanted: AskedAction, settings: Settings, now: datetime) -> Work[None]:
    """Whether people may be asked. An action counts however it is written, a credential whatever it asks for.
    What was asked for after now, by a clock that was set back, counts as long as what was asked before. What
    was withdrawn counts, too: people were told of it."""
    who, seconds = confirmations.credential_of(wanted.requester), settings.window_seconds
    values = {"reads_as": skeleton(wanted.action), "credential": who, **requests.at(now)}
    values |= _around(now, timedelta(seconds=seconds))
    ((lately, first_at, prompts, prompted_at, waiting, ends_at, denials),) = yield "confirmation_load", values
    if denials is not None:
        raise errors.RequesterPaused(who=who, denials=denials)
    if lately >= settings.rate_limit:
        raise _too_often(wanted.action, settings.rate_limit, seconds, first_at, now)
    if prompts >= settings.prompts_per_hour:
        raise errors.PromptsUsedUp(
            who=who,
            limit=settings.prompts_per_hour,
            window_seconds=seconds,
            retry_after_seconds=_room_in(seconds, prompted_at, now),
        )
    if waiting >= confirmations.MOST_PENDING:
        raise errors.TooManyPending(
            pending=waiting,
            window_seconds=seconds,
            retry_after_seconds=_seconds_until(ends_at, now, most=seconds),
        )


def _check_haste(submission: Submission, now: datetime) -> Work[None]:
    """Nobody's time limits what no person decides; the space that it takes does. Those without a credential
    share one allowance: a name that anybody can change bounds nobody."""
    seconds, most = confirmations.AT_ONCE_SECONDS, confirmations.MOST_AT_ONCE
    who = confirmations.credential_of(submission.requester)
    values = {"credential": who, **_around(now, timedelta(seconds=seconds))}
    ((lately, first_at),) = yield "decided_at_once", values
    if lately >= most:
        raise _too_often(submission.action, most, seconds, first_at, now)


def _check_joined(waiting: Confirmation, joined: int, most: int, now: datetime) -> None:
    """Who joins a request with ever new keys or addresses takes space, too, until its time is over."""
    if joined >= most:
        began = to_micros(waiting.created_at)
        raise _too_often(waiting.action, most, waiting.timeout_seconds, began, now)


def _around(now: datetime, window: timedelta) -> dict[str, int]:
    return {"since": to_micros(now - window), "until": to_micros(now + window)}


def _too_often(
    action: str, limit: int, seconds: int, first_at: int | None, now: datetime
) -> errors.RateLimited:
    return errors.RateLimited(
        action=action,
        limit=limit,
        window_seconds=seconds,
        retry_after_seconds=_room_in(seconds, first_at, now),
    )


def _room_in(seconds: int, first_at: int | None, now: datetime) -> int:
    """There is room again when the first of so many is longer ago than these seconds."""
    room_at = None if first_at is None else first_at + seconds * MICROS_A_SECOND
    return _seconds_until(room_at, now, most=seconds)


def _seconds_until(moment: int | None, now: datetime, *, most: int) -> int:
    """One at least, and as many as can be when the moment is not known."""
    left = most if moment is None else math.ceil((moment - to_micros(now)) / MICROS_A_SECOND)
    return max(1, min(left, most))
