"""Rules, and the log of who made and revoked them."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from msgspec.structs import replace

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.rules import Rule
from frontdesk.stores import audit
from frontdesk.stores.columns import to_micros
from frontdesk.stores.confirmations.requests import read_rule, rule_row


def holding(now: datetime) -> Work[Sequence[Rule]]:
    return [read_rule(found) for found in (yield "rules", {"now": to_micros(now)})]


def add(rule: Rule, now: datetime) -> Work[None]:
    values = rule_row(replace(rule, created_at=rule.created_at or now))
    if not (yield "insert_rule", values):
        raise errors.InvalidInput(what=f"The rule {rule.id!r}", why="another one had this id")
    facts = {"rule": rule.id, "effect": str(rule.effect), "body_digest": sha256(values["body"]).hexdigest()}
    yield from audit.append(
        AuditEntry(kind=AuditKind.RULE_ADDED, at=now, actor=rule.created_by, digest=rule.digest, facts=facts)
    )


def revoke(rule_id: str, by: str, now: datetime) -> Work[bool]:
    if not (yield "revoke_rule", {"rule_id": rule_id, "now": to_micros(now)}):
        return False
    yield from audit.append(
        AuditEntry(kind=AuditKind.RULE_REVOKED, at=now, actor=by, facts={"rule": rule_id})
    )
    return True
