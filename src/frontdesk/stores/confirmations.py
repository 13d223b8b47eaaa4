"""Confirmations, rules, and the log of both.

Locks are taken in one order, so that nobody waits in a circle: the rows of confirmations, the door that
requests come in through, lanes, the audit log.
"""

import hmac
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.confirmations import Check, Owed, Redemption, Rules, Tell
from frontdesk.model.audit import Entry, Kind
from frontdesk.model.audit import Row as AuditRow
from frontdesk.model.confirmations import (
    AT_ONCE_SECONDS,
    GRANT_SECONDS,
    MOST_AT_ONCE,
    MOST_LISTED_BYTES,
    MOST_PENDING,
    MUTE_SECONDS,
    MUTED,
    TIMEOUT,
    Confirmation,
    Settings,
    Status,
    Submission,
    Submitted,
    Terms,
    Vote,
)
from frontdesk.model.rules import Effect, Rule, Ruling
from frontdesk.stores import audit, deliveries
from frontdesk.stores.bells import Bells
from frontdesk.stores.requests import (
    DIGEST,
    ID,
    confirmation_row,
    hash_key,
    hash_text,
    new_confirmation,
    payload_row,
    read_confirmation,
    read_listed,
    read_rule,
    renewed,
    rule_row,
    write_approvals,
)
from frontdesk.stores.rows import clean, from_micros, maybe_micros, maybe_time, to_micros
from frontdesk.stores.work import Engine, Row, Work, row, rows, run

DOOR = "confirmations"
RULE = "rule:"
ESCALATION = "system:escalation"
GRANT = timedelta(seconds=GRANT_SECONDS)
MUTE = timedelta(seconds=MUTE_SECONDS)
LAPSED = "lapsed"

NewId = Callable[[], str]


