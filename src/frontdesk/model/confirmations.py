"""Confirmations: a dangerous action waits until a person says yes to exactly that action."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.model import spellings
from frontdesk.model.people import Person
from frontdesk.model.precedents import Precedent

HIGH_RISK_ACTIONS = frozenset(
    {
        "deploy_production",
        "delete_data",
        "transfer_funds",
        "modify_permissions",
        "shutdown_service",
        "wipe_database",
        "exec_remote",
        "publish_package",
        "rotate_keys",
        "migrate_database",
    }
)
"""Always asked: no rule and no remembered decision lets these through."""

DEFAULT_RATE_LIMIT = 10
DEFAULT_PROMPTS_PER_HOUR = 60
RATE_LIMIT_WINDOW = 3600
MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS, DEFAULT_TIMEOUT_SECONDS = 30, 3600, 300
GRANT_SECONDS = 60
"""How long after the decision an approved action may be carried out."""
MUTE_SECONDS = 600
"""How long the same action is refused at once after somebody denied it."""
MOST_DENIALS = 5
"""So many denials in a row pause whoever asked, until a person lifts it."""
MOST_PENDING = 50
"""So many may wait at once, whoever decides."""
MOST_AT_ONCE, AT_ONCE_SECONDS = 60, 60
"""So many requests of one requester, or of all without a credential, are decided without a person in so many
seconds."""
CLOCK_SLACK_SECONDS = 60
"""So far apart may clocks be; what is from later than that was written by a clock that was wrong."""
MOST_CALLBACKS = 10
"""So many programs are told of one decision."""
KEEP_DAYS = 90
"""How long a decided request is kept."""
KEY_SECONDS = 24 * 3600
"""How long an idempotency key is known."""
MOST_KEYS = 100
"""So many idempotency keys may lead to one request that waits."""
MOST_LISTED_BYTES = 16 * 1024
"""A longer payload is left out of lists: all that can wait takes no longer to read than one request may."""
MAX_ACTION_CHARACTERS = 200
MAX_NAME_CHARACTERS = 200
MAX_TEXT_CHARACTERS = 10_000

TIMEOUT = "system:timeout"
RETENTION = "system:retention"
MUTED = "system:muted"
PAUSED = "system:pause"
WITHDRAWN = "system:withdrawn"
"""What a turn asked for that has ended is expired by this: nobody decided, and nobody has to."""
DEFAULT_REQUESTER = "agent"
TOKEN = "token:"
"""What the names of those with a credential begin with."""
RULE = "rule:"
"""What the word of a rule begins with, where a person's name would stand."""
STRANGER, NAMELESS = "anybody", "programs without a token"
"""All who have no credential, together, by name and in a sentence: what they call themselves tells nobody
apart."""
RESERVED = frozenset({"local", STRANGER, "system", "rule", "token"})
"""Names without a colon that belong to somebody. All with one do."""
DIGEST = re.compile("[0-9a-f]{64}")
"""A SHA-256, as it is written here."""


class Mode(StrEnum):
    """How much is asked of everybody."""

    SOLO = "solo"
    """One person on one machine: whoever is on it may submit, the approver's credential decides."""
    TEAM = "team"
    """Agents have tokens, approvers have names."""
    STRICT = "strict"
    """A team where the ten need two approvers, nobody decides about what was asked on their behalf, and
    nothing is remembered."""


class Status(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


MOVES: Mapping[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.APPROVED, Status.DENIED, Status.EXPIRED}),
}


class CallerKind(StrEnum):
    """Who calls."""

    ANYBODY = "anybody"
    """No credential; a process on this machine, perhaps."""
    AGENT = "agent"
    APPROVER = "approver"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whose credential was checked, once, at the door they came through."""

    id: str
    """``token:NAME`` for a credential of ours, a principal's id for somebody in a chat, the key of its
    conversation for the gateway's own agent."""
    kind: CallerKind
    people: frozenset[str] = frozenset()
    """Every other name of the same person."""

    @property
    def names(self) -> frozenset[str]:
        return self.people | {self.id}

    @property
    def person(self) -> Person:
        """Who calls, as far as their credential tells."""
        return Person.of(self.names)

    def asked_for(self, asked: "Confirmation") -> bool:
        """Whether it is this caller's own request; what nobody with a credential asked for is anybody's."""
        if self.kind is CallerKind.ANYBODY:
            return asked.turn_id is None and not is_reserved(asked.requester)
        return self.kind is CallerKind.AGENT and asked.requester == self.id


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """Whom one rule lets decide."""

    approvers: tuple[str, ...] = ()
    """Empty for every approver."""
    escalate_after_seconds: int | None = None
    escalate_to: tuple[str, ...] = ()
    """Who may decide, too, once that time is over."""

    def admits(self, person: Person, waited: timedelta) -> bool:
        return not self.approvers or person.goes_by(*self.named(waited))

    def named(self, waited: timedelta) -> frozenset[str]:
        return frozenset(self.approvers + (self.escalate_to if self.is_escalated(waited) else ()))

    def is_escalated(self, waited: timedelta) -> bool:
        after = self.escalate_after_seconds
        return after is not None and waited.total_seconds() >= after

    @property
    def party(self) -> "Party":
        """Whom it lets decide, and nothing else of it."""
        return Party(**{name: getattr(self, name) for name in Party.__struct_fields__})


