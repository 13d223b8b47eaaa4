"""The audit log: rows are added behind the newest one, and never changed."""

from collections.abc import Sequence

from frontdesk.contracts.store import Work
from frontdesk.model.audit import AuditEntry, Row, chained

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
        hashes = {"previous": bytes.fromhex(last.previous), "hash": bytes.fromhex(last.hash)}
        yield "append_audit", {"number": last.number, "body": last.body, **hashes}


def read(query: str, **values: int) -> Work[Sequence[Row]]:
    return [
        Row(number=number, body=body, previous=previous.hex(), hash=own.hex())
        for number, body, previous, own in (yield query, values)
    ]
