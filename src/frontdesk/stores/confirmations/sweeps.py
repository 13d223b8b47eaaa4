"""What happens to requests by the clock, when nobody waits for them any more, and when they are forgotten."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from frontdesk.contracts.confirmations import Tell
from frontdesk.contracts.store import Row, Work
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import GRANT_SECONDS, RETENTION, TIMEOUT, WITHDRAWN, Confirmation, Status
from frontdesk.model.lanes import Lease
from frontdesk.stores import audit
from frontdesk.stores.columns import to_micros
from frontdesk.stores.confirmation_rows import CONFIRMATIONS
from frontdesk.stores.confirmations.requests import DIGEST, ID, at, entry_of, tell_of, write_down
from frontdesk.stores.feed import tell_confirmation
from frontdesk.stores.lanes import hold
from frontdesk.stores.rows import erased_body
from frontdesk.stores.work import Noun, writes, writes_lazily

ESCALATION = "system:escalation"
LAPSED = "lapsed"
GRANT = timedelta(seconds=GRANT_SECONDS)
BELONGINGS = ("erase_payload", "forget_votes", "forget_keys", "forget_callbacks", "forget_echoes")


class SweepIntentions(Noun):
    @writes
    def expire(self, now: datetime, limit: int, *, tell: Tell) -> Work[Sequence[Confirmation]]:
        """End what has waited for its time, or nobody knows how long since the clock was set back, and what
        waits although its turn has ended; those that ended now."""
        overdue = yield "overdue_confirmations", {**at(now), "limit": limit}
        ended = yield from _end(overdue, TIMEOUT, now)
        unwanted = yield "waiting_for_nobody", {"limit": limit}
        ended += yield from _end(unwanted, WITHDRAWN, now)
        yield from tell_of(ended, tell)
        yield from write_down(
            *_swept(AuditKind.EXPIRED, overdue, TIMEOUT, now, Status.EXPIRED),
            *_swept(AuditKind.WITHDRAWN, unwanted, WITHDRAWN, now, Status.EXPIRED),
            told=True,
        )
        return ended

    @writes
    def withdraw(
        self, turn_id: str, now: datetime, *, tell: Tell, lease: Lease | None = None
    ) -> Work[Sequence[Confirmation]]:
        """End what a turn still waits for. With the turn's lease, LeaseLost when it holds no longer."""
        # The rows before the lane, although nothing is done without it: locks are taken in one order.
        found = yield "waiting_of_turn", {"turn_id": turn_id}
        if lease:
            yield from hold(lease)
        ended = yield from _end(found, WITHDRAWN, now)
        yield from tell_of(ended, tell)
        yield from write_down(*_swept(AuditKind.WITHDRAWN, found, WITHDRAWN, now, Status.EXPIRED), told=True)
        return ended

    @writes
    def escalate(self, now: datetime, limit: int, *, tell: Tell) -> Work[Sequence[Confirmation]]:
        """Those whose time to be escalated has come since the last call; each is given once."""
        found = yield "escalating_confirmations", {**at(now), "limit": limit}
        for each in found:
            yield "escalate_confirmation", {"confirmation_id": each[ID], "now": to_micros(now)}
        passed = list(filter(None, map(CONFIRMATIONS.read, found)))
        yield from tell_of(passed, tell, anew=True)
        yield from write_down(*_swept(AuditKind.ESCALATED, found, ESCALATION, now, Status.PENDING), told=True)
        return passed

    @writes
    def lapse(self, now: datetime, limit: int) -> Work[int]:
        """Write down which grants nobody has used in time; how many there were."""
        before, after = to_micros(now - GRANT), to_micros(now + GRANT)
        values = {"now": to_micros(now), "before": before, "after": after, "limit": limit}
        return (yield from _tell_lapsed((yield "lapse_confirmations", values), now))

    @writes
    def lapse_all(self, now: datetime) -> Work[int]:
        """The same for every grant that could still be used."""
        return (yield from _tell_lapsed((yield "lapse_all", {"now": to_micros(now)}), now))

    @writes
    def erase(self, confirmation_id: str, by: str, now: datetime) -> Work[bool]:
        """Forget the payload and description of one that was resolved, the reasons that people gave, and the
        texts of the messages that told of it; the audit log stays whole."""
        asked = yield from CONFIRMATIONS.one("confirmation_locked", confirmation_id=confirmation_id)
        if asked is None or asked.status is Status.PENDING:
            return False
        if not (yield "erase_payload", {"confirmation_id": asked.id}):
            return False
        yield "erase_reasons", {"confirmation_id": asked.id}
        yield "forget_callbacks", {"confirmation_id": asked.id}
        yield from _erase_messages(asked.id)
        yield from write_down(entry_of(AuditKind.PAYLOAD_ERASED, asked, by, now))
        return True

    @writes
    def prune(self, before: datetime, now: datetime, limit: int) -> Work[int]:
        """Forget what was decided before then, oldest first, and everything that belongs to it; how many
        there were. The audit log stays whole, and says so."""
        found = yield "old_confirmations", {"before": to_micros(before), "limit": limit}
        for (confirmation_id,) in found:
            yield from _erase_messages(confirmation_id)
            for query in BELONGINGS:
                yield query, {"confirmation_id": confirmation_id}
            yield "forget_confirmation", {"confirmation_id": confirmation_id}
        if found:  # one entry tells of all of them: which ones can be told by their times
            facts = {"count": len(found), "decided_before": before.isoformat()}
            yield from audit.append(AuditEntry(kind=AuditKind.PRUNED, at=now, actor=RETENTION, facts=facts))
        return len(found)

    @writes
    def close_echoes(self, now: datetime, limit: int) -> Work[int]:
        """Write into the log how often something happened again that was left out of it; how many there
        were. Requests that join another one, and refusals to redeem, are in it once in a minute each."""
        return audit.close_echoes(now, limit)

    @writes_lazily
    def prune_keys(self, before: datetime, limit: int) -> Work[int]:
        """Forget idempotency keys that were used before then; how many there were."""
        return len((yield "prune_confirmation_keys", {"before": to_micros(before), "limit": limit}))


def _end(found: list[Row], by: str, now: datetime) -> Work[list[Confirmation]]:
    """Those that can be read, as they are then."""
    for each in found:
        yield "expire_confirmation", {"confirmation_id": each[ID], "now": to_micros(now), "by": by}
    readable = filter(None, map(CONFIRMATIONS.read, found))
    return [asked.resolved(Status.EXPIRED, by=by, at=now) for asked in readable]


def _swept(
    kind: AuditKind, found: list[Row], actor: str, now: datetime, status: Status
) -> Iterable[AuditEntry]:
    """Entries also of rows that cannot be read, which would come back for ever otherwise."""
    for each in found:
        facts = {"status": str(status)}
        yield AuditEntry(
            kind=kind, at=now, actor=actor, confirmation_id=each[ID], digest=each[DIGEST], facts=facts
        )


def _tell_lapsed(found: list[Row], now: datetime) -> Work[int]:
    for each in found:
        yield from tell_confirmation(each[0], LAPSED, now)
    return len(found)


def _erase_messages(confirmation_id: str) -> Work[None]:
    """What people were told, sent or not. Whoever is sending it now has read it already."""
    for delivery_id, body in (yield "messages_about", {"confirmation_id": confirmation_id}):
        yield "rewrite_message", {"delivery_id": delivery_id, "body": erased_body(body)}