class Terms(Party, frozen=True, kw_only=True):
    """What it takes to decide."""

    quorum: int = 1
    """How many different people must approve; one is enough to deny."""
    needs_reason: bool = False
    rule: str | None = None
    """The rule that says so."""
    parties: tuple[Party, ...] = ()
    """Of several rules, whom each lets decide; the other fields sum them up then."""

    def may_decide(self, person: Person, waited: timedelta) -> bool:
        """Whether every rule lets them decide; with a quorum, that holds for each who votes."""
        return all(party.admits(person, waited) for party in self.parties or (self,))


class AskedAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that somebody asks for. Its payload is the action itself, in its one canonical form."""

    action: str
    description: str
    digest: str
    """SHA-256 of the payload, in hex."""
    requester: str
    """Who asks: as authenticated, else as they call themselves."""
    session_key: str | None = None
    on_behalf_of: str | None = None
    """The person whose message led to it."""
    on_behalf_name: str | None = None
    """What that person is called where they wrote it."""
    turn_id: str | None = None
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    kind_digest: str | None = None
    """Known again by this: what is done, and by which program."""
    target_digest: str | None = None
    """The same with what it is done to; None where that cannot be told."""


class Submission(AskedAction, frozen=True, kw_only=True):
    """An action as it is asked for."""

    payload: bytes
    """Canonical JSON of ``{"action", "details"}``: people vote on these bytes, and these are executed."""
    callback_url: str | None = None
    idempotency_key: str | None = None


class Confirmation(AskedAction, frozen=True, kw_only=True):
    """A request and what became of it."""

    id: str
    payload: bytes | None
    """None once it was erased, when it was denied at once, and where it is left out; the digest stays."""
    left_out: bool = False
    """It is too long for the list that it is in: look at the confirmation itself."""
    callbacks: tuple[str, ...] = ()
    """Where the decision is sent: for whoever asked, and for those who joined."""
    status: Status = Status.PENDING
    terms: Terms = Terms()
    created_at: datetime
    expires_at: datetime
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    resolved_as: str | None = None
    """What the one who decided wants to be called."""
    reason: str | None = None
    redeemed_at: datetime | None = None
    redeemed_by: str | None = None
    lapsed_at: datetime | None = None
    """When it was found that nobody had used the grant in time; it stays so, whatever clocks say later."""
    renewal_of: str | None = None
    """The confirmation whose grant lapsed before it was used, and which is asked again."""
    approvals: tuple[str, ...] = ()
    """Who said yes so far."""
    precedent: Precedent | None = None
    """Where somebody has looked for it."""

    @property
    def is_withdrawn(self) -> bool:
        """Whether it ended because nobody waits for it any more."""
        return self.resolved_by == WITHDRAWN

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule decided, and no person."""
        return (self.resolved_by or "").startswith(RULE)

    @property
    def was_denied_at_once(self) -> bool:
        """Whether nobody was asked: then neither action nor description were kept."""
        return self.status is Status.DENIED and (self.is_by_rule or self.resolved_by == MUTED)

    def is_overdue(self, now: datetime) -> bool:
        """Whether it waits although its time is over; also when the clock was set back to before it was
        asked, since nobody knows then how long it has waited."""
        if self.status is not Status.PENDING:
            return False
        return self.expires_at <= now or self.created_at - now >= timedelta(seconds=CLOCK_SLACK_SECONDS)

    @property
    def too_late(self) -> errors.AlreadyResolved:
        """What whoever still wants to decide about it is told."""
        kind = errors.Withdrawn if self.is_withdrawn else errors.AlreadyResolved
        return kind(confirmation_id=self.id, status=str(self.status))

    @property
    def grant_until(self) -> datetime | None:
        """Until when the approved action may be carried out."""
        if self.status is not Status.APPROVED or self.resolved_at is None:
            return None
        return self.resolved_at + timedelta(seconds=GRANT_SECONDS)

    @property
    def spent(self) -> str | None:
        """Why an approved action can be carried out no more, whenever it is asked for; None when it can."""
        if self.status is not Status.APPROVED:
            return None
        if self.redeemed_at is not None:
            return "redeemed"
        return "erased" if self.payload is None and not self.left_out else None

    @property
    def counts(self) -> bool:
        """Whether who asks for the same again gets this one's answer: not when it was used, or ran out."""
        return self.status is not Status.EXPIRED and self.redeemed_at is None

    def why_own(self, person: Person, mode: Mode) -> str | None:
        """Why it is no matter of others to them; None when it is."""
        if person.may_be(self.requester):
            return "nobody decides about what they asked for"
        if mode is Mode.STRICT and person.may_be(self.on_behalf_of):
            return "nobody decides about what was asked on their behalf"
        return None

    def check_decider(self, caller: Caller, mode: Mode, now: datetime, person: Person | None = None) -> None:
        """NotAllowed for whoever may not decide about it: agents, the requester, people not named for it.
        The caller is that person, where more is known of them than their credential tells."""
        person = person or caller.person
        if caller.kind is not CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="deciding takes an approver's credential")
        if why := self.why_own(person, mode):
            raise errors.NotAllowed(who=caller.id, rule=why)
        if not self.terms.may_decide(person, now - self.created_at):
            raise errors.NotAllowed(who=caller.id, rule=f"rule {self.terms.rule} names who decides")

    def resolved(self, status: Status, *, by: str, at: datetime, **more: Any) -> "Confirmation":
        if status not in MOVES.get(self.status, ()):
            raise self.too_late
        return replace(self, status=status, resolved_by=by, resolved_at=at, **more)


