"""What is forgotten of requests that were decided, while the log of them stays whole."""

from datetime import datetime

from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import RETENTION, Status
from frontdesk.stores import audit
from frontdesk.stores.columns import to_micros
from frontdesk.stores.confirmations.asked import entry_of
from frontdesk.stores.rows import CONFIRMATIONS, erased_body

BELONGINGS = ("erase_payload", "forget_votes", "forget_keys", "forget_callbacks", "forget_echoes")


def erase(confirmation_id: str, by: str, now: datetime) -> Work[bool]:
    asked = yield from CONFIRMATIONS.one("confirmation_locked", confirmation_id=confirmation_id)
    if asked is None or asked.status is Status.PENDING:
        return False
    if not (yield "erase_payload", {"confirmation_id": asked.id}):
        return False
    yield "erase_reasons", {"confirmation_id": asked.id}
    yield "forget_callbacks", {"confirmation_id": asked.id}
    yield from _erase_messages(asked.id)
    yield from audit.append(entry_of(AuditKind.PAYLOAD_ERASED, asked, by, now))
    return True


def _erase_messages(confirmation_id: str) -> Work[None]:
    """What people were told, sent or not. Whoever is sending it now has read it already."""
    for delivery_id, body in (yield "messages_about", {"confirmation_id": confirmation_id}):
        yield "rewrite_message", {"delivery_id": delivery_id, "body": erased_body(body)}


def prune(before: datetime, now: datetime, limit: int) -> Work[int]:
    """One entry in the log tells of all of them: which ones can be told by their times."""
    found = yield "old_confirmations", {"before": to_micros(before), "limit": limit}
    for (confirmation_id,) in found:
        yield from _erase_messages(confirmation_id)
        for query in BELONGINGS:
            yield query, {"confirmation_id": confirmation_id}
        yield "forget_confirmation", {"confirmation_id": confirmation_id}
    if found:
        facts = {"count": len(found), "decided_before": before.isoformat()}
        yield from audit.append(AuditEntry(kind=AuditKind.PRUNED, at=now, actor=RETENTION, facts=facts))
    return len(found)