class Confirmations:
    def __init__(self, engine: Engine, bells: Bells) -> None:
        self._engine = engine
        self._bells = bells

    async def submit(
        self,
        submission: Submission,
        rules: Rules,
        settings: Settings,
        now: datetime,
        *,
        new_id: NewId,
        tell: Tell,
    ) -> Submitted:
        start = partial(_submit, submission, rules, settings, now, new_id, tell)
        submitted = await self._engine.write(start)
        self._ring(told=not submitted.repeated)
        return submitted

    async def vote(
        self, confirmation_id: str, check: Check, vote: Vote, now: datetime, *, tell: Tell
    ) -> Confirmation:
        after = await self._engine.write(partial(_vote, confirmation_id, check, vote, now, tell))
        self._ring(told=True)
        if after.status is Status.EXPIRED:
            raise errors.AlreadyResolved(confirmation_id=confirmation_id, status=str(after.status))
        return after

    async def redeem(
        self,
        confirmation_id: str,
        digest: str,
        by: str,
        now: datetime,
        *,
        new_id: NewId,
        tell: Tell,
        rules: Rules | None = None,
        settings: Settings | None = None,
    ) -> Redemption:
        again = Again(by=by, new_id=new_id, tell=tell, rules=rules, settings=settings)
        redemption = await self._engine.write(partial(_redeem, confirmation_id, digest, now, again))
        self._ring(told=redemption.payload is None)
        return redemption

    async def expire(self, now: datetime, limit: int, *, tell: Tell) -> Sequence[Confirmation]:
        return await self._sweep(_expire, now, limit, tell)

    async def escalate(self, now: datetime, limit: int, *, tell: Tell) -> Sequence[Confirmation]:
        return await self._sweep(_escalate, now, limit, tell)

    async def _sweep(
        self,
        work: Callable[[datetime, int, Tell], Work[Sequence[Confirmation]]],
        now: datetime,
        limit: int,
        tell: Tell,
    ) -> Sequence[Confirmation]:
        swept = await self._engine.write(partial(work, now, limit, tell))
        if swept:
            self._ring(told=True)
        return swept

    async def next_due(self) -> datetime | None:
        found = await self._engine.read(partial(row, "next_confirmation_due"))
        return maybe_time(found[0]) if found else None

    async def find(self, confirmation_id: str) -> Confirmation | None:
        found = await self._engine.glance("confirmation", confirmation_id=confirmation_id)
        return read_confirmation(found[0]) if found else None

    async def status(self, confirmation_id: str) -> Status | None:
        found = await self._engine.glance("confirmation_status", confirmation_id=confirmation_id)
        return next((status for status in Status if found and status == found[0][0]), None)

    async def of_turn(self, turn_id: str, digest: str) -> Confirmation | None:
        found = await self._engine.glance("confirmation_of_turn", turn_id=turn_id, digest=digest)
        return read_confirmation(found[0]) if found else None

    async def list(self, limit: int, status: Status | None = None) -> Sequence[Confirmation]:
        values = {"limit": limit, "most_bytes": MOST_LISTED_BYTES}
        if status is None:
            return await self._engine.read(partial(_listed, "list_confirmations", **values))
        return await self._engine.read(
            partial(_listed, "list_confirmations_with", status=str(status), **values)
        )

    async def count_pending(self, now: datetime) -> int:
        found = await self._engine.read(partial(rows, "count_waiting", now=to_micros(now)))
        return int(found[0][0])

    async def erase(self, confirmation_id: str, by: str, now: datetime) -> bool:
        erased = await self._engine.write(partial(_erase, confirmation_id, by, now))
        self._ring()
        return erased

    async def claim_callbacks(self, now: datetime, until: datetime, limit: int) -> Sequence[Owed]:
        start = partial(_claim_callbacks, now, until, limit)
        return await self._engine.write(start, lazy=True)

    async def retry_callback(self, confirmation_id: str, due_at: datetime) -> None:
        values = {"confirmation_id": confirmation_id, "due_at": to_micros(due_at)}
        await self._engine.write(partial(run, "move_callback", **values), lazy=True)

    async def drop_callback(self, confirmation_id: str) -> None:
        await self._engine.write(partial(run, "drop_callback", confirmation_id=confirmation_id))

    async def next_callback(self) -> datetime | None:
        found = await self._engine.read(partial(row, "next_callback_due"))
        return maybe_time(found[0]) if found else None

    async def add_rule(self, rule: Rule, now: datetime) -> None:
        await self._engine.write(partial(_add_rule, rule, now))
        self._ring()

    async def revoke_rule(self, rule_id: str, by: str, now: datetime) -> bool:
        revoked = await self._engine.write(partial(_revoke_rule, rule_id, by, now))
        self._ring()
        return revoked

    async def rules(self, now: datetime) -> Sequence[Rule]:
        return await self._engine.read(partial(_rules, now))

    async def audit_rows(self, after: int, limit: int) -> Sequence[AuditRow]:
        return await audit.read(self._engine, "audit_rows", after=after, limit=limit)

    async def audit_newest(self, limit: int) -> Sequence[AuditRow]:
        return await audit.read(self._engine, "audit_newest", limit=limit)

    def _ring(self, told: bool = False) -> None:
        self._bells.ring(Topic.CONFIRMATIONS)
        if told:
            self._bells.ring(Topic.DELIVERIES)


def _one(query: str, **values: Any) -> Work[Confirmation | None]:
    found = yield from row(query, **values)
    return read_confirmation(found) if found else None


def _many(query: str, **values: Any) -> Work[Sequence[Confirmation]]:
    found = map(read_confirmation, (yield from rows(query, **values)))
    return [each for each in found if each is not None]


def _listed(query: str, **values: Any) -> Work[Sequence[Confirmation]]:
    found = map(read_listed, (yield from rows(query, **values)))
    return [each for each in found if each is not None]


def _locked(confirmation_id: str) -> Work[Confirmation]:
    """The confirmation, which nobody else changes until the transaction ends."""
    found = yield from _one("confirmation_locked", confirmation_id=confirmation_id)
    if found is None:
        raise errors.UnknownConfirmation(confirmation_id=confirmation_id)
    return found


def _tell(told: Iterable[Confirmation], tell: Tell) -> Work[None]:
    """Tell people, and programs that want to hear of it. Lanes are locked in the order of their names."""
    told = tuple(told)
    for each in told:
        if each.callback_url and each.status is not Status.PENDING:
            yield from run("owe_callback", confirmation_id=each.id, now=maybe_micros(each.resolved_at))
    found = [delivery for each in told for delivery in tell(each)]
    yield from deliveries.add(sorted(found, key=lambda delivery: delivery.lane))


