"""Whether a turn that was interrupted goes on by itself, and what its sender is told when it does not."""

from datetime import datetime, timedelta

from frontdesk.flow.clockwatch import Elapsed, since_boot
from frontdesk.flow.commands import views
from frontdesk.flow.parts import Parts
from frontdesk.model.turns import PROMPT, Turn

LAPSED = "it was interrupted too long ago to go on by itself"
NOT_CONTINUED = (
    "I was interrupted {ago}, while I was answering your message {message}, and did not go on by myself after"
    " so long. To have it answered now: {how}"
)
MOST_BEHIND = 10


class Continuation:
    """What was interrupted is continued while that is fresh; what had not begun is never too old."""

    def __init__(
        self, freshness: timedelta | None, started_at: datetime, elapsed: Elapsed = since_boot
    ) -> None:
        self._freshness = freshness
        self._started_at = started_at
        self._elapsed = elapsed
        self._started = elapsed()

    def has_lapsed(self, turn: Turn, now: datetime) -> bool:
        """A clock that was set since this gateway was started changes nothing."""
        if self._freshness is None or turn.session_id is None or turn.interrupted_at is None:
            return False
        running = timedelta(seconds=self._elapsed() - self._started)
        age = min(now, self._started_at + running) - turn.interrupted_at
        return age > self._freshness


async def not_continued(parts: Parts, turn: Turn) -> str:
    """What the sender of a turn is told that does not go on by itself."""
    ago = views.ago(turn.interrupted_at or turn.received_at, parts.clock.now())
    return NOT_CONTINUED.format(ago=ago, message=views.quoted(turn.text), how=await _way_on(parts, turn))


async def _way_on(parts: Parts, turn: Turn) -> str:
    """Retrying takes the last message of the present session: is that the one?"""
    entry = await parts.conversations.get_session(turn.session_key)
    open_turns = await parts.store.turns.open_turns(turn.session_key, MOST_BEHIND)
    others = [each for each in open_turns if each.id != turn.id and each.kind not in PROMPT]
    present = entry is not None and entry.session_id == turn.session_id and not others
    if entry and present and await parts.conversations.reset_reason(entry, turn.source) is None:
        return "/retry"
    return f"/resume {turn.session_id} and then /retry"
