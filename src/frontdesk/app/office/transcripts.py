"""What is asked about what was said in a conversation."""

from typing import Any, TypedDict

from frontdesk import errors
from frontdesk.app.office.counters import Counter
from frontdesk.model import inputs

PAGE_ROWS = 100
MOST_ROWS = 200
MOST_DIGITS = 15


class MessageRow(TypedDict):
    """A message of a conversation."""

    number: int
    session_id: str
    at: str
    message: dict[str, Any] | None
    """As it is stored; none where what is stored cannot be read."""
    turn_id: str | None
    undone: str | None
    """What took it out of the conversation, if something did."""


class MessageList(TypedDict):
    """Messages, the oldest first; ``next`` is where those before them are."""

    items: list[MessageRow]
    next: str | None


class TranscriptCounter(Counter):
    async def transcript(
        self, session_id: str, before: str | None = None, limit: int = PAGE_ROWS
    ) -> MessageList:
        """The newest messages of a session, or those before a place: what was undone is among them."""
        session = await self._find(session_id)
        most = max(1, min(inputs.check_limit(limit), MOST_ROWS))
        rows = await self._conversations.load_records(session.id)
        end = len(rows) if before is None else min(_place(before), len(rows))
        start = max(0, end - most)
        items = [
            MessageRow(
                number=number,
                session_id=session.id,
                at=row["timestamp"],
                message=row,
                turn_id=None,
                undone=None,
            )
            for number, row in enumerate(rows[start:end], start + 1)
        ]
        return {"items": items, "next": str(start) if start else None}


def _place(written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) <= MOST_DIGITS):
        raise errors.InvalidInput(what=f"the place {written[:40]!r}", why="use one that a page gave")
    return int(written)