def _entry(kind: Kind, asked: Confirmation, actor: str, at: datetime, **facts: Any) -> Entry:
    known = {name: value for name, value in facts.items() if value is not None}
    return Entry(
        kind=kind,
        at=at,
        actor=actor,
        confirmation_id=asked.id,
        digest=asked.digest,
        facts={"status": str(asked.status), **known},
    )


def _asked(kind: Kind, asked: Confirmation, at: datetime, **facts: Any) -> Entry:
    """The entry of something that was asked for: its requester's, or of whatever decided at once."""
    actor = asked.resolved_by or asked.requester
    return _entry(kind, asked, actor, at, action=asked.action, requester=asked.requester, **facts)


# Requests


def _submit(
    submission: Submission, rules: Rules, settings: Settings, now: datetime, new_id: NewId, tell: Tell
) -> Work[Submitted]:
    yield from run("lock_key", key=DOOR)
    if known := (yield from _of_key(submission)):
        return Submitted(confirmation=known, repeated=True, automatic=_by_rule(known))
    ruling = rules((yield from _rules(now)))
    same = yield from _same(submission, now)
    verdict = _verdict(ruling, same)
    if verdict is None and same:
        return (yield from _join(submission, same[-1], now))
    asked = new_confirmation(submission, ruling.terms, new_id(), now)
    if verdict:
        return (yield from _decide_at_once(submission, asked, *verdict))
    yield from _check_load(submission.action, settings, now)
    yield from _insert(asked)
    yield from _keep_key(submission, asked.id)
    yield from _tell([asked], tell)
    yield from audit.append(_asked(Kind.SUBMITTED, asked, now, rule=asked.terms.rule))
    return Submitted(confirmation=asked)


def _of_key(submission: Submission) -> Work[Confirmation | None]:
    """What the requester's idempotency key was used for."""
    if submission.idempotency_key is None:
        return None
    values = {"requester": submission.requester, "key": hash_key(submission.idempotency_key)}
    known = yield from _one("confirmation_of_key", **values)
    if known and known.digest != submission.digest:
        raise errors.KeyReused()
    return known


def _keep_key(submission: Submission, confirmation_id: str) -> Work[None]:
    if submission.idempotency_key is not None:
        values = {"requester": submission.requester, "key": hash_key(submission.idempotency_key)}
        yield from run("put_confirmation_key", **values, confirmation_id=confirmation_id)


def _by_rule(asked: Confirmation) -> bool:
    return asked.resolved_by is not None and asked.resolved_by.startswith(RULE)


def _same(wanted: Submission | Confirmation, now: datetime) -> Work[Sequence[Confirmation]]:
    """The same request, as far as it waits or mutes. A clock that was set back mutes nothing for long."""
    return (
        yield from _many(
            "same_requests",
            requester=wanted.requester,
            digest=wanted.digest,
            session_key=wanted.session_key,
            now=to_micros(now),
            since=to_micros(now - MUTE),
            until=to_micros(now + MUTE),
        )
    )


def _verdict(ruling: Ruling, same: Sequence[Confirmation]) -> tuple[Kind, Status, str] | None:
    """What becomes of a request at once, and by whose word; None when it waits, with another or by itself."""
    rule = f"{RULE}{ruling.terms.rule}"
    if ruling.effect is Effect.DENY:
        return Kind.RULE_DENIED, Status.DENIED, rule
    if any(each.status is Status.DENIED for each in same):
        return Kind.MUTED, Status.DENIED, MUTED
    if ruling.effect is Effect.ALLOW and not same:
        return Kind.AUTO_APPROVED, Status.APPROVED, rule
    return None


def _join(submission: Submission, waiting: Confirmation, now: datetime) -> Work[Submitted]:
    yield from _keep_key(submission, waiting.id)
    yield from audit.append(_asked(Kind.COALESCED, waiting, now))
    return Submitted(confirmation=waiting, repeated=True)


def _decide_at_once(
    submission: Submission, asked: Confirmation, kind: Kind, status: Status, by: str
) -> Work[Submitted]:
    """What is denied will never be carried out: of that nothing is kept that could be long."""
    now = asked.created_at
    yield from _check_haste(submission, now)
    decided = asked.resolved(status, by=by, at=now)
    if status is Status.DENIED:
        decided = replace(decided, payload=None, description="", callback_url=None)
    yield from _insert(decided)
    yield from _keep_key(submission, decided.id)
    yield from audit.append(_asked(kind, decided, now))
    return Submitted(confirmation=decided, automatic=_by_rule(decided))


