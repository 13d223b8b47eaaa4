"""Decisions: what people say to a request until one decides it, and how an approved action is given out.

A grant is used up once, within its time; a lapsed one is asked again once.
"""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.confirmations import Check, Counting, Redeemer, Redemption, Renewing, Tell
from frontdesk.contracts.store import NewId, Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.buttons import Press
from frontdesk.model.confirmations import DIGEST, GRANT_SECONDS, TIMEOUT, Confirmation, Status, Terms, Vote
from frontdesk.model.people import Person
from frontdesk.model.rules import Effect
from frontdesk.model.turns import TurnClaim
from frontdesk.stores import audit, buttons, people
from frontdesk.stores.columns import clean, maybe_micros, to_micros
from frontdesk.stores.confirmation_rows import CONFIRMATIONS
from frontdesk.stores.confirmations import precautions, requests
from frontdesk.stores.confirmations.submissions import alike, check_load
from frontdesk.stores.lanes import hold
from frontdesk.stores.work import Noun, writes, writes_swiftly

GRANT = timedelta(seconds=GRANT_SECONDS)
LAPSED, STOPPED = "lapsed", "stopped"
AS_NAMED = Counting()
"""Nobody is known to be anybody else by the settings."""


class Wish(NamedTuple):
    """Who redeems, and how a lapsed grant is asked for again."""

    by: str
    new_id: NewId
    tell: Tell
    renewing: Renewing | None


class DecisionIntentions(Noun):
    async def vote(
        self,
        confirmation_id: str,
        check: Check,
        vote: Vote,
        now: datetime,
        *,
        tell: Tell,
        counting: Counting = AS_NAMED,
        press: Press | None = None,
    ) -> Confirmation:
        """Count a vote, by a press that it uses up; the confirmation after it. UnknownConfirmation;
        AlreadyResolved, also when its time is over, which is written down then; whatever ``check`` raises;
        DigestMismatch when the vote names another action; ReasonMissing; ButtonUsed. Whoever votes twice,
        under whichever names, counts once."""
        after = await self._vote(confirmation_id, check, vote, now, tell, counting, press)
        if after.status is Status.EXPIRED:
            raise errors.AlreadyResolved(confirmation_id=confirmation_id, status=str(after.status))
        return after

    @writes_swiftly
    def _vote(
        self,
        confirmation_id: str,
        check: Check,
        vote: Vote,
        now: datetime,
        tell: Tell,
        counting: Counting,
        press: Press | None,
    ) -> Work[Confirmation]:
        """The confirmation after the vote; an expired one came too late for it."""
        # The row is locked before anybody looks at it: of two votes the second sees what the first did.
        asked = yield from requests.locked(confirmation_id)
        if asked.is_overdue(now):
            return (yield from _time_out(asked, now, tell))
        if asked.status is not Status.PENDING:
            raise asked.too_late
        voter = yield from people.person_behind([vote.by], counting.persons, now)
        check(asked, voter)
        _check_vote(asked, vote)
        said_yes = yield from _different_people(asked, counting, now)
        others = tuple(name for name in said_yes if not voter.may_be(name))
        if vote.approves and len(others) < len(said_yes):
            return replace(asked, approvals=said_yes)
        if press and not (yield from buttons.use(press.token, press.turn_id, now)):
            raise errors.ButtonUsed(confirmation_id=asked.id)
        return (yield from _count_vote(asked, others, vote, now, tell))

    @writes_swiftly
    def redeem(
        self,
        confirmation_id: str,
        digest: str,
        redeemer: Redeemer,
        now: datetime,
        *,
        new_id: NewId,
        tell: Tell,
        renewing: Renewing | None = None,
    ) -> Work[Redemption]:
        """Use the grant up, once, within its time and for exactly these bytes. UnknownConfirmation; whatever
        the redeemer's check raises.

        With the claim of the turn that asked, only while that turn goes on: it is refused when the turn was
        told to stop, and LeaseLost when somebody else has it.

        Rules count when something is submitted: one that was added since refuses neither a vote nor a grant.
        A renewal is asked on the terms of today's rules (on the same as before when there are none to ask),
        unless one denies it or too much is asked already.
        """
        asked = yield from requests.locked(confirmation_id)
        by, claim = redeemer.by, redeemer.claim
        if redeemer.check:
            redeemer.check(asked)
        if asked.is_overdue(now):
            asked = yield from _time_out(asked, now, tell)
        refused = _refusal(asked, digest, now)
        if refused is None and claim:
            refused = yield from _stopped(claim)
        if refused is None:
            return (yield from _use_up(asked, by, now))
        renewal: Confirmation | None = None
        entries: list[AuditEntry] = []
        if refused == LAPSED:
            yield "lapse_confirmation", {"confirmation_id": asked.id, "now": to_micros(now)}
            renewal, entries = yield from _renew(asked, now, Wish(by, new_id, tell, renewing))
        given = digest if DIGEST.fullmatch(digest) else None
        refusal = requests.entry_of(AuditKind.REDEEM_REFUSED, asked, by, now, why=refused, given=given)
        yield from requests.write_down(*(yield from audit.admit(refusal)), *entries, told=True)
        return Redemption(confirmation=asked, refused=refused, renewal=renewal)

    @writes
    def reveal(
        self, confirmation_id: str, check: Check, by: str, now: datetime, *, counting: Counting = AS_NAMED
    ) -> Work[Confirmation]:
        """The confirmation, for somebody who sees what is masked; the audit log says so, unless there is
        nothing to see any more. UnknownConfirmation; whatever ``check`` raises."""
        asked = yield from requests.locked(confirmation_id)
        check(asked, (yield from people.person_behind([by], counting.persons, now)))
        if asked.payload is not None:
            yield from requests.write_down(requests.entry_of(AuditKind.REVEALED, asked, by, now))
        return asked


