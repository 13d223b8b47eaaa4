"""The audit log: rows are added behind the newest one, and never changed."""

from collections.abc import Sequence

from msgspec.structs import asdict

from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, Row, chained
from frontdesk.stores.rows import AUDIT_ROW

LOCK = "audit"


def append(*entries: AuditEntry) -> Work[None]:
    """Write down what the transaction did, as the last thing that it does.

    All nodes wait for each other here until the commit, so that no number is left out. Whoever holds this
    lock asks for no other one: so nobody waits in a circle.
    """
    if not entries:
        return
    yield "lock_key", {"key": LOCK}
    newest = yield from read("audit_newest", limit=1)
    last = newest[0] if newest else None
    for entry in entries:
        last = chained(entry, last)
        yield "append_audit", AUDIT_ROW.values(asdict(last))


def read(query: str, **values: int) -> Work[Sequence[Row]]:
    return [Row(**AUDIT_ROW.facts(found)) for found in (yield query, values)]
