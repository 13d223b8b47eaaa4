"""The gate: an agent's turn waits, durably, until people have decided about what it asks for."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.flow.confirmations.notifying import Notifier
from frontdesk.flow.service import aliases_of
from frontdesk.formats import canonical
from frontdesk.model import confirmations, events, people, turns
from frontdesk.model.confirmations import Caller, Confirmation, Status
from frontdesk.model.lanes import Lease
from frontdesk.model.turns import Turn, TurnClaim
from frontdesk.stores.store import Store

WAIT_SECONDS = 30.0
"""How long to wait before the confirmation is looked at again; it is found as soon as it is decided."""
NOT_IN_TIME = "nobody decided in time"
WITHDRAWN = "it was withdrawn"
DENIED = "it was denied"
STOPPED = "stopped"
"""Why the store refuses a grant to a turn that was told to stop."""

REFUSALS = (errors.InvalidInput, errors.RateLimited, errors.TooManyPending, errors.RequesterPaused)
"""Why people are not asked."""

Show = Callable[[events.Asked], None]
"""Shows whoever follows the turn what people are asked."""
Lend = Callable[[], AbstractContextManager[None]]
"""Lets others work while the turn waits."""


class Gate:
    def __init__(self, service: ConfirmationService, notifier: Notifier, store: Store, clock: Clock) -> None:
        self._service = service
        self._notifier = notifier
        self._store = store
        self._clock = clock

    async def pass_on(
        self, claim: TurnClaim, approval: events.Approval, show: Show, lend: Lend
    ) -> events.Decision:
        """The decision about what an agent asks for; its grant is used up when it is approved. GrantUnusable
        when the turn was told to stop by then.

        A turn that runs again finds what it asked for before: what waits goes on waiting, what was approved
        and not yet used is used now.
        """
        try:
            asked = await self._ask(claim.turn, approval)
        except REFUSALS as refusal:
            return events.Decision(id=approval.id, approved=False, reason=str(refusal))
        while True:
            asked = await self._decided(claim, asked, show, lend)
            if asked.status is not Status.APPROVED:
                return events.Decision(id=approval.id, approved=False, reason=_refusal(asked))
            try:
                # Whether it was used, or stopped, before is decided in the transaction that uses it up.
                tell = partial(self._notifier.in_chat, claim.turn)
                caller = Caller(id=asked.requester, kind=confirmations.CallerKind.AGENT)
                await self._service.redeem(asked.id, caller, asked.digest, also=tell, claim=claim)
            except errors.GrantUnusable as refusal:
                if refusal.refused == STOPPED:
                    raise
                if not refusal.renewal:
                    return events.Decision(id=approval.id, approved=False, reason=refusal.why)
                asked = await self._service.find(refusal.renewal)
            else:
                return events.Decision(id=approval.id, approved=True, reason=asked.reason)

    async def withdraw(self, turn: Turn, lease: Lease | None = None) -> None:
        """The turn waits for nothing any more; whoever was asked is told. With the lease of a turn that still
        runs, LeaseLost when somebody else has it, and waits."""
        await self._service.withdraw(turn.id, lease=lease, also=partial(self._notifier.in_chat, turn))

    async def _ask(self, turn: Turn, approval: events.Approval) -> Confirmation:
        data = {
            "action": approval.action,
            "description": approval.description or approval.action,
            "details": dict(approval.details),
            "session_key": turn.session_key,
            "timeout_seconds": confirmations.MAX_TIMEOUT_SECONDS,
        }
        digest = canonical.digest(canonical.payload(approval.action.strip(), approval.details))
        known = await self._store.confirmations.of_turn(turn.id, digest)
        if known and known.counts:
            return known
        author = turn.author  # who asked the agent, where they did so from the page
        named = people.name_of(turn.source, await aliases_of(self._store, turn.source))
        submitted = await self._service.submit(
            data,
            # The agent of a conversation: it asks and carries out, and never decides.
            Caller(id=turn.session_key, kind=confirmations.CallerKind.AGENT),
            turn_id=turn.id,
            on_behalf_of=author.id if author else named,
            on_behalf_name=author.name if author else turn.source.user_name,
            also=partial(self._notifier.in_chat, turn),
        )
        return submitted.confirmation

    async def _decided(self, claim: TurnClaim, asked: Confirmation, show: Show, lend: Lend) -> Confirmation:
        """The confirmation once people have decided; the turn waits until then, for everybody to see."""
        if asked.status is not Status.PENDING:
            return asked
        # Marked before anybody is shown the question: whoever answers it finds a turn that waits. A decision
        # that is faster than the mark is found by the first look below.
        await self._store.turns.mark(claim, turns.TurnState.WAITING, self._clock.now())
        wide = self._notifier.is_wide(claim.turn.source)
        known = await self._service.with_precedent(asked)
        show(events.Asked(id=asked.id, text=self._notifier.text(known, wide=wide)))
        with lend():
            while asked.status is Status.PENDING:
                asked = await self._service.wait(asked.id, WAIT_SECONDS)
        await self._store.turns.mark(claim, turns.TurnState.RUNNING, self._clock.now())
        return asked


def _refusal(asked: Confirmation) -> str:
    if asked.status is Status.EXPIRED:
        return WITHDRAWN if asked.is_withdrawn else NOT_IN_TIME
    return asked.reason or DENIED
