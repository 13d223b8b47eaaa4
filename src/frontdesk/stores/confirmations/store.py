"""Confirmations, rules, and the log of both: each intention is one transaction."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.confirmations import Backlog, Check, Owed, Redemption, Renewing, Rules, Tell
from frontdesk.contracts.store import Work, ring
from frontdesk.model.audit import AuditKind
from frontdesk.model.audit import Row as AuditRow
from frontdesk.model.confirmations import (
    MOST_LISTED_BYTES,
    Confirmation,
    Settings,
    Status,
    Submission,
    Submitted,
    Vote,
)
from frontdesk.model.lanes import Lease
from frontdesk.model.rules import Rule
from frontdesk.model.turns import TurnClaim
from frontdesk.stores import audit
from frontdesk.stores.columns import maybe_time, to_micros
from frontdesk.stores.confirmations import (
    echoes,
    forgetting,
    grants,
    rules,
    submissions,
    sweeps,
    votes,
)
from frontdesk.stores.confirmations.asked import NewId, at, entry_of, listed, locked
from frontdesk.stores.rows import CONFIRMATIONS
from frontdesk.stores.work import Noun, first, glances, reads, writes, writes_lazily

OVERDUE = timedelta(minutes=2)


class Confirmations(Noun):
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
        submitted = yield from submissions.submit(submission, rules, settings, now, new_id, tell)
        yield from _ring(told=not submitted.repeated)
        return submitted

    async def vote(
        self, confirmation_id: str, check: Check, vote: Vote, now: datetime, *, tell: Tell
    ) -> Confirmation:
        """Count a vote; the confirmation after it. UnknownConfirmation; AlreadyResolved, also when its time
        is over, which is written down then; whatever ``check`` raises; DigestMismatch when the vote names
        another action; ReasonMissing. Voting twice counts once."""
        after = await self._vote(confirmation_id, check, vote, now, tell)
        if after.status is Status.EXPIRED:
            raise errors.AlreadyResolved(confirmation_id=confirmation_id, status=str(after.status))
        return after

    @writes
    def _vote(
        self, confirmation_id: str, check: Check, vote: Vote, now: datetime, tell: Tell
    ) -> Work[Confirmation]:
        after = yield from votes.cast(confirmation_id, check, vote, now, tell)
        yield from _ring(told=True)
        return after

    @writes
    def redeem(
        self,
        confirmation_id: str,
        digest: str,
        by: str,
        now: datetime,
        *,
        new_id: NewId,
        tell: Tell,
        renewing: Renewing | None = None,
        claim: TurnClaim | None = None,
    ) -> Work[Redemption]:
        """Use the grant up, once, within its time and for exactly these bytes. UnknownConfirmation.

        With the claim of the turn that asked, only while that turn goes on: it is refused when the turn was
        told to stop, and LeaseLost when somebody else has it.

        Rules count when something is submitted: one that was added since refuses neither a vote nor a grant.
        A renewal is asked on the terms of today's rules (on the same as before when there are none to ask),
        unless one denies it or too much is asked already.
        """
        wish = grants.Wish(by=by, new_id=new_id, tell=tell, renewing=renewing, claim=claim)
        redemption = yield from grants.redeem(confirmation_id, digest, now, wish)
        yield from _ring(told=redemption.payload is None)
        return redemption

    @writes
    def expire(self, now: datetime, limit: int, *, tell: Tell) -> Work[Sequence[Confirmation]]:
        """End what has waited for its time, or nobody knows how long since the clock was set back, and what
        waits although its turn has ended; those that ended now."""
        return _ringing(sweeps.expire(now, limit, tell))

    @writes
    def withdraw(
        self, turn_id: str, now: datetime, *, tell: Tell, lease: Lease | None = None
    ) -> Work[Sequence[Confirmation]]:
        """End what a turn still waits for. With the turn's lease, LeaseLost when it holds no longer."""
        return _ringing(sweeps.withdraw(turn_id, lease, now, tell))

    @writes
    def escalate(self, now: datetime, limit: int, *, tell: Tell) -> Work[Sequence[Confirmation]]:
        """Those whose time to be escalated has come since the last call; each is given once."""
        return _ringing(sweeps.escalate(now, limit, tell))

    @reads
    def next_due(self) -> Work[datetime | None]:
        """When something expires or escalates next."""
        found = first((yield "next_confirmation_due", {}))
        return maybe_time(found[0]) if found else None

    @glances
    def find(self, confirmation_id: str) -> Work[Confirmation | None]:
        return CONFIRMATIONS.one("confirmation", confirmation_id=confirmation_id)

    @glances
    def status(self, confirmation_id: str) -> Work[Status | None]:
        """What became of it so far, without reading the rest."""
        found = yield "confirmation_status", {"confirmation_id": confirmation_id}
        return next((status for status in Status if found and status == found[0][0]), None)

    @glances
    def of_turn(self, turn_id: str, digest: str) -> Work[Confirmation | None]:
        """The newest one that a turn asked for this action."""
        return CONFIRMATIONS.one("confirmation_of_turn", turn_id=turn_id, digest=digest)

    @reads
    def list(self, limit: int, status: Status | None = None) -> Work[Sequence[Confirmation]]:
        """Newest first; long payloads are left out."""
        values = {"limit": limit, "most_bytes": MOST_LISTED_BYTES}
        if status is None:
            return listed("list_confirmations", **values)
        return listed("list_confirmations_with", status=str(status), **values)

    @reads
    def count_pending(self, now: datetime) -> Work[int]:
        """How many wait; not those whose time is over."""
        ((number,),) = yield "count_waiting", at(now)
        return int(number)

    @writes
    def reveal(self, confirmation_id: str, check: Check, by: str, now: datetime) -> Work[Confirmation]:
        """The confirmation, for somebody who sees what is masked; the audit log says so, unless there is
        nothing to see any more. UnknownConfirmation; whatever ``check`` raises."""
        asked = yield from locked(confirmation_id)
        check(asked)
        if asked.payload is not None:
            yield from audit.append(entry_of(AuditKind.REVEALED, asked, by, now))
        yield from _ring()
        return asked

    @writes
    def erase(self, confirmation_id: str, by: str, now: datetime) -> Work[bool]:
        """Forget the payload and description of one that was resolved, the reasons that people gave, and the
        texts of the messages that told of it; the audit log stays whole."""
        erased = yield from forgetting.erase(confirmation_id, by, now)
        yield from _ring()
        return erased

    @writes
    def prune(self, before: datetime, now: datetime, limit: int) -> Work[int]:
        """Forget what was decided before then, oldest first, and everything that belongs to it; how many
        there were. The audit log stays whole, and says so."""
        return forgetting.prune(before, now, limit)

    @writes
    def close_echoes(self, now: datetime, limit: int) -> Work[int]:
        """Write into the log how often something happened again that was left out of it; how many there
        were. Requests that join another one, and refusals to redeem, are in it once in a minute each."""
        return echoes.close(now, limit)

    @writes_lazily
    def prune_keys(self, before: datetime, limit: int) -> Work[int]:
        """Forget idempotency keys that were used before then; how many there were."""
        return len((yield "prune_confirmation_keys", {"before": to_micros(before), "limit": limit}))

    @writes_lazily
    def claim_callbacks(self, now: datetime, until: datetime, limit: int) -> Work[Sequence[Owed]]:
        """What programs are to be told now. What is not dropped by then is claimed again."""
        values = {"now": to_micros(now), "until": to_micros(until), "limit": limit}
        owed = []
        for confirmation_id, url, attempts in (yield "claim_callbacks", values):
            asked = yield from CONFIRMATIONS.one("confirmation", confirmation_id=confirmation_id)
            if asked:
                owed.append(Owed(confirmation=asked, url=url, attempts=attempts))
            else:  # its row makes no sense
                yield "drop_callback", {"confirmation_id": confirmation_id, "url": url}
        return owed

    @writes_lazily
    def retry_callback(self, owed: Owed, due_at: datetime) -> Work[None]:
        """It was not heard: claim it again at that time."""
        values = {"confirmation_id": owed.confirmation.id, "url": owed.url}
        yield "move_callback", {**values, "due_at": to_micros(due_at)}

    @writes_lazily
    def hasten_callbacks(self, now: datetime, latest: datetime) -> Work[None]:
        """Who was to be told later than that is to be told now."""
        yield "hasten_callbacks", {"now": to_micros(now), "latest": to_micros(latest)}

    @writes
    def drop_callback(self, owed: Owed) -> Work[None]:
        """It was heard, or given up."""
        yield "drop_callback", {"confirmation_id": owed.confirmation.id, "url": owed.url}

    @reads
    def backlog(self, now: datetime) -> Work[Backlog]:
        """How many programs are still to be told."""
        ((owed, overdue),) = yield "count_callbacks", {"before": to_micros(now - OVERDUE)}
        return Backlog(owed=owed, overdue=overdue)

    @reads
    def next_callback(self) -> Work[datetime | None]:
        found = first((yield "next_callback_due", {}))
        return maybe_time(found[0]) if found else None

    @writes
    def add_rule(self, rule: Rule, now: datetime) -> Work[None]:
        yield from rules.add(rule, now)
        yield from _ring()

    @writes
    def revoke_rule(self, rule_id: str, by: str, now: datetime) -> Work[bool]:
        revoked = yield from rules.revoke(rule_id, by, now)
        yield from _ring()
        return revoked

    @reads
    def rules(self, now: datetime) -> Work[Sequence[Rule]]:
        """The rules that hold, oldest first."""
        return rules.holding(now)

    @reads
    def audit_rows(self, after: int, limit: int) -> Work[Sequence[AuditRow]]:
        """The rows of the audit log, in order."""
        return audit.read("audit_rows", after=after, limit=limit)

    @reads
    def audit_newest(self, limit: int) -> Work[Sequence[AuditRow]]:
        """Newest first."""
        return audit.read("audit_newest", limit=limit)


def _ring(told: bool = False) -> Work[None]:
    yield ring(Topic.CONFIRMATIONS)
    if told:
        yield ring(Topic.DELIVERIES)


def _ringing(sweep: Work[Sequence[Confirmation]]) -> Work[Sequence[Confirmation]]:
    swept = yield from sweep
    if swept:
        yield from _ring(told=True)
    return swept
