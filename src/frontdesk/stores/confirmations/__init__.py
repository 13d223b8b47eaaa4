"""Requests, votes, grants and rules. Every change of them writes its row of the audit log with it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from frontdesk import errors
from frontdesk.contracts.confirmations import Backlog, Owed
from frontdesk.contracts.store import Work
from frontdesk.model import pages
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.audit import Row as AuditRow
from frontdesk.model.confirmations import (
    GRANT_SECONDS,
    MOST_LISTED_BYTES,
    Confirmation,
    Status,
    Submission,
)
from frontdesk.model.pages import ListPage
from frontdesk.model.precedents import Precedent
from frontdesk.model.rules import Rule
from frontdesk.stores import audit
from frontdesk.stores.columns import MICROS_A_SECOND, maybe_micros, maybe_time, to_micros
from frontdesk.stores.confirmation_rows import CONFIRMATIONS
from frontdesk.stores.confirmations.decisions import DecisionIntentions
from frontdesk.stores.confirmations.precautions import PrecautionIntentions
from frontdesk.stores.confirmations.requests import (
    at,
    holding_rules,
    listed,
    precedent_of,
    read_listed,
    write_down,
)
from frontdesk.stores.confirmations.standings import StandingIntentions
from frontdesk.stores.confirmations.submissions import SubmissionIntentions
from frontdesk.stores.confirmations.sweeps import SweepIntentions
from frontdesk.stores.work import EVER, glances, reads, value, writes, writes_lazily

OVERDUE = timedelta(minutes=2)


class Confirmations(
    SubmissionIntentions, DecisionIntentions, PrecautionIntentions, SweepIntentions, StandingIntentions
):
    @reads
    def next_due(self) -> Work[datetime | None]:
        """When something expires, escalates or lapses next."""
        grant = GRANT_SECONDS * MICROS_A_SECOND
        return maybe_time((yield from value("next_confirmation_due", grant=grant)))

    @glances
    def find(self, confirmation_id: str) -> Work[Confirmation | None]:
        return CONFIRMATIONS.one("confirmation", confirmation_id=confirmation_id)

    @glances
    def precedent(self, asked: Submission | Confirmation) -> Work[Precedent | None]:
        """What people approved before of the same kind; None when that is not known."""
        return precedent_of(asked)

    @glances
    def status(self, confirmation_id: str) -> Work[Status | None]:
        """What became of it so far, without reading the rest."""
        found = yield from value("confirmation_status", confirmation_id=confirmation_id)
        return next((status for status in Status if status == found), None)

    @glances
    def of_turn(self, turn_id: str, digest: str) -> Work[Confirmation | None]:
        """The newest one that a turn asked for this action."""
        return CONFIRMATIONS.one("confirmation_of_turn", turn_id=turn_id, digest=digest)

    @reads
    def list(self, limit: int, status: Status | None = None) -> Work[Sequence[Confirmation]]:
        """Newest first; long payloads are left out."""
        values = {"limit": limit, "most_bytes": MOST_LISTED_BYTES}
        if status is None:
            return listed("list_confirmations", **values)
        return listed("list_confirmations_with", status=str(status), **values)

    @reads
    def page(self, status: Status, limit: int, after: str | None = None) -> Work[ListPage[Confirmation]]:
        """The same, a page at a time; ``after`` the end of an earlier one."""
        before, _ = pages.read_place(after, EVER)
        values = {"status": str(status), "before": before, "most_bytes": MOST_LISTED_BYTES}
        found = yield "page_of_confirmations", {**values, "limit": limit + 1}
        shown, goes_on = pages.cut(found, limit)
        place = pages.place(shown[-1][-1]) if goes_on else None
        return ListPage(items=read_listed(row[:-1] for row in shown), next=place)

    @reads
    def count_pending(self, now: datetime) -> Work[int]:
        """How many wait; not those whose time is over."""
        return value("count_waiting", **at(now))

    @writes_lazily
    def claim_callbacks(self, now: datetime, until: datetime, limit: int) -> Work[Sequence[Owed]]:
        """What programs are to be told now. What is not dropped by then is claimed again."""
        values = {"now": to_micros(now), "until": to_micros(until), "limit": limit}
        owed = []
        for confirmation_id, url, attempts in (yield "claim_callbacks", values):
            asked = yield from CONFIRMATIONS.one("confirmation", confirmation_id=confirmation_id)
            if asked:
                owed.append(Owed(confirmation=asked, url=url, attempts=attempts))
            else:  # its row makes no sense
                yield "drop_callback", {"confirmation_id": confirmation_id, "url": url}
        return owed

    @writes_lazily
    def retry_callback(self, owed: Owed, due_at: datetime) -> Work[None]:
        """It was not heard: claim it again at that time."""
        values = {"confirmation_id": owed.confirmation.id, "url": owed.url}
        yield "move_callback", {**values, "due_at": to_micros(due_at)}

    @writes_lazily
    def hasten_callbacks(self, now: datetime, latest: datetime) -> Work[None]:
        """Who was to be told later than that is to be told now."""
        yield "hasten_callbacks", {"now": to_micros(now), "latest": to_micros(latest)}

    @writes
    def drop_callback(self, owed: Owed) -> Work[None]:
        """It was heard, or given up."""
        yield "drop_callback", {"confirmation_id": owed.confirmation.id, "url": owed.url}

    @reads
    def backlog(self, now: datetime) -> Work[Backlog]:
        """How many programs are still to be told."""
        ((owed, overdue),) = yield "count_callbacks", {"before": to_micros(now - OVERDUE)}
        return Backlog(owed=owed, overdue=overdue)

    @reads
    def next_callback(self) -> Work[datetime | None]:
        return maybe_time((yield from value("next_callback_due")))

    @reads
    def audit_rows(self, after: int, limit: int) -> Work[Sequence[AuditRow]]:
        """The rows of the audit log, in order."""
        return audit.read("audit_rows", after=after, limit=limit)

    @reads
    def audit_newest(self, limit: int) -> Work[Sequence[AuditRow]]:
        """Newest first."""
        return audit.read("audit_newest", limit=limit)

    @reads
    def audit_before(self, before: int, limit: int) -> Work[Sequence[AuditRow]]:
        """Those before a row, newest first."""
        return audit.read("audit_before", before=before, limit=limit)

    @writes
    def note(self, entry: AuditEntry) -> Work[None]:
        """What somebody does that is no request and stands in no other table."""
        return audit.append(entry)

    @writes
    def add_rule(self, rule: Rule, now: datetime) -> Work[None]:
        kept = msgspec.structs.replace(rule, created_at=rule.created_at or now)
        body = msgspec.json.encode(kept)
        values = {"id": rule.id, "expires_at": maybe_micros(rule.expires_at), "body": body}
        if not (yield "insert_rule", values):
            raise errors.InvalidInput(what=f"The rule {rule.id!r}", why="another one had this id")
        facts = {"rule": rule.id, "effect": str(rule.effect), "body_digest": sha256(body).hexdigest()}
        kind, actor = AuditKind.RULE_ADDED, rule.created_by
        yield from write_down(AuditEntry(kind=kind, at=now, actor=actor, digest=rule.digest, facts=facts))

    @writes
    def revoke_rule(self, rule_id: str, by: str, now: datetime) -> Work[bool]:
        if not (yield "revoke_rule", {"rule_id": rule_id, "now": to_micros(now)}):
            return False
        facts = {"rule": rule_id}
        yield from write_down(AuditEntry(kind=AuditKind.RULE_REVOKED, at=now, actor=by, facts=facts))
        return True

    @reads
    def rules(self, now: datetime) -> Work[Sequence[Rule]]:
        """The rules that hold, oldest first."""
        return holding_rules(now)
