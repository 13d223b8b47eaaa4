"""Confirmations, rules, and the log of both: each intention is one transaction."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.confirmations import Backlog, Check, Owed, Redemption, Renewing, Rules, Tell
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
from frontdesk.stores.bells import Bells
from frontdesk.stores.confirmations import (
    callbacks,
    echoes,
    forgetting,
    grants,
    reveals,
    rules,
    submissions,
    sweeps,
    votes,
)
from frontdesk.stores.confirmations.asked import NewId, at, listed
from frontdesk.stores.confirmations.requests import read_confirmation
from frontdesk.stores.rows import maybe_time, to_micros
from frontdesk.stores.work import Engine, Work, row, rows, run


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
        start = partial(submissions.submit, submission, rules, settings, now, new_id, tell)
        submitted = await self._engine.write(start)
        self._ring(told=not submitted.repeated)
        return submitted

    async def vote(
        self, confirmation_id: str, check: Check, vote: Vote, now: datetime, *, tell: Tell
    ) -> Confirmation:
        after = await self._engine.write(partial(votes.cast, confirmation_id, check, vote, now, tell))
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
        renewing: Renewing | None = None,
        claim: TurnClaim | None = None,
    ) -> Redemption:
        wish = grants.Wish(by=by, new_id=new_id, tell=tell, renewing=renewing, claim=claim)
        redemption = await self._engine.write(partial(grants.redeem, confirmation_id, digest, now, wish))
        self._ring(told=redemption.payload is None)
        return redemption

    async def expire(self, now: datetime, limit: int, *, tell: Tell) -> Sequence[Confirmation]:
        return await self._sweep(partial(sweeps.expire, now, limit, tell))

    async def withdraw(
        self, turn_id: str, now: datetime, *, tell: Tell, lease: Lease | None = None
    ) -> Sequence[Confirmation]:
        return await self._sweep(partial(sweeps.withdraw, turn_id, lease, now, tell))

    async def escalate(self, now: datetime, limit: int, *, tell: Tell) -> Sequence[Confirmation]:
        return await self._sweep(partial(sweeps.escalate, now, limit, tell))

    async def _sweep(self, start: Callable[[], Work[Sequence[Confirmation]]]) -> Sequence[Confirmation]:
        swept = await self._engine.write(start)
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
            return await self._engine.read(partial(listed, "list_confirmations", **values))
        return await self._engine.read(
            partial(listed, "list_confirmations_with", status=str(status), **values)
        )

    async def count_pending(self, now: datetime) -> int:
        found = await self._engine.read(partial(rows, "count_waiting", **at(now)))
        return int(found[0][0])

    async def reveal(self, confirmation_id: str, check: Check, by: str, now: datetime) -> Confirmation:
        revealed = await self._engine.write(partial(reveals.reveal, confirmation_id, check, by, now))
        self._ring()
        return revealed

    async def erase(self, confirmation_id: str, by: str, now: datetime) -> bool:
        erased = await self._engine.write(partial(forgetting.erase, confirmation_id, by, now))
        self._ring()
        return erased

    async def prune(self, before: datetime, now: datetime, limit: int) -> int:
        return await self._engine.write(partial(forgetting.prune, before, now, limit))

    async def close_echoes(self, now: datetime, limit: int) -> int:
        return await self._engine.write(partial(echoes.close, now, limit))

    async def prune_keys(self, before: datetime, limit: int) -> int:
        values = {"before": to_micros(before), "limit": limit}
        return len(await self._engine.write(partial(rows, "prune_confirmation_keys", **values), lazy=True))

    async def claim_callbacks(self, now: datetime, until: datetime, limit: int) -> Sequence[Owed]:
        start = partial(callbacks.claim, now, until, limit)
        return await self._engine.write(start, lazy=True)

    async def retry_callback(self, owed: Owed, due_at: datetime) -> None:
        values = {"confirmation_id": owed.confirmation.id, "url": owed.url, "due_at": to_micros(due_at)}
        await self._engine.write(partial(run, "move_callback", **values), lazy=True)

    async def hasten_callbacks(self, now: datetime, latest: datetime) -> None:
        values = {"now": to_micros(now), "latest": to_micros(latest)}
        await self._engine.write(partial(run, "hasten_callbacks", **values), lazy=True)

    async def drop_callback(self, owed: Owed) -> None:
        values = {"confirmation_id": owed.confirmation.id, "url": owed.url}
        await self._engine.write(partial(run, "drop_callback", **values))

    async def backlog(self, now: datetime) -> Backlog:
        return await self._engine.read(partial(callbacks.count, now))

    async def next_callback(self) -> datetime | None:
        found = await self._engine.read(partial(row, "next_callback_due"))
        return maybe_time(found[0]) if found else None

    async def add_rule(self, rule: Rule, now: datetime) -> None:
        await self._engine.write(partial(rules.add, rule, now))
        self._ring()

    async def revoke_rule(self, rule_id: str, by: str, now: datetime) -> bool:
        revoked = await self._engine.write(partial(rules.revoke, rule_id, by, now))
        self._ring()
        return revoked

    async def rules(self, now: datetime) -> Sequence[Rule]:
        return await self._engine.read(partial(rules.holding, now))

    async def audit_rows(self, after: int, limit: int) -> Sequence[AuditRow]:
        return await audit.read(self._engine, "audit_rows", after=after, limit=limit)

    async def audit_newest(self, limit: int) -> Sequence[AuditRow]:
        return await audit.read(self._engine, "audit_newest", limit=limit)

    def _ring(self, told: bool = False) -> None:
        self._bells.ring(Topic.CONFIRMATIONS)
        if told:
            self._bells.ring(Topic.DELIVERIES)
