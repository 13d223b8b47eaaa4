"""Rules, and the log of who made and revoked them."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.store import Row, Work
from frontdesk.logs import get_logger
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.rules import Effect, Rule
from frontdesk.stores import audit
from frontdesk.stores.columns import SENSELESS, maybe_micros, to_micros
from frontdesk.stores.confirmations.requests import ring_bells
from frontdesk.stores.work import Noun, reads, writes

log = get_logger(__name__)


class RuleIntentions(Noun):
    @writes
    def add_rule(self, rule: Rule, now: datetime) -> Work[None]:
        kept = replace(rule, created_at=rule.created_at or now)
        body = msgspec.json.encode(kept)
        values = {"id": rule.id, "expires_at": maybe_micros(rule.expires_at), "body": body}
        if not (yield "insert_rule", values):
            raise errors.InvalidInput(what=f"The rule {rule.id!r}", why="another one had this id")
        facts = {"rule": rule.id, "effect": str(rule.effect), "body_digest": sha256(body).hexdigest()}
        yield from audit.append(
            AuditEntry(
                kind=AuditKind.RULE_ADDED, at=now, actor=rule.created_by, digest=rule.digest, facts=facts
            )
        )
        yield from ring_bells()

    @writes
    def revoke_rule(self, rule_id: str, by: str, now: datetime) -> Work[bool]:
        if not (yield "revoke_rule", {"rule_id": rule_id, "now": to_micros(now)}):
            return False
        revoked = AuditEntry(kind=AuditKind.RULE_REVOKED, at=now, actor=by, facts={"rule": rule_id})
        yield from audit.append(revoked)
        yield from ring_bells()
        return True

    @reads
    def rules(self, now: datetime) -> Work[Sequence[Rule]]:
        """The rules that hold, oldest first."""
        return holding(now)


def holding(now: datetime) -> Work[Sequence[Rule]]:
    return [_read(found) for found in (yield "rules", {"now": to_micros(now)})]


def _read(found: Row) -> Rule:
    """The rule. One that cannot be read, which may have denied anything, has everything asked."""
    rule_id, body = found
    try:
        return msgspec.json.decode(body, type=Rule)
    except SENSELESS as error:
        log.warning("rule_unreadable", rule=rule_id, why=str(error))
        return Rule(id=rule_id, effect=Effect.ASK)