def _different_people(asked: Confirmation, counting: Counting, now: datetime) -> Work[tuple[str, ...]]:
    """Who said yes, each by their first name. Those who voted as two may be known to be one by now, and
    somebody to be the one who asked."""
    found: dict[str, Person] = {}
    for name in asked.approvals:
        if not any(person.may_be(name) for person in found.values()):
            found[name] = yield from people.person_behind([name], counting.persons, now)
    return tuple(name for name, person in found.items() if not asked.why_own(person, counting.mode))


def _check_vote(asked: Confirmation, vote: Vote) -> None:
    if vote.digest is not None and not requests.same_digest(asked.digest, vote.digest):
        raise errors.DigestMismatch(confirmation_id=asked.id)
    if asked.terms.needs_reason and not (vote.reason or "").strip():
        raise errors.ReasonMissing(confirmation_id=asked.id)


def _count_vote(
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
    said = {"approves": int(vote.approves), "name": name, "reason": reason}
    yield "put_vote", {"confirmation_id": asked.id, "person": vote.by, **said, "now": to_micros(now)}
    yield from _write_vote(voted)
    pauses = yield from precautions.count_decision(voted)
    yield from requests.tell_of([voted], tell)
    facts = {"approvals": len(approvals), "quorum": asked.terms.quorum}
    hashed = None if reason is None else requests.hash_text(reason)
    entry = requests.entry_of(kind, voted, vote.by, now, **facts, reason_digest=hashed)
    yield from requests.write_down(entry, *pauses, told=True)
    return voted


def _write_vote(voted: Confirmation) -> Work[None]:
    values: dict[str, Any] = {"confirmation_id": voted.id, "approvals": msgspec.json.encode(voted.approvals)}
    if voted.status is Status.PENDING:
        yield "count_approval", values
        return
    values |= {"status": str(voted.status), "now": maybe_micros(voted.resolved_at), "by": voted.resolved_by}
    if not (yield "resolve_confirmation", values):
        raise (yield from requests.locked(voted.id)).too_late


def _time_out(asked: Confirmation, now: datetime, tell: Tell) -> Work[Confirmation]:
    ended = asked.resolved(Status.EXPIRED, by=TIMEOUT, at=now)
    yield "expire_confirmation", {"confirmation_id": asked.id, "now": to_micros(now), "by": TIMEOUT}
    yield from requests.tell_of([ended], tell)
    yield from requests.write_down(requests.entry_of(AuditKind.EXPIRED, ended, TIMEOUT, now), told=True)
    return ended


def _refusal(asked: Confirmation, digest: str, now: datetime) -> str | None:
    """Why the grant cannot be used: also when the bytes are not those that were approved. By a clock that was
    set back far it counts as lapsed, too; and one that has lapsed once stays so."""
    if not requests.same_digest(asked.digest, digest):
        return "digest"
    if asked.status is not Status.APPROVED or asked.resolved_at is None:
        return str(asked.status)
    if asked.spent or asked.payload is None:
        return asked.spent or "erased"
    if not requests.same_digest(asked.digest, sha256(asked.payload).hexdigest()):
        return "digest"
    return None if asked.lapsed_at is None and abs(now - asked.resolved_at) < GRANT else LAPSED


def _stopped(claim: TurnClaim) -> Work[str | None]:
    """A turn that was told to stop, or that somebody else has, carries nothing out."""
    yield from hold(claim.lease)
    return None if (yield "turn_goes_on", {"turn_id": claim.turn.id}) else STOPPED


def _use_up(asked: Confirmation, by: str, now: datetime) -> Work[Redemption]:
    values = {"confirmation_id": asked.id, "now": to_micros(now), "by": by}
    if not (yield "redeem_confirmation", values):
        refusal = requests.entry_of(AuditKind.REDEEM_REFUSED, asked, by, now, why="redeemed")
        yield from requests.write_down(*(yield from audit.admit(refusal)), told=True)
        return Redemption(confirmation=asked, refused="redeemed")
    used = replace(asked, redeemed_at=now, redeemed_by=by)
    yield from requests.write_down(requests.entry_of(AuditKind.REDEEMED, used, by, now))
    return Redemption(confirmation=used, payload=used.payload)


def _renew(
    lapsed: Confirmation, now: datetime, wish: Wish
) -> Work[tuple[Confirmation | None, list[AuditEntry]]]:
    """Ask again, once, as the rules of today say, unless it waits already or was denied."""
    if lapsed.renewal_of is not None:
        return None, []
    yield from requests.pass_entrance()
    known = yield from CONFIRMATIONS.one("renewal_of", confirmation_id=lapsed.id)
    if known:
        return known, []
    same = yield from alike(lapsed, now)
    if same:
        muted = any(each.status is Status.DENIED for each in same)
        return None if muted else same[-1], []
    terms = yield from _terms_again(lapsed, now, wish)
    if terms is None:
        return None, []
    asked = replace(requests.renewed(lapsed, wish.new_id(), now), terms=terms)
    yield from requests.insert(asked)
    yield from requests.tell_of([asked], wish.tell)
    return asked, [requests.entry_of(AuditKind.RENEWED, asked, wish.by, now, renewal_of=lapsed.id)]


def _terms_again(lapsed: Confirmation, now: datetime, wish: Wish) -> Work[Terms | None]:
    """On which terms it is asked again; None when a rule denies it, or too much is asked already."""
    if wish.renewing is None:
        return lapsed.terms
    ruling = wish.renewing.rules(lapsed, (yield from requests.rules_to_ask(now)))
    try:
        yield from check_load(lapsed, wish.renewing.settings, now)
    except (errors.RateLimited, errors.TooManyPending, errors.RequesterPaused):
        return None
    if ruling.effect is Effect.ASK:
        return ruling.terms
    return None if ruling.effect is Effect.DENY else Terms()
