"""Seeing what is masked: nobody does so without a row in the log."""

from datetime import datetime

from frontdesk.contracts.confirmations import Check
from frontdesk.model.audit import AuditKind
from frontdesk.model.confirmations import Confirmation
from frontdesk.stores import audit
from frontdesk.stores.confirmations.asked import entry_of, locked
from frontdesk.stores.work import Work


def reveal(confirmation_id: str, check: Check, by: str, now: datetime) -> Work[Confirmation]:
    asked = yield from locked(confirmation_id)
    check(asked)
    if asked.payload is not None:
        yield from audit.append(entry_of(AuditKind.REVEALED, asked, by, now))
    return asked
