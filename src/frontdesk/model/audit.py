"""The audit log: every row holds the hash of the one before it, so that none can be changed or taken away."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

GENESIS = "0" * 64
ECHO_SECONDS = 60
"""What happens again so soon is counted, not written down each time."""


class AuditKind(StrEnum):
    SUBMITTED = "submitted"
    COALESCED = "coalesced"
    AUTO_APPROVED = "auto_approved"
    RULE_DENIED = "rule_denied"
    MUTED = "muted"
    VOTED = "voted"
    APPROVED = "approved"
    DENIED = "denied"
    PAUSED = "paused"
    PAUSE_LIFTED = "pause_lifted"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ESCALATED = "escalated"
    REVEALED = "revealed"
    REFUSED = "refused"
    REDEEMED = "redeemed"
    REDEEM_REFUSED = "redeem_refused"
    RENEWED = "renewed"
    RULE_ADDED = "rule_added"
    RULE_REVOKED = "rule_revoked"
    PAYLOAD_ERASED = "payload_erased"
    PRUNED = "pruned"
    DELIVERY_DISCARDED = "delivery_discarded"
    RESTORE_BEGUN = "restore_begun"
    RESTORED = "restored"
    TURN_RETRIED = "turn_retried"
    TURN_GIVEN_UP = "turn_given_up"
    PASS_GIVEN = "pass_given"
    SIGNED_IN = "signed_in"
    PASS_ENDED = "pass_ended"
    PERSON_LET_IN = "person_let_in"
    PERSON_REFUSED = "person_refused"
    PERSON_REVOKED = "person_revoked"
    PEOPLE_LINKED = "people_linked"
    PEOPLE_UNLINKED = "people_unlinked"


ABOUT_ACCESS = frozenset(
    {
        AuditKind.PASS_GIVEN,
        AuditKind.SIGNED_IN,
        AuditKind.PASS_ENDED,
        AuditKind.PERSON_LET_IN,
        AuditKind.PERSON_REFUSED,
        AuditKind.PERSON_REVOKED,
        AuditKind.PEOPLE_LINKED,
        AuditKind.PEOPLE_UNLINKED,
    }
)
"""Who comes in, and as what: of that only those are told who see everything."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. Digests stand for payloads, so that a payload can be erased."""

    kind: AuditKind
    at: datetime
    actor: str
    confirmation_id: str | None = None
    digest: str | None = None
    facts: Mapping[str, Any] = {}
    """Small and harmless: status, reason's digest, rule; nothing of a payload."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in its place."""

    number: int
    body: bytes
    """The entry as JSON, byte for byte as it was hashed."""
    previous: str
    hash: str

    @property
    def entry(self) -> AuditEntry:
        return msgspec.json.decode(self.body, type=AuditEntry)

    @property
    def readable(self) -> AuditEntry | None:
        """The entry; None when somebody has put something else in its place."""
        try:
            return self.entry
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None


def chain_hash(number: int, previous: str, body: bytes) -> str:
    return hashlib.sha256(b"%d\n%s\n%s" % (number, previous.encode(), body)).hexdigest()


def body_of(entry: AuditEntry) -> bytes:
    return msgspec.json.encode(entry, order="sorted")


def chained(entry: AuditEntry, after: Row | None) -> Row:
    """The entry as the row that follows another one."""
    number, previous = (after.number + 1, after.hash) if after else (1, GENESIS)
    body = body_of(entry)
    return Row(number=number, body=body, previous=previous, hash=chain_hash(number, previous, body))


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the store holds of a request, as far as the log tells of it, too."""

    number: int
    """Its place in the store."""
    id: str
    readable: bool = True
    """When it is not, its row makes no sense, and the rest is not known."""
    digest: str = ""
    action: str = ""
    requester: str = ""
    renewal_of: str | None = None
    status: str = ""
    quorum: int = 1
    approvals: tuple[str, ...] = ()
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    redeemed_at: datetime | None = None
    redeemed_by: str | None = None
    payload_digest: str | None = None
    """None when there is no payload."""


class RuleStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What the store holds of a rule."""

    id: str
    body_digest: str
    revoked: bool
    end_fits: bool
    """Whether it ends in the store when it says itself that it does."""


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """Some requests, in the order of their numbers; with the first of them, all rules."""

    confirmations: tuple[Standing, ...]
    rules: tuple[RuleStanding, ...] = ()
    unguarded: tuple[str, ...] = ()
    """The triggers that should keep everybody from changing the log, and do not."""
