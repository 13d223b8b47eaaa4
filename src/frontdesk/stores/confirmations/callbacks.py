"""Callbacks: the programs that are still to be told of a decision."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from frontdesk.contracts.confirmations import Backlog, Owed
from frontdesk.stores.confirmations.asked import one
from frontdesk.stores.rows import to_micros
from frontdesk.stores.work import Work

OVERDUE = timedelta(minutes=2)


def count(now: datetime) -> Work[Backlog]:
    ((owed, overdue),) = yield "count_callbacks", {"before": to_micros(now - OVERDUE)}
    return Backlog(owed=owed, overdue=overdue)


def claim(now: datetime, until: datetime, limit: int) -> Work[Sequence[Owed]]:
    values = {"now": to_micros(now), "until": to_micros(until), "limit": limit}
    owed = []
    for confirmation_id, url, attempts in (yield "claim_callbacks", values):
        asked = yield from one("confirmation", confirmation_id=confirmation_id)
        if asked:
            owed.append(Owed(confirmation=asked, url=url, attempts=attempts))
        else:  # its row makes no sense
            yield "drop_callback", {"confirmation_id": confirmation_id, "url": url}
    return owed
