"""Precautions against requesters that wear people down, or try what is not theirs to do.

Denials in a row are counted for each credential, until somebody approves; so many pause it.
"""

from collections.abc import Sequence
from datetime import datetime

from frontdesk.contracts.store import Work
from frontdesk.model import confirmations
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.confirmations import MOST_DENIALS, Confirmation, RequesterPause, Status
from frontdesk.stores import audit
from frontdesk.stores.columns import maybe_micros
from frontdesk.stores.confirmation_rows import CONFIRMATIONS, REQUESTER_PAUSES
from frontdesk.stores.confirmations import requests
from frontdesk.stores.work import Noun, glances, reads, writes


class PrecautionIntentions(Noun):
    @glances
    def pause_of(self, requester: str) -> Work[RequesterPause | None]:
        """The pause that holds for a requester."""
        return REQUESTER_PAUSES.one("pause_of", credential=confirmations.credential_of(requester))

    @reads
    def pauses(self) -> Work[Sequence[RequesterPause]]:
        """Who is paused, the longest first."""
        return REQUESTER_PAUSES.many("pauses")

    @writes
    def lift_pause(self, requester: str, by: str, now: datetime) -> Work[bool]:
        """Have people asked for a requester again; False when it is not paused. Denials are counted anew."""
        who = confirmations.credential_of(requester)
        found = yield "lift_pause", {"credential": who}
        if not found:
            return False
        facts = {"requester": who, "denials": found[0][0]}
        lifted = AuditEntry(kind=AuditKind.PAUSE_LIFTED, at=now, actor=by, facts=facts)
        yield from requests.write_down(lifted)
        return True

    @writes
    def note_refusal(self, actor: str, why: str, confirmation_id: str | None, now: datetime) -> Work[bool]:
        """Write down that somebody was refused; False when the same was less than a minute ago, and is
        counted. It is noted for each request that waits or has a grant to use, and for all others together:
        made-up ids fill no log."""
        yield from requests.pass_entrance()
        about = yield from _open(confirmation_id)
        entry = AuditEntry(
            kind=AuditKind.REFUSED,
            at=now,
            actor=actor,
            confirmation_id=about.id if about else None,
            digest=about.digest if about else None,
            facts={"why": why},
        )
        admitted = yield from audit.admit(entry)
        yield from requests.write_down(*admitted)
        return bool(admitted)


def _open(confirmation_id: str | None) -> Work[Confirmation | None]:
    if confirmation_id is None or not confirmation_id.isprintable():
        return None
    found = yield from CONFIRMATIONS.one("confirmation", confirmation_id=confirmation_id)
    has_use = found and found.redeemed_at is None and found.status in (Status.PENDING, Status.APPROVED)
    return found if has_use else None


def count_decision(voted: Confirmation) -> Work[Sequence[AuditEntry]]:
    """Count what people decided about a request; what is to be written down when its requester is paused by
    it. A pause outlasts a yes to what was asked before it."""
    who = confirmations.credential_of(voted.requester)
    if voted.status is Status.APPROVED:
        yield "forget_denials", {"credential": who}
    if voted.status is not Status.DENIED or voted.resolved_at is None:
        return ()
    yield "count_denial", {"credential": who}
    now = maybe_micros(voted.resolved_at)
    paused = yield "begin_pause", {"credential": who, "now": now, "most": MOST_DENIALS}
    about = {"requester": who, "denials": MOST_DENIALS}
    entry = requests.entry_of(AuditKind.PAUSED, voted, confirmations.PAUSED, voted.resolved_at, **about)
    return (entry,) if paused else ()
