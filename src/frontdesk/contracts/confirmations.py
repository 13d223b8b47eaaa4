"""Where confirmations, rules and the audit log are kept. Every change writes its audit row with it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from frontdesk.model import audit
from frontdesk.model.confirmations import Confirmation, Settings, Status, Submission, Submitted, Vote
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import Lease
from frontdesk.model.rules import Rule, Ruling
from frontdesk.model.turns import TurnClaim

Rules = Callable[[Sequence[Rule]], Ruling]
"""What the rules say to a submission."""
Check = Callable[[Confirmation], None]
"""Raises when somebody may not decide about it."""
Tell = Callable[[Confirmation], Sequence[Delivery]]
"""What people are told of a confirmation, in the same transaction."""


class Renewing(msgspec.Struct, frozen=True, kw_only=True):
    """How a lapsed grant is asked again: as the rules of today say, unless too much is asked already."""

    rules: Rules
    settings: Settings


class Redemption(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a wish to carry out an approved action. What went wrong is written down, too."""

    confirmation: Confirmation
    payload: bytes | None = None
    """The bytes to carry out; None when it was refused."""
    refused: str | None = None
    """Why: ``digest``, ``redeemed``, ``lapsed``, ``pending``, ``denied``, ``expired``, ``erased`` or
    ``stopped``."""
    renewal: Confirmation | None = None
    """The grant had lapsed: this asks again, once."""


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that a program is to be told of."""

    confirmation: Confirmation
    url: str
    attempts: int
    """With this one."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Callbacks that were not heard yet."""

    owed: int
    overdue: int
    """So long that nobody seems to call."""


class Confirmations(Protocol):
    async def submit(
        self,
        submission: Submission,
        rules: Rules,
        settings: Settings,
        now: datetime,
        *,
        new_id: Callable[[], str],
        tell: Tell,
    ) -> Submitted:
        """Take a request in, in one transaction and in this order: the same idempotency key of the same
        requester (KeyReused when it was for another action); a rule that denies; the same action denied to
        the same requester a while ago, which stays denied; the same action of the same requester in the same
        conversation, and of the same turn, that waits already; a rule that allows; the action's rate, however
        it is written (RateLimited); the budget of prompts (TooManyPending); else it waits. ``tell`` is asked
        only for one that waits anew.

        Who joins one that waits takes its description, terms and end as they are; its decision is sent to the
        joiner's callback as well. What is decided at once is bounded, too, and so are keys and callbacks of
        one that waits (RateLimited); of what is denied at once neither payload nor description is kept."""
        ...

    async def vote(
        self, confirmation_id: str, check: Check, vote: Vote, now: datetime, *, tell: Tell
    ) -> Confirmation:
        """Count a vote; the confirmation after it. UnknownConfirmation; AlreadyResolved, also when its time
        is over, which is written down then; whatever ``check`` raises; DigestMismatch when the vote names
        another action; ReasonMissing. Voting twice counts once."""
        ...

    async def redeem(
        self,
        confirmation_id: str,
        digest: str,
        by: str,
        now: datetime,
        *,
        new_id: Callable[[], str],
        tell: Tell,
        renewing: Renewing | None = None,
        claim: TurnClaim | None = None,
    ) -> Redemption:
        """Use the grant up, once, within its time and for exactly these bytes. UnknownConfirmation.

        With the claim of the turn that asked, only while that turn goes on: it is refused when the turn was
        told to stop, and LeaseLost when somebody else has it.

        Rules count when something is submitted: one that was added since refuses neither a vote nor a grant.
        A renewal is asked on the terms of today's rules (on the same as before when there are none to ask),
        unless one denies it or too much is asked already.
        """
        ...

    async def expire(self, now: datetime, limit: int, *, tell: Tell) -> Sequence[Confirmation]:
        """End what has waited for its time, or nobody knows how long since the clock was set back, and what
        waits although its turn has ended; those that ended now."""
        ...

    async def withdraw(
        self, turn_id: str, now: datetime, *, tell: Tell, lease: Lease | None = None
    ) -> Sequence[Confirmation]:
        """End what a turn still waits for. With the turn's lease, LeaseLost when it holds no longer."""
        ...

    async def escalate(self, now: datetime, limit: int, *, tell: Tell) -> Sequence[Confirmation]:
        """Those whose time to be escalated has come since the last call; each is given once."""
        ...

    async def next_due(self) -> datetime | None:
        """When something expires or escalates next."""
        ...

    async def find(self, confirmation_id: str) -> Confirmation | None: ...

    async def status(self, confirmation_id: str) -> Status | None:
        """What became of it so far, without reading the rest."""
        ...

    async def of_turn(self, turn_id: str, digest: str) -> Confirmation | None:
        """The newest one that a turn asked for this action."""
        ...

    async def list(self, limit: int, status: Status | None = None) -> Sequence[Confirmation]:
        """Newest first; long payloads are left out."""
        ...

    async def count_pending(self, now: datetime) -> int:
        """How many wait; not those whose time is over."""
        ...

    async def reveal(self, confirmation_id: str, check: Check, by: str, now: datetime) -> Confirmation:
        """The confirmation, for somebody who sees what is masked; the audit log says so, unless there is
        nothing to see any more. UnknownConfirmation; whatever ``check`` raises."""
        ...

    async def erase(self, confirmation_id: str, by: str, now: datetime) -> bool:
        """Forget the payload and description of one that was resolved, the reasons that people gave, and the
        texts of the messages that told of it; the audit log stays whole."""
        ...

    async def prune(self, before: datetime, now: datetime, limit: int) -> int:
        """Forget what was decided before then, oldest first, and everything that belongs to it; how many
        there were. The audit log stays whole, and says so."""
        ...

    async def close_echoes(self, now: datetime, limit: int) -> int:
        """Write into the log how often something happened again that was left out of it; how many there
        were. Requests that join another one, and refusals to redeem, are in it once in a minute each."""
        ...

    async def prune_keys(self, before: datetime, limit: int) -> int:
        """Forget idempotency keys that were used before then; how many there were."""
        ...

    async def claim_callbacks(self, now: datetime, until: datetime, limit: int) -> Sequence[Owed]:
        """What programs are to be told now. What is not dropped by then is claimed again."""
        ...

    async def retry_callback(self, owed: Owed, due_at: datetime) -> None:
        """It was not heard: claim it again at that time."""
        ...

    async def hasten_callbacks(self, now: datetime, latest: datetime) -> None:
        """Who was to be told later than that is to be told now."""
        ...

    async def drop_callback(self, owed: Owed) -> None:
        """It was heard, or given up."""
        ...

    async def backlog(self, now: datetime) -> Backlog:
        """How many programs are still to be told."""
        ...

    async def next_callback(self) -> datetime | None: ...

    async def add_rule(self, rule: Rule, now: datetime) -> None: ...

    async def revoke_rule(self, rule_id: str, by: str, now: datetime) -> bool: ...

    async def rules(self, now: datetime) -> Sequence[Rule]:
        """The rules that hold, oldest first."""
        ...

    async def audit_rows(self, after: int, limit: int) -> Sequence[audit.Row]:
        """The rows of the audit log, in order."""
        ...

    async def audit_newest(self, limit: int) -> Sequence[audit.Row]:
        """Newest first."""
        ...
