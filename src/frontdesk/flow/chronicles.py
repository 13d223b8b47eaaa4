"""What the audit log tells, put together: whether its rows can be true one after the other, and whether the
requests and rules in the store are as it says."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from frontdesk.model.audit import AuditEntry, AuditKind, Row, RuleStanding, Standing, Standings
from frontdesk.model.confirmations import Status

BEGINNINGS: Mapping[AuditKind, Status] = {
    AuditKind.SUBMITTED: Status.PENDING,
    AuditKind.RENEWED: Status.PENDING,
    AuditKind.AUTO_APPROVED: Status.APPROVED,
    AuditKind.RULE_DENIED: Status.DENIED,
    AuditKind.MUTED: Status.DENIED,
}
ENDS: Mapping[AuditKind, Status] = {
    AuditKind.APPROVED: Status.APPROVED,
    AuditKind.DENIED: Status.DENIED,
    AuditKind.EXPIRED: Status.EXPIRED,
    AuditKind.WITHDRAWN: Status.EXPIRED,
}
STANDS = (
    "digest",
    "action",
    "requester",
    "renewal_of",
    "status",
    "resolved_by",
    "resolved_at",
    "redeemed_by",
    "redeemed_at",
)
"""What both the log and the store have of a request."""
MOST_TOLD = 100
NO_SENSE = "what it says makes no sense"
UNGUARDED = "the trigger, which keeps everybody from changing the log, is missing or was changed"


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """A request or a rule that is not in the store as the log has it, or what should guard the log."""

    id: str
    why: str


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What the log tells of one request. What it does not tell is None, and can be anything."""

    digest: str | None
    status: Status
    at_once: bool = False
    """No person was asked."""
    action: str | None = None
    requester: str | None = None
    renewal_of: str | None = None
    quorum: int | None = None
    voters: tuple[str, ...] = ()
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    redeemed_at: datetime | None = None
    redeemed_by: str | None = None
    erased: bool = False

    def ended(self, entry: AuditEntry, status: Status) -> "Past":
        return replace(self, status=status, resolved_at=entry.at, resolved_by=entry.actor)