ConfirmationRequest = Confirmation
"""The name that it goes by in public."""


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says to a request."""

    approves: bool
    by: str
    name: str | None = None
    reason: str | None = None
    digest: str | None = None
    """Of the action that they saw; another one is refused."""


class RequesterPause(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody is asked for a requester any more, until a person lifts it."""

    requester: str
    """As `credential_of` says."""
    denials: int
    """In a row, before it was paused and since."""
    paused_at: datetime

    def __str__(self) -> str:
        whom = NAMELESS if self.requester == STRANGER else self.requester
        return f"These were {self.denials} denials in a row: nobody is asked for {whom} any more."


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a submission."""

    confirmation: Confirmation
    repeated: bool = False
    """It is one that waits already: the same action of the same requester, or the same idempotency key."""
    automatic: bool = False
    """A rule decided."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    mode: Mode = Mode.SOLO
    rate_limit: int = DEFAULT_RATE_LIMIT
    prompts_per_hour: int = DEFAULT_PROMPTS_PER_HOUR
    """How often one credential may have people asked, whatever about."""
    window_seconds: int = RATE_LIMIT_WINDOW
    keep_days: int = KEEP_DAYS
    """After so long a decided request is forgotten; the audit log is not."""
    callbacks: tuple[str, ...] = ()
    """What addresses of callbacks begin with; others are refused."""
    persons: tuple[frozenset[str], ...] = ()
    """Names that belong to one person each: they are one vote, however they vote."""
    page_url: str | None = None
    """Where people see what waits; told with a request that does not fit into a message."""


def is_reserved(requester: str) -> bool:
    """Whether only somebody whom we know goes by that name: a credential, an account in a chat, the agent of
    a conversation, the terminal, or we ourselves. However it is written."""
    return spellings.holds_colon(requester) or any(spellings.reads_as(requester, name) for name in RESERVED)


def credential_of(requester: str) -> str:
    """Whose budget a requester uses: its own with a credential; without one, that of all who have none."""
    return requester if is_reserved(requester) else STRANGER


@lru_cache(1024)
def is_high_risk(action: str) -> bool:
    """Whether it is one of the ten, however it is written."""
    return any(spellings.reads_as(action, name) for name in HIGH_RISK_ACTIONS)


def clamp_timeout(value: object) -> int:
    """Seconds within the bounds; what cannot be read is the default."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return DEFAULT_TIMEOUT_SECONDS
    try:
        seconds = int(float(value))
    except (ValueError, OverflowError):
        return DEFAULT_TIMEOUT_SECONDS
    return min(max(seconds, MIN_TIMEOUT_SECONDS), MAX_TIMEOUT_SECONDS)