def _check_load(action: str, settings: Settings, now: datetime) -> Work[None]:
    """What was asked for after now, by a clock that was set back, counts as long as what was asked before."""
    window = timedelta(seconds=settings.window_seconds)
    ((lately, first_at, waiting, ends_at),) = yield from rows(
        "confirmation_load",
        action=action,
        since=to_micros(now - window),
        until=to_micros(now + window),
        now=to_micros(now),
    )
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
    """Nobody's time limits what no person decides; the space that it takes does."""
    window = timedelta(seconds=AT_ONCE_SECONDS)
    ((lately, first_at),) = yield from rows(
        "decided_at_once",
        requester=submission.requester,
        since=to_micros(now - window),
        until=to_micros(now + window),
    )
    if lately >= MOST_AT_ONCE:
        raise errors.RateLimited(
            action=submission.action,
            limit=MOST_AT_ONCE,
            window_seconds=AT_ONCE_SECONDS,
            retry_after_seconds=_seconds_until(first_at, window, now, most=AT_ONCE_SECONDS),
        )


def _seconds_until(first_at: int | None, window: timedelta, now: datetime, *, most: int) -> int:
    """In how many seconds, one at least, there is room again when nobody decides before."""
    if first_at is None:
        return max(most, 1)
    left = (from_micros(first_at) + window - now).total_seconds()
    return max(1, min(math.ceil(left), most))


def _insert(asked: Confirmation) -> Work[None]:
    yield from run("insert_confirmation", **confirmation_row(asked))
    if asked.payload is not None:
        yield from run("insert_payload", **payload_row(asked))


# Decisions


def _vote(confirmation_id: str, check: Check, vote: Vote, now: datetime, tell: Tell) -> Work[Confirmation]:
    """The confirmation after the vote; an expired one came too late for it."""
    asked = yield from _locked(confirmation_id)
    if _is_overdue(asked, now):
        return (yield from _time_out(asked, now, tell))
    if asked.status is not Status.PENDING:
        raise errors.AlreadyResolved(confirmation_id=asked.id, status=str(asked.status))
    check(asked)
    _check_vote(asked, vote)
    names = vote.people | {vote.by}
    others = tuple(person for person in asked.approvals if person not in names)
    if vote.approves and len(others) < len(asked.approvals):
        return asked
    return (yield from _count(asked, others, vote, now, tell))


def _check_vote(asked: Confirmation, vote: Vote) -> None:
    if vote.digest is not None and not _same_digest(asked.digest, vote.digest):
        raise errors.DigestMismatch(confirmation_id=asked.id)
    if asked.terms.needs_reason and not (vote.reason or "").strip():
        raise errors.ReasonMissing(confirmation_id=asked.id)


def _same_digest(known: str, given: str) -> bool:
    """In a time that tells nothing about where they differ."""
    return hmac.compare_digest(known.encode(), given.encode(errors="replace"))


def _count(
    asked: Confirmation, others: tuple[str, ...], vote: Vote, now: datetime, tell: Tell
) -> Work[Confirmation]:
    """Add a vote: the last that was needed decides."""
    name, reason = clean(vote.name), clean(vote.reason)
    approvals = (*others, vote.by) if vote.approves else others
    voted = replace(asked, approvals=approvals)
    kind = Kind.VOTED
    if not vote.approves or len(approvals) >= asked.terms.quorum:
        status = Status.APPROVED if vote.approves else Status.DENIED
        kind = Kind(status)
        voted = voted.resolved(status, by=vote.by, at=now, resolved_as=name, reason=reason)
    yield from run(
        "put_vote",
        confirmation_id=asked.id,
        person=vote.by,
        approves=int(vote.approves),
        name=name,
        reason=reason,
        now=to_micros(now),
    )
    yield from _write(voted)
    yield from _tell([voted], tell)
    facts = {"approvals": len(approvals), "quorum": asked.terms.quorum}
    said = None if reason is None else hash_text(reason)
    yield from audit.append(_entry(kind, voted, vote.by, now, **facts, reason_digest=said))
    return voted


