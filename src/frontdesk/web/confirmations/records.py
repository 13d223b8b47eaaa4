"""What requests and answers hold, field for field: the OpenAPI document is made from these."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from frontdesk.flow.confirmations import submissions
from frontdesk.flow.confirmations.confirming import LONGEST_WAIT_SECONDS
from frontdesk.formats.cards import Known
from frontdesk.model import audit, confirmations, rules
from frontdesk.model.confirmations import (
    MAX_ACTION_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    Confirmation,
    Status,
)
from frontdesk.web.openapi import EXACT_VALUE

STORABLE = "^[^\\u0000]*$"
NOT_BLANK = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"
UNREADABLE = "unreadable"
MAX_ESCALATION_SECONDS = 1_000_000
MAX_NAMES = 100
"""Of a rule's conditions and of the people in each of its lists."""
MAX_EVENT_NUMBER = 2**63 - 1
DEFAULT_LIMIT = 50
TIMEOUT = (
    f"{confirmations.MIN_TIMEOUT_SECONDS} to {confirmations.MAX_TIMEOUT_SECONDS};"
    f" {confirmations.DEFAULT_TIMEOUT_SECONDS} when it cannot be read."
)
WAIT = f"wait=25: answer when it is decided, or after so many seconds; at most {LONGEST_WAIT_SECONDS:.0f}."

Name = Annotated[str, Meta(pattern=STORABLE, max_length=MAX_NAME_CHARACTERS)]
Text = Annotated[str, Meta(pattern=STORABLE, max_length=MAX_TEXT_CHARACTERS)]
Digest = Annotated[Name, Meta(description="SHA-256 of the payload, in hex.")]
ExactDigest = Annotated[
    str, Meta(pattern=f"^{confirmations.DIGEST.pattern}$", description="SHA-256 of a payload, in hex.")
]
Exact = Annotated[Any, Meta(extra_json_schema={"$ref": f"#/components/schemas/{EXACT_VALUE}"})]
Seconds = Annotated[float, Meta(description="Seconds since 1970.")]
Iso = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Object = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]
"""As it stands in the bytes that people vote on."""
ObjectOrNull = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": ["object", "null"]})]
EventKind = Annotated[str, Meta(extra_json_schema={"enum": [*map(str, audit.AuditKind), UNREADABLE]})]
EventNumber = Annotated[
    int, Meta(ge=0, le=MAX_EVENT_NUMBER, description="Go on after this event; 0 is from the beginning.")
]
Key = Annotated[
    str,
    Meta(
        pattern="^[!-~]([ -~]*[!-~])?$",
        max_length=submissions.MAX_KEY_CHARACTERS,
        description="The same request with the same key is asked once, however often it is sent.",
    ),
]
Names = Annotated[tuple[Name, ...], Meta(max_length=MAX_NAMES)]


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An action that somebody is to allow. Strings are trimmed."""

    action: Annotated[str, Meta(pattern=NOT_BLANK, max_length=MAX_ACTION_CHARACTERS)]
    description: Annotated[str, Meta(pattern=NOT_BLANK, max_length=MAX_TEXT_CHARACTERS)]
    details: dict[str, Exact] | None = None
    requester: Name | None = None
    session_key: Text | None = None
    timeout_seconds: Annotated[Exact, Meta(description=TIMEOUT)] = None
    callback_url: Annotated[str, Meta(pattern=STORABLE, max_length=submissions.MAX_URL_CHARACTERS)] | None = (
        None
    )


class Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody says who decides."""

    reason: Text | None = None
    digest: Digest | None = None


class ApproveBody(Said, frozen=True, kw_only=True):
    """``approver`` is what the one who decides wants to be called, beside who they are."""

    name: Name | None = msgspec.field(default=None, name="approver")


class DenyBody(Said, frozen=True, kw_only=True):
    """``denier`` is what the one who decides wants to be called, beside who they are."""

    name: Name | None = msgspec.field(default=None, name="denier")


class RedeemBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    digest: Digest


class NewCondition(rules.Condition, frozen=True, kw_only=True):
    argument: Annotated[str, Meta(pattern=NOT_BLANK, max_length=MAX_NAME_CHARACTERS)]
    value: Exact = None


class NewRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule to be kept; one that allows names an action or a digest, and ends."""

    effect: rules.Effect
    action: Annotated[str, Meta(pattern=NOT_BLANK, max_length=MAX_ACTION_CHARACTERS)] | None = None
    digest: ExactDigest | None = None
    conditions: Annotated[tuple[NewCondition, ...], Meta(max_length=MAX_NAMES)] = ()
    session_key: Text | None = None
    quorum: Annotated[int, Meta(ge=1, le=rules.MAX_QUORUM)] = 1
    approvers: Names = ()
    needs_reason: bool = False
    escalate_after_seconds: Annotated[int, Meta(ge=0, le=MAX_ESCALATION_SECONDS)] | None = None
    escalate_to: Names = ()
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None

    def as_rule(self, rule_id: str) -> rules.Rule:
        return rules.Rule(id=rule_id, **msgspec.structs.asdict(self))


class OfRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of every request."""

    id: str
    digest: str

    @classmethod
    def of(cls, asked: Confirmation, **different: Any) -> Self:
        """The fields that are called the same in both, and what is not; times as seconds since 1970."""
        same = {name: getattr(asked, name) for name in cls.__struct_fields__ if name not in different}
        times = {name: each.timestamp() for name, each in same.items() if isinstance(each, datetime)}
        return cls(**same | times | different)


