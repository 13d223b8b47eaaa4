"""The confirmation service: holds an action until people have decided about exactly that action."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.confirmations import Check, Counting, Redeemer, Renewing, Tell
from frontdesk.flow import rounds
from frontdesk.flow.clockwatch import ClockTrust, Elapsed, since_boot
from frontdesk.flow.confirmations import submissions
from frontdesk.flow.confirmations.lapsing import Lapses
from frontdesk.flow.confirmations.precautions import check_approver
from frontdesk.flow.confirmations.showing import Showing
from frontdesk.flow.following import follow_audit
from frontdesk.flow.passes import PassBook
from frontdesk.formats import canonical
from frontdesk.logs import get_logger
from frontdesk.model import audit, rules
from frontdesk.model.buttons import Press
from frontdesk.model.confirmations import (
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    Caller,
    CallerKind,
    Confirmation,
    Settings,
    Status,
    Submission,
    Submitted,
    Vote,
)
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import Lease
from frontdesk.model.people import Person
from frontdesk.model.precedents import Precedent
from frontdesk.model.rules import Rule
from frontdesk.model.turns import TurnClaim
from frontdesk.stores.store import Store

ID_BYTES = 8
MOST_LISTED = 500
LONGEST_WAIT_SECONDS = 60.0
SWEPT_AT_ONCE = 100
FOLLOWED_AT_ONCE = 200

UNUSABLE = {
    "redeemed": "it was used before",
    "lapsed": "it was not used in time",
    "pending": "nobody has decided yet",
    "denied": "it was denied",
    "expired": "nobody decided in time",
    "erased": "its payload was erased",
    "stopped": "the turn that asked for it was stopped",
}

log = get_logger(__name__)


def no_one(_: Confirmation, __: Sequence[Delivery]) -> Sequence[Delivery]:
    """Nobody can be told."""
    return ()


class ConfirmationService(Showing):
    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Clock | None = None,
        elapsed: Elapsed = since_boot,
        tell: Tell = no_one,
    ) -> None:
        super().__init__(store.confirmations, settings, clock or SystemClock())
        self._store = store
        self.passes = PassBook(store, self._clock, settings.persons)
        """What lets people in over HTTP, in the same store."""
        self._following = follow_audit(store)
        self._tell = tell
        self._lapses = Lapses(self._kept, elapsed, self._clock.now())
        self._tidying = rounds.Tidying(self._kept, ClockTrust(elapsed))

    async def submit(
        self,
        data: Mapping[str, Any],
        caller: Caller,
        *,
        idempotency_key: str | None = None,
        turn_id: str | None = None,
        on_behalf_of: str | None = None,
        on_behalf_name: str | None = None,
        also: Tell = no_one,
    ) -> Submitted:
        """Ask people to allow an action. It waits, unless a rule decides; nothing waits for people here.
        GrantUnusable when the same idempotency key led to a grant that is used up.

        ``also`` tells somebody besides those who are told of everything.
        """
        if caller.kind is CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="whoever approves does not ask")
        if idempotency_key is not None and not 0 < len(idempotency_key) <= submissions.MAX_KEY_CHARACTERS:
            why = f"use 1 to {submissions.MAX_KEY_CHARACTERS} characters"
            raise errors.InvalidInput(what="Idempotency-Key", why=why)
        submission = replace(
            await submissions.read(data, caller, self.settings),
            idempotency_key=idempotency_key,
            turn_id=turn_id,
            on_behalf_of=on_behalf_of,
            on_behalf_name=on_behalf_name,
        )
        now, details = self._clock.now(), data.get("details") or {}
        submitted = await self._kept.submit(
            submission,
            lambda known: rules.decide(known, submission, details, self.settings.mode, now),
            self.settings,
            now,
            new_id=_new_id,
            tell=partial(self._told_or_warned, also=also, precedent=await self._precedent(submission, also)),
        )
        asked = submitted.confirmation
        log.info(
            "confirmation_submitted",
            confirmation=asked.id,
            action=asked.action,
            status=str(asked.status),
            repeated=submitted.repeated or None,
        )
        if asked.spent:
            raise _unusable(asked, asked.spent)
        return submitted

    def _rule_again(self, now: datetime, asked: Confirmation, known: Sequence[Rule]) -> rules.Ruling:
        """What the rules of today say to what was asked for before."""
        details = canonical.read_strict(asked.payload or b"")["details"]
        return rules.decide(known, asked, details, self.settings.mode, now)

    async def _precedent(self, submission: Submission, also: Tell) -> Precedent | None:
        """What was approved before of its kind, where somebody is told of it."""
        told = self._tell is not no_one or also is not no_one
        return await self._kept.precedent(submission) if told else None

    def _told_or_warned(
        self,
        asked: Confirmation,
        shown: Sequence[Delivery],
        also: Tell = no_one,
        precedent: Precedent | None = None,
    ) -> Sequence[Delivery]:
        """Nobody reachable is said loudly, at once."""
        asked = replace(asked, precedent=precedent) if precedent else asked
        deliveries = (*self._tell(asked, shown), *also(asked, shown))
        if not deliveries:
            where = self.settings.page_url or "frontdesk confirm list"
            log.warning("nobody_told", confirmation=asked.id, action=asked.action, look=where)
        return deliveries

    async def find(self, confirmation_id: str) -> Confirmation:
        found = await self._kept.find(confirmation_id)
        if found is None:
            raise errors.UnknownConfirmation(confirmation_id=confirmation_id)
        return found

    async def wait(self, confirmation_id: str, seconds: float) -> Confirmation:
        """The confirmation as soon as it is decided, else as it is when the time is over."""
        # Followed before the first look, so that no decision is missed.
        async with self._following.about(confirmation_id) as follower:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, LONGEST_WAIT_SECONDS)):
                    while await self._kept.status(confirmation_id) is Status.PENDING:
                        await follower.wait()
            return await self.find(confirmation_id)

    async def approve(self, confirmation_id: str, caller: Caller, **said: Any) -> Confirmation:
        return await self._decide(confirmation_id, caller, True, **said)

    async def deny(self, confirmation_id: str, caller: Caller, **said: Any) -> Confirmation:
        return await self._decide(confirmation_id, caller, False, **said)

    async def _decide(
        self,
        confirmation_id: str,
        caller: Caller,
        approves: bool,
        *,
        name: str | None = None,
        reason: str | None = None,
        digest: str | None = None,
        press: Press | None = None,
    ) -> Confirmation:
        """The one place where somebody decides: about what has this digest, by the name they want to have,
        and with a button where they pressed one."""
        now = self._clock.now()
        vote = Vote(
            approves=approves,
            by=caller.id,
            name=submissions.cleaned("name", name, MAX_NAME_CHARACTERS),
            reason=submissions.cleaned("reason", reason, MAX_TEXT_CHARACTERS),
            digest=digest,
        )

        check, counting = self._checking(caller, now), self._counting(caller)
        try:
            voted = await self._kept.vote(
                confirmation_id, check, vote, now, tell=self._tell, counting=counting, press=press
            )
        except errors.NotAllowed as refusal:
            log.warning("decision_refused", confirmation=confirmation_id, who=caller.id, why=str(refusal))
            await self.note_refusal(refusal, "approve" if approves else "deny", confirmation_id)
            raise
        log.info("confirmation_voted", confirmation=voted.id, by=caller.id, status=str(voted.status))
        if pause := await self.pause_after(voted):
            log.warning("requester_paused", requester=pause.requester, denials=pause.denials)
        return voted

    async def reveal(self, confirmation_id: str, caller: Caller) -> Confirmation:
        """The request, for somebody who may decide about it and wants to see what is masked; the log has
        who."""
        now = self._clock.now()
        check, counting = self._checking(caller, now), self._counting(caller)
        try:
            revealed = await self._kept.reveal(confirmation_id, check, caller.id, now, counting=counting)
        except errors.NotAllowed as refusal:
            log.warning("reveal_refused", confirmation=confirmation_id, who=caller.id, why=str(refusal))
            await self.note_refusal(refusal, "reveal", confirmation_id)
            raise
        log.info("confirmation_revealed", confirmation=confirmation_id, by=caller.id)
        return revealed

    async def check_decider(self, asked: Confirmation, caller: Caller) -> None:
        """NotAllowed for whoever may not decide about it."""
        now = self._clock.now()
        person = await self._store.people.behind([caller.id], self._counting(caller).persons, now)
        self._checking(caller, now)(asked, person)

    def _checking(self, caller: Caller, now: datetime) -> Check:
        """Whether the caller may decide; which person they are is found in the same transaction."""

        def check(asked: Confirmation, person: Person) -> None:
            asked.check_decider(caller, self.settings.mode, now, person)

        return check

    def _counting(self, caller: Caller) -> Counting:
        """By the settings, and by what the caller's credential tells of them."""
        return Counting(persons=(*self.settings.persons, caller.names), mode=self.settings.mode)

    async def redeem(
        self,
        confirmation_id: str,
        caller: Caller,
        digest: str,
        also: Tell = no_one,
        claim: TurnClaim | None = None,
    ) -> tuple[Confirmation, bytes]:
        """The bytes to carry out, once, for whoever asked for them; ``also`` tells of a renewal. With the
        claim of the turn that asked, not once that turn was told to stop."""
        now = self._clock.now()
        await self._lapses.heed_clock(now)
        try:
            redemption = await self._kept.redeem(
                confirmation_id,
                digest,
                Redeemer(by=caller.id, claim=claim, check=partial(_check_requester, caller)),
                now,
                new_id=_new_id,
                tell=partial(self._told_or_warned, also=also),
                renewing=Renewing(rules=partial(self._rule_again, now), settings=self.settings),
            )
        except errors.NotAllowed as refusal:
            await self.note_refusal(refusal, "redeem", confirmation_id)
            raise
        if redemption.payload is None:
            log.warning("redeem_refused", confirmation=confirmation_id, why=redemption.refused)
            raise _unusable(redemption.confirmation, redemption.refused or "", redemption.renewal)
        log.info("confirmation_redeemed", confirmation=confirmation_id, by=caller.id)
        return redemption.confirmation, redemption.payload

    async def list(self, limit: int = 50, status: Status | None = None) -> Sequence[Confirmation]:
        return await self._kept.list(min(max(limit, 1), MOST_LISTED), status)

    async def check(self) -> None:
        """Raise what a request would meet now."""
        await self._store.check()

    async def pending_count(self) -> int:
        return await self._kept.count_pending(self._clock.now())

    async def audit_newest(self, limit: int) -> Sequence[audit.Row]:
        return await self._kept.audit_newest(min(max(limit, 1), MOST_LISTED))

    async def standings(self, after: int) -> audit.Standings:
        """Some of the requests, as the store has them."""
        return await self._kept.standings(after)

    async def follow(self, after: int) -> AsyncGenerator[audit.Row, None]:
        """What happens from there on, as it happens."""
        async with self._following.about() as follower:
            while True:
                while found := await self._kept.audit_rows(after, FOLLOWED_AT_ONCE):
                    for row in found:
                        yield row
                        after = row.number
                came: Sequence[audit.Row] | None = ()
                while came is not None:
                    for row in came:
                        if row.number > after:
                            yield row
                            after = row.number
                    await follower.wait()
                    came = follower.take()

    async def erase(self, confirmation_id: str, caller: Caller) -> bool:
        """Forget what a decided request was about, also where people were told of it; False when that was
        done before. The log stays whole."""
        check_approver(caller)
        if (await self.find(confirmation_id)).status is Status.PENDING:
            raise errors.StillPending(confirmation_id=confirmation_id, status=str(Status.PENDING))
        return await self._kept.erase(confirmation_id, caller.id, self._clock.now())

    async def withdraw(self, turn_id: str, *, lease: Lease | None = None, also: Tell = no_one) -> None:
        """Ask nobody any longer for what a turn waits for; ``also`` tells somebody besides. With the turn's
        lease, LeaseLost when somebody else has the turn."""

        def tell(asked: Confirmation, shown: Sequence[Delivery]) -> Sequence[Delivery]:
            return (*self._tell(asked, shown), *also(asked, shown))

        for ended in await self._kept.withdraw(turn_id, self._clock.now(), tell=tell, lease=lease):
            _log_end(ended)

    async def sweep(self) -> None:
        """End what has waited long enough or for nobody, pass on what others are to decide now, and note
        which grants have lapsed."""
        now = self._clock.now()
        await self._lapses.sweep(now)
        for ended in await self._kept.expire(now, SWEPT_AT_ONCE, tell=self._tell):
            _log_end(ended)
        for passed in await self._kept.escalate(now, SWEPT_AT_ONCE, tell=self._told_or_warned):
            log.info("confirmation_escalated", confirmation=passed.id, action=passed.action)

    async def tidy(self) -> bool:
        """Forget some of what was decided long ago, if it is time to; whether there is more."""
        return await self._tidying.tidy(self.settings.keep_days, self._clock.now())

    async def watch(self) -> None:
        """Sweep when something is due, and tidy now and then, until cancelled."""
        await rounds.make_rounds(self._store.bells, self._sweep_and_pause)

    async def _sweep_and_pause(self) -> float:
        due = await self._kept.next_due()
        if due is not None:  # a sweep locks: nobody should wait for one that finds nothing
            await self.sweep()
            due = await self._kept.next_due()
        if await self.tidy():
            return rounds.SHORTEST_PAUSE_SECONDS
        return rounds.pause_until(due, self._clock.now())


def _check_requester(caller: Caller, asked: Confirmation) -> None:
    if not caller.asked_for(asked):
        raise errors.NotAllowed(who=caller.id, rule="whoever asked for an action carries it out")


def _unusable(
    asked: Confirmation, refused: str, renewal: Confirmation | None = None
) -> errors.FrontdeskError:
    """Why a grant cannot be used."""
    if refused == "digest":
        return errors.DigestMismatch(confirmation_id=asked.id)
    return errors.GrantUnusable(
        confirmation_id=asked.id,
        why=UNUSABLE.get(refused, refused),
        refused=refused,
        renewal=renewal.id if renewal else None,
        status=str(asked.status),
    )


def _log_end(ended: Confirmation) -> None:
    if ended.is_withdrawn:
        log.info("confirmation_withdrawn", confirmation=ended.id, action=ended.action)
    else:
        log.info("confirmation_expired", confirmation=ended.id, action=ended.action)


def _new_id() -> str:
    return f"c_{secrets.token_hex(ID_BYTES)}"
