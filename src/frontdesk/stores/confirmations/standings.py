"""What the store holds of requests and rules, to be compared with the audit log, and what guards that log."""

from hashlib import sha256

import msgspec

from frontdesk.contracts.store import Row, Work
from frontdesk.model.audit import RuleStanding, Standing, Standings
from frontdesk.model.rules import Rule
from frontdesk.stores.columns import SENSELESS, maybe_micros
from frontdesk.stores.confirmation_rows import CONFIRMATIONS
from frontdesk.stores.confirmations.requests import DIGEST, ID
from frontdesk.stores.work import Noun, reads, writes

READ_AT_ONCE = 50
"""Their payloads may be long."""


class StandingIntentions(Noun):
    @reads
    def standings(self, after: int, limit: int = READ_AT_ONCE) -> Work[Standings]:
        """The requests after a number, some of them, as they are; with the first ones, all rules."""
        found = yield "confirmation_rows", {"after": after, "limit": limit}
        rules = () if after else tuple([_rule(*each) for each in (yield "all_rules", {})])
        unguarded = yield from _unguarded()
        return Standings(confirmations=tuple(map(_standing, found)), rules=rules, unguarded=unguarded)

    @reads
    def unguarded(self) -> Work[tuple[str, ...]]:
        """The triggers that should keep everybody from changing the log, and do not."""
        return _unguarded()

    @writes
    def guard(self) -> Work[tuple[str, ...]]:
        """Put those triggers in their place; which were not."""
        found = yield from _unguarded()
        if found:
            for query in ("drop_audit_triggers", "make_audit_guard", "make_audit_triggers"):
                yield query, {}
        return found


def _unguarded() -> Work[tuple[str, ...]]:
    return tuple([name for (name,) in (yield "missing_audit_triggers", {})])


def _standing(row: Row) -> Standing:
    asked, number = CONFIRMATIONS.read(row), row[-1]
    if asked is None:
        return Standing(number=number, id=row[ID], digest=row[DIGEST], readable=False)
    return Standing(
        number=number,
        id=asked.id,
        digest=asked.digest,
        action=asked.action,
        requester=asked.requester,
        renewal_of=asked.renewal_of,
        status=str(asked.status),
        quorum=asked.terms.quorum,
        approvals=asked.approvals,
        resolved_at=asked.resolved_at,
        resolved_by=asked.resolved_by,
        redeemed_at=asked.redeemed_at,
        redeemed_by=asked.redeemed_by,
        payload_digest=None if asked.payload is None else sha256(asked.payload).hexdigest(),
    )


def _rule(rule_id: str, body: bytes, expires_at: int | None, revoked_at: int | None) -> RuleStanding:
    try:
        end_fits = maybe_micros(msgspec.json.decode(body, type=Rule).expires_at) == expires_at
    except SENSELESS:
        end_fits = False
    digest = sha256(body).hexdigest()
    return RuleStanding(id=rule_id, body_digest=digest, revoked=revoked_at is not None, end_fits=end_fits)
