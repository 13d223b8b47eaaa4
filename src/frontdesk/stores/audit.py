"""The audit log: rows are added behind the newest one, and never changed."""

from collections.abc import Sequence
from functools import partial

from frontdesk.model.audit import AuditEntry, Row, chained
from frontdesk.stores import work
from frontdesk.stores.work import Engine, Work, first

LOCK = "audit"


def append(*entries: AuditEntry) -> Work[None]:
    """Write down what the transaction did, as the last thing that it does.

    All nodes wait for each other here until the commit, so that no number is left out. Whoever holds this
    lock asks for no other one: so nobody waits in a circle.
    """
    if not entries:
        return
    yield "lock_key", {"key": LOCK}
    found = first((yield "audit_newest", {"limit": 1}))
    last = read_row(found) if found else None
    for entry in entries:
        last = chained(entry, last)
        yield (
            "append_audit",
            {
                "number": last.number,
                "body": last.body,
                "previous": bytes.fromhex(last.previous),
                "hash": bytes.fromhex(last.hash),
            },
        )


def read_row(found: work.Row) -> Row:
    number, body, previous, own = found
    return Row(number=number, body=body, previous=previous.hex(), hash=own.hex())


async def read(engine: Engine, query: str, **values: int) -> Sequence[Row]:
    return [read_row(found) for found in await engine.read(partial(work.rows, query, **values))]
