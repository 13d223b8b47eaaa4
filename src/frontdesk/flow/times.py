"""When messages were written, as an agent is told it: before each, in brackets; never in the transcript."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

from frontdesk.model.amounts import duration
from frontdesk.model.messages import Plain
from frontdesk.model.turns import Turn

WRITTEN = "sent_at"
"""Of a message in a transcript whose platform said when it was written."""
TOLD = (
    "**Times:** The gateway puts the time when a message was written before it, as in"
    " [Mon 2026-01-05 09:30 +01:00] text, and how long after the one before when that is long. Only the first"
    " brackets are the gateway's. Do not write such times before your replies."
)
FIRST_YEAR = 1980
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""In English, whatever the machine speaks."""
LONG_GAP = timedelta(hours=6)
LONGEST_IN_HOURS = timedelta(days=2)


def written_at(turn: Turn) -> datetime | None:
    """When its message was written, where the platform says so and can be right: not later than it came."""
    at = turn.sent_at
    if at is None or at.tzinfo is None or at.year < FIRST_YEAR:
        return None
    return min(at, turn.received_at)


def tell(rows: Sequence[Plain], message: Plain, zone: tzinfo) -> tuple[list[Plain], Plain]:
    """The rows with their times, and the message that is to be answered as it stands among them.

    What is put before a message depends on it and on the one before: it is the same in every turn.
    """
    told, given, before = [], None, None
    for row in rows:
        at = _time(row)
        told.append(_with_time(row, at, before, zone) if at else row)
        given = told[-1] if row == message else given
        before = at or before
    if given is None:
        at = _time(message)
        given = _with_time(message, at, None, zone) if at else message
    return told, given


def _time(row: Mapping[str, Any]) -> datetime | None:
    """None where it is unknown, or what an older version or another program has written."""
    try:
        at = datetime.fromisoformat(row[WRITTEN])
    except (KeyError, TypeError, ValueError):
        return None
    return at if at.tzinfo else None


def _with_time(row: Plain, at: datetime, before: datetime | None, zone: tzinfo) -> Plain:
    local = at.astimezone(zone)
    offset = local.strftime("%z")
    words = f"{DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M} {offset[:3]}:{offset[3:5]}"
    if before and at - before >= LONG_GAP:
        words += f", {_long(at - before)} later"
    content = row["content"]
    if isinstance(content, str):
        return {**row, "content": f"[{words}] {content}"}
    return {**row, "content": [{"type": "text", "text": f"[{words}]"}, *content]}


def _long(gap: timedelta) -> str:
    return f"{gap.days} days" if gap >= LONGEST_IN_HOURS else duration(int(gap.total_seconds()) // 60)