class TakenIn(OfRequest, frozen=True, kw_only=True):
    """What is told of a request that was handed in and is not refused."""

    action: str
    message: str
    repeated: bool
    """Whether it was there before: the same action of the same requester, or the same Idempotency-Key."""


class Waiting(TakenIn, frozen=True, kw_only=True):
    """It waits for people; the addresses are paths, and deciding takes an approver's token."""

    status: Status
    timeout_seconds: int
    approve_url: str
    deny_url: str
    expires_at: Seconds


class Allowed(TakenIn, frozen=True, kw_only=True):
    """It waits for nobody: a rule allows it, or the same Idempotency-Key was approved."""

    status: str
    """``auto_approved``, or ``approved`` when people did."""
    auto_approved: bool


class Decided(OfRequest, frozen=True, kw_only=True):
    """After a vote; it still waits when more people must agree."""

    action: str
    status: Status
    resolved_by: str | None
    resolved_at: Seconds | None
    resolved_as: str | None
    reason: str | None
    approvals: tuple[str, ...]
    quorum: int


class PauseBegun(confirmations.RequesterPause, frozen=True, kw_only=True):
    """Nobody is asked for the requester any more, until a person posts its name to this address."""

    lift_url: str = "/pauses/lift"


class Voted(Decided, frozen=True, kw_only=True):
    pause: Annotated[
        PauseBegun | None, Meta(description="What this denial, one of several in a row, has led to.")
    ] = None


class ShownConfirmation(Decided, frozen=True, kw_only=True):
    """A request and what became of it. ``details`` is null, and ``description`` empty, when they were erased,
    or were not kept because it was denied at once."""

    description: str
    details: ObjectOrNull
    details_omitted: Annotated[
        bool,
        Meta(description="Whether details is null because it is too long for a list: ask for this request."),
    ]
    requester: str
    session_key: str | None
    created_at: Seconds
    created_at_iso: Iso
    timeout_seconds: int
    expires_at: Seconds
    resolved_at_iso: Iso | None
    redeemed_at: Seconds | None
    renewal_of: str | None
    known: Annotated[
        Known | None,
        Meta(description="For approvers: whose it is, and, asked for this one, what was approved before."),
    ] = None


class Revealed(OfRequest, frozen=True, kw_only=True):
    """All of an action, nothing masked. To look at before deciding: it is no grant."""

    payload: Object


class RedeemedPayload(Revealed, frozen=True, kw_only=True):
    """What was approved. Carry out ``payload_base64``: these are the bytes that people saw; ``payload`` is
    the same, parsed."""

    payload_base64: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    confirmations: tuple[ShownConfirmation, ...]


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    """One entry for each request, newest first."""

    count: int
    entries: tuple[ShownConfirmation, ...]


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the audit log. ``hash`` is the SHA-256 of the number, ``previous`` and ``body``, each but the
    last with a line feed after it. A row that somebody has changed so that it cannot be read is of the kind
    ``unreadable``, and has no time."""

    number: int
    kind: EventKind
    at: Iso | None
    actor: str
    confirmation_id: str | None
    digest: str | None
    facts: dict[str, Any]
    body: str
    previous: str
    hash: str

    @classmethod
    def of(cls, row: audit.Row) -> Self:
        """A row; also one whose entry somebody has changed, so that whoever verifies the log finds it."""
        entry = row.readable
        return cls(
            number=row.number,
            kind=str(entry.kind) if entry else UNREADABLE,
            at=entry.at.isoformat() if entry else None,
            actor=entry.actor if entry else "",
            confirmation_id=entry.confirmation_id if entry else None,
            digest=entry.digest if entry else None,
            facts=dict(entry.facts) if entry else {},
            body=row.body.decode(errors="replace"),
            previous=row.previous,
            hash=row.hash,
        )


class AuditEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the audit log, newest first."""

    count: int
    entries: tuple[AuditEvent, ...]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    rules: tuple[rules.Rule, ...]


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    pauses: tuple[confirmations.RequesterPause, ...]


class LiftBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    requester: Text


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    pending_count: int
    timestamp: Seconds


class Selection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = DEFAULT_LIMIT
    status: Status | UnsetType = UNSET


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: int = DEFAULT_LIMIT
    view: Literal["confirmations", "events"] = "confirmations"


class StandingsPlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: Annotated[int, Meta(ge=0, le=MAX_EVENT_NUMBER, description="Go on after this number.")] = 0


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    idempotency_key: Key | UnsetType = msgspec.field(default=UNSET, name="Idempotency-Key")


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    prefer: Annotated[str, Meta(description=WAIT)] = msgspec.field(default="", name="Prefer")


class Resumes(msgspec.Struct, frozen=True, kw_only=True):
    last_event_id: EventNumber | UnsetType = msgspec.field(default=UNSET, name="Last-Event-ID")