def _write(voted: Confirmation) -> Work[None]:
    values: dict[str, Any] = {"confirmation_id": voted.id, "approvals": write_approvals(voted)}
    if voted.status is Status.PENDING:
        yield from run("count_approval", **values)
        return
    values |= {"status": str(voted.status), "now": maybe_micros(voted.resolved_at), "by": voted.resolved_by}
    if (yield from row("resolve_confirmation", **values)) is None:
        now = yield from _locked(voted.id)
        raise errors.AlreadyResolved(confirmation_id=voted.id, status=str(now.status))


def _is_overdue(asked: Confirmation, now: datetime) -> bool:
    return asked.status is Status.PENDING and asked.expires_at <= now


def _time_out(asked: Confirmation, now: datetime, tell: Tell) -> Work[Confirmation]:
    ended = asked.resolved(Status.EXPIRED, by=TIMEOUT, at=now)
    yield from run("expire_confirmation", confirmation_id=asked.id, now=to_micros(now), by=TIMEOUT)
    yield from _tell([ended], tell)
    yield from audit.append(_entry(Kind.EXPIRED, ended, TIMEOUT, now))
    return ended


# Grants


class Again(NamedTuple):
    """Who redeems, and how a lapsed grant is asked for again."""

    by: str
    new_id: NewId
    tell: Tell
    rules: Rules | None
    settings: Settings | None


def _redeem(confirmation_id: str, digest: str, now: datetime, again: Again) -> Work[Redemption]:
    by = again.by
    asked = yield from _locked(confirmation_id)
    if _is_overdue(asked, now):
        asked = yield from _time_out(asked, now, again.tell)
    refused = _refusal(asked, digest, now)
    if refused is None:
        return (yield from _use_up(asked, by, now))
    renewal, entries = (yield from _renew(asked, now, again)) if refused == LAPSED else (None, [])
    given = digest if DIGESTED.fullmatch(digest) else None
    refusal = _entry(Kind.REDEEM_REFUSED, asked, by, now, why=refused, given=given)
    yield from audit.append(refusal, *entries)
    return Redemption(confirmation=asked, refused=refused, renewal=renewal)


DIGESTED = re.compile("[0-9a-f]{64}")


def _refusal(asked: Confirmation, digest: str, now: datetime) -> str | None:
    """Why the grant cannot be used: also when the bytes are not those that were approved. By a clock that was
    set back far it counts as lapsed, too."""
    if not _same_digest(asked.digest, digest):
        return "digest"
    if asked.status is not Status.APPROVED or asked.resolved_at is None:
        return str(asked.status)
    if asked.redeemed_at is not None:
        return "redeemed"
    if asked.payload is None:
        return "erased"
    if not _same_digest(asked.digest, sha256(asked.payload).hexdigest()):
        return "digest"
    return None if abs(now - asked.resolved_at) < GRANT else LAPSED


def _use_up(asked: Confirmation, by: str, now: datetime) -> Work[Redemption]:
    values = {"confirmation_id": asked.id, "now": to_micros(now), "by": by}
    if (yield from row("redeem_confirmation", **values)) is None:
        yield from audit.append(_entry(Kind.REDEEM_REFUSED, asked, by, now, why="redeemed"))
        return Redemption(confirmation=asked, refused="redeemed")
    used = replace(asked, redeemed_at=now, redeemed_by=by)
    yield from audit.append(_entry(Kind.REDEEMED, used, by, now))
    return Redemption(confirmation=used, payload=used.payload)


def _renew(
    lapsed: Confirmation, now: datetime, again: Again
) -> Work[tuple[Confirmation | None, list[Entry]]]:
    """Ask again, once, as the rules of today say, unless it waits already or was denied."""
    if lapsed.renewal_of is not None:
        return None, []
    yield from run("lock_key", key=DOOR)
    known = yield from _one("renewal_of", confirmation_id=lapsed.id)
    if known:
        return known, []
    same = yield from _same(lapsed, now)
    if same:
        muted = any(each.status is Status.DENIED for each in same)
        return None if muted else same[-1], []
    terms = yield from _terms_again(lapsed, now, again)
    if terms is None:
        return None, []
    asked = replace(renewed(lapsed, again.new_id(), now), terms=terms)
    yield from _insert(asked)
    yield from _tell([asked], again.tell)
    return asked, [_entry(Kind.RENEWED, asked, again.by, now, renewal_of=lapsed.id)]