class Chronicle:
    """All that the log tells, row by row."""

    def __init__(self) -> None:
        self._requests: dict[str, Past] = {}
        self._rules: dict[str, tuple[str | None, bool]] = {}
        self._forgotten_before: datetime | None = None
        self._seen: set[str] = set()
        self._misfits: dict[str, str] = {}

    def add(self, row: Row) -> str | None:
        """Take in the next row; why it cannot be true, if so."""
        entry = row.readable
        if entry is None:
            return "it cannot be read"
        try:
            return self._take(entry) if entry.at.tzinfo else NO_SENSE
        except (KeyError, TypeError, ValueError):
            return NO_SENSE

    def _take(self, entry: AuditEntry) -> str | None:
        match entry.kind:
            case AuditKind.RULE_ADDED | AuditKind.RULE_REVOKED:
                self._take_rule(entry)
            case AuditKind.PRUNED:
                self._forget(entry.facts)
        return self._take_request(entry, entry.confirmation_id) if entry.confirmation_id else None

    def catch_up(self, rows: Iterable[Row]) -> frozenset[str]:
        """Take in what happened meanwhile; the requests and rules that it was about."""
        moved: set[str] = set()
        for row in rows:
            self.add(row)
            if entry := row.readable:
                moved |= {str(name) for name in (entry.confirmation_id, entry.facts.get("rule")) if name}
        return frozenset(moved)

    def _take_rule(self, entry: AuditEntry) -> None:
        name, added = str(entry.facts.get("rule")), entry.kind is AuditKind.RULE_ADDED
        digest = entry.facts.get("body_digest") if added else self._rules.get(name, (None, False))[0]
        self._rules[name] = (digest, not added)

    def _forget(self, facts: Mapping[str, Any]) -> None:
        before = datetime.fromisoformat(str(facts["decided_before"])).astimezone(UTC)
        self._forgotten_before = max(before, self._forgotten_before or before)

    def _take_request(self, entry: AuditEntry, name: str) -> str | None:
        known = self._requests.get(name)
        if entry.kind in BEGINNINGS:
            if known is not None:
                return f"{name} was asked for before"
            self._requests[name] = _begun(entry)
        elif entry.kind is AuditKind.VOTED or entry.kind in ENDS:
            return self._decide(entry, name, known)
        elif entry.kind is AuditKind.REDEEMED:
            return self._redeem(entry, name, known)
        elif entry.kind is AuditKind.PAYLOAD_ERASED and known is not None:
            self._requests[name] = replace(known, erased=True)
        return None

    def _decide(self, entry: AuditEntry, name: str, known: Past | None) -> str | None:
        if known is None:
            return f"nobody had asked for {name}"
        if known.status is not Status.PENDING:
            return f"{name} was {known.status} already"
        if entry.digest != known.digest:
            return f"{name} was asked with another digest"
        quorum = int(entry.facts.get("quorum") or known.quorum or 1)
        if entry.kind in (AuditKind.VOTED, AuditKind.APPROVED):
            known = replace(known, voters=(*known.voters, entry.actor), quorum=quorum)
        if entry.kind is AuditKind.APPROVED and len(known.voters) < quorum:
            return f"{len(known.voters)} of {quorum} had approved {name}"
        status = ENDS.get(entry.kind)
        self._requests[name] = known.ended(entry, status) if status else known
        return None

    def _redeem(self, entry: AuditEntry, name: str, known: Past | None) -> str | None:
        if known is None or known.status is not Status.APPROVED:
            return f"{name} was redeemed, and nobody had approved it"
        if known.redeemed_at is not None:
            return f"{name} was redeemed before"
        if entry.digest != known.digest:
            return f"{name} was approved with another digest"
        self._requests[name] = replace(known, redeemed_at=entry.at, redeemed_by=entry.actor)
        return None

    def compare(self, page: Standings) -> None:
        """Note what of it is not as the log says."""
        misfits = {each.id: self._misfit(each) for each in page.confirmations}
        misfits |= {each.id: self._rule_misfit(each) for each in page.rules}
        misfits |= dict.fromkeys(page.unguarded, UNGUARDED)
        self._seen |= misfits.keys()
        self._misfits |= {name: why for name, why in misfits.items() if why}

    def contradictions(self, moved: frozenset[str] = frozenset()) -> tuple[Contradiction, ...]:
        """Where the store, all of which was compared, differs from the log; the first of them. What moved
        while both were read is left to the next time."""
        misfits = self._misfits | dict(self._gone())
        found = [(name, why) for name, why in misfits.items() if name not in moved]
        return tuple([Contradiction(id=name, why=why) for name, why in found[:MOST_TOLD]])

    def _misfit(self, standing: Standing) -> str | None:
        past = self._requests.get(standing.id)
        return "the log does not know it" if past is None else _misfit(standing, past)

    def _rule_misfit(self, standing: RuleStanding) -> str | None:
        if standing.id not in self._rules:
            return "the log does not know it"
        digest, revoked = self._rules[standing.id]
        if standing.body_digest != digest or not standing.end_fits:
            return "it is not the rule that was added"
        if standing.revoked != revoked:
            return "it was revoked" if revoked else "nobody revoked it"
        return None

    def _gone(self) -> Iterator[tuple[str, str]]:
        """What the log knows and the store has no longer, although nobody forgot it by the log."""
        for name, past in self._requests.items():
            if name not in self._seen and not self._may_be_forgotten(past):
                yield name, f"it is gone; by the log it is {past.status}"
        for name in self._rules.keys() - self._seen:
            yield name, "it is gone, and no rule is ever forgotten"

    def _may_be_forgotten(self, past: Past) -> bool:
        before, at = self._forgotten_before, past.resolved_at
        return before is not None and at is not None and at < before


def _begun(entry: AuditEntry) -> Past:
    told: dict[str, Any] = {name: entry.facts.get(name) for name in ("action", "requester", "renewal_of")}
    past = Past(digest=entry.digest, status=Status.PENDING, **told)
    status = BEGINNINGS[entry.kind]
    return past if status is Status.PENDING else replace(past.ended(entry, status), at_once=True)


def _misfit(standing: Standing, past: Past) -> str | None:
    """What of a request is not as the log has it."""
    if not standing.readable:
        return "its row makes no sense"
    for name in STANDS:
        known, held = getattr(past, name), getattr(standing, name)
        # Of a renewal the log has neither name nor requester: those are of what is asked again.
        if known != held and not (known is None and name in ("action", "requester")):
            return f"its {name} is {_told(held)}; by the log it is {_told(known)}"
    if past.quorum is not None and standing.quorum != past.quorum:
        return f"its quorum is {standing.quorum}; by the log it is {past.quorum}"
    if strangers := set(standing.approvals) - set(past.voters):
        return f"{min(strangers)} has approved it; by the log they have not"
    return _payload_misfit(standing, past)


def _payload_misfit(standing: Standing, past: Past) -> str | None:
    if standing.payload_digest is None:
        kept = not past.erased and not (past.at_once and past.status is Status.DENIED)
        return "its payload is gone; by the log nobody erased it" if kept else None
    return None if standing.payload_digest == standing.digest else "its payload does not fit its digest"


def _told(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