def _terms_again(lapsed: Confirmation, now: datetime, again: Again) -> Work[Terms | None]:
    """On which terms it is asked again; None when a rule denies it, or too much is asked already."""
    ruling = again.rules((yield from _rules(now))) if again.rules else None
    try:
        if again.settings:
            yield from _check_load(lapsed.action, again.settings, now)
    except (errors.RateLimited, errors.TooManyPending):
        return None
    if ruling is None or ruling.effect is Effect.ASK:
        return ruling.terms if ruling else lapsed.terms
    return None if ruling.effect is Effect.DENY else Terms()


# By the clock


def _expire(now: datetime, limit: int, tell: Tell) -> Work[Sequence[Confirmation]]:
    found = yield from rows("overdue_confirmations", now=to_micros(now), limit=limit)
    for each in found:
        yield from run("expire_confirmation", confirmation_id=each[ID], now=to_micros(now), by=TIMEOUT)
    readable = filter(None, map(read_confirmation, found))
    ended = [asked.resolved(Status.EXPIRED, by=TIMEOUT, at=now) for asked in readable]
    yield from _tell(ended, tell)
    yield from audit.append(*_swept(Kind.EXPIRED, found, TIMEOUT, now, Status.EXPIRED))
    return ended


def _escalate(now: datetime, limit: int, tell: Tell) -> Work[Sequence[Confirmation]]:
    found = yield from rows("escalating_confirmations", now=to_micros(now), limit=limit)
    for each in found:
        yield from run("escalate_confirmation", confirmation_id=each[ID], now=to_micros(now))
    passed = list(filter(None, map(read_confirmation, found)))
    yield from _tell(passed, tell)
    yield from audit.append(*_swept(Kind.ESCALATED, found, ESCALATION, now, Status.PENDING))
    return passed


def _swept(kind: Kind, found: list[Row], actor: str, now: datetime, status: Status) -> Iterable[Entry]:
    """Entries also of rows that cannot be read, which would come back for ever otherwise."""
    for each in found:
        facts = {"status": str(status)}
        yield Entry(
            kind=kind, at=now, actor=actor, confirmation_id=each[ID], digest=each[DIGEST], facts=facts
        )


def _claim_callbacks(now: datetime, until: datetime, limit: int) -> Work[Sequence[Owed]]:
    values = {"now": to_micros(now), "until": to_micros(until), "limit": limit}
    owed = []
    for confirmation_id, attempts in (yield from rows("claim_callbacks", **values)):
        asked = yield from _one("confirmation", confirmation_id=confirmation_id)
        if asked and asked.callback_url:
            owed.append(Owed(confirmation=asked, attempts=attempts))
        else:  # it was erased meanwhile
            yield from run("drop_callback", confirmation_id=confirmation_id)
    return owed


# Payloads and rules


def _erase(confirmation_id: str, by: str, now: datetime) -> Work[bool]:
    asked = yield from _one("confirmation_locked", confirmation_id=confirmation_id)
    if asked is None or asked.status is Status.PENDING:
        return False
    if (yield from row("erase_payload", confirmation_id=asked.id)) is None:
        return False
    yield from run("erase_reasons", confirmation_id=asked.id)
    yield from audit.append(_entry(Kind.PAYLOAD_ERASED, asked, by, now))
    return True


def _rules(now: datetime) -> Work[Sequence[Rule]]:
    return [read_rule(found) for found in (yield from rows("rules", now=to_micros(now)))]


def _add_rule(rule: Rule, now: datetime) -> Work[None]:
    values = rule_row(replace(rule, created_at=rule.created_at or now))
    if (yield from row("insert_rule", **values)) is None:
        raise errors.InvalidInput(what=f"The rule {rule.id!r}", why="another one had this id")
    facts = {"rule": rule.id, "effect": str(rule.effect), "body_digest": sha256(values["body"]).hexdigest()}
    yield from audit.append(
        Entry(kind=Kind.RULE_ADDED, at=now, actor=rule.created_by, digest=rule.digest, facts=facts)
    )


def _revoke_rule(rule_id: str, by: str, now: datetime) -> Work[bool]:
    if (yield from row("revoke_rule", rule_id=rule_id, now=to_micros(now))) is None:
        return False
    yield from audit.append(Entry(kind=Kind.RULE_REVOKED, at=now, actor=by, facts={"rule": rule_id}))
    return True
