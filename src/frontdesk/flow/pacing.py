"""Pacing: one barrier before each chat and each account of ours, for all that goes there from this node."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from frontdesk.flow.clockwatch import Elapsed, since_boot
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model.deliveries import Outcome, Sent
from frontdesk.model.sources import SessionSource

LONGEST_WAIT_SECONDS = 24 * 3600.0
"""Whatever a platform says."""
FEW_BARRIERS = 10_000

Barrier = tuple[str, str | None, str | None]
"""A platform, our account there and a chat; without the chat, the whole account."""

log = get_logger(__name__)


class Pacing:
    """Knows from when on something may be sent to a chat: the pause after the last call is over, and so is
    the time that the platform told us to wait. Answers wait here and go before everything else; a draft or a
    sign goes when nothing stands before it, or not at all."""

    def __init__(self, elapsed: Elapsed = since_boot) -> None:
        self._elapsed = elapsed
        self.closed_until: dict[Barrier, float] = {}
        """While it is empty, nobody has to wait anywhere."""
        self._answers: dict[Barrier, int] = {}
        """How many answers wait at a barrier."""
        self._few = FEW_BARRIERS

    def seconds_left(self, chat: SessionSource) -> float:
        """Until something may go there; 0 when it may now."""
        closed, barrier = self.closed_until, _barrier_of(chat)
        until = max(closed.get(barrier, 0.0), closed.get((*barrier[:2], None), 0.0))
        return max(until - self._elapsed(), 0.0)

    def may_pass(self, chat: SessionSource) -> bool:
        """Whether something that is no answer may go there now."""
        return not self.seconds_left(chat) and not self._answers.get(_barrier_of(chat))

    def pass_by(self, chat: SessionSource, pause_seconds: float) -> None:
        """Something goes there now, and nothing more before the pause is over."""
        if pause_seconds > 0:
            self._close(_barrier_of(chat), pause_seconds)

    async def wait(self, chat: SessionSource, pause_seconds: float, most_seconds: float) -> float:
        """Pass as soon as an answer may, if that is soon; otherwise how many seconds are left."""
        with self._waiting(chat):
            while left := self.seconds_left(chat):
                if left > most_seconds:
                    return left
                await asyncio.sleep(left)
            self.pass_by(chat, pause_seconds)
        return 0.0

    def heed(self, chat: SessionSource, outcome: Outcome) -> None:
        """Where the platform said that we are to wait, nothing goes there meanwhile."""
        seconds = 0.0 if isinstance(outcome, Sent) else outcome.retry_after_seconds or 0.0
        if isinstance(outcome, Sent) or not seconds > 0:  # nor what is no number
            return
        barrier, why = _barrier_of(chat), quoting.one_line(outcome.why, quoting.MAX_CHARACTERS)
        log.warning("told_to_wait", platform=barrier[0], account=barrier[1], seconds=seconds, why=why)
        self._close((*barrier[:2], None) if outcome.whole_account else barrier, seconds)

    @contextmanager
    def _waiting(self, chat: SessionSource) -> Iterator[None]:
        barrier = _barrier_of(chat)
        self._answers[barrier] = self._answers.get(barrier, 0) + 1
        try:
            yield
        finally:
            self._answers[barrier] -= 1
            if not self._answers[barrier]:
                del self._answers[barrier]

    def _close(self, barrier: Barrier, seconds: float) -> None:
        closed, now = self.closed_until, self._elapsed()
        closed[barrier] = max(closed.get(barrier, 0.0), now + min(seconds, LONGEST_WAIT_SECONDS))
        if len(closed) > self._few:
            self.closed_until = {each: until for each, until in closed.items() if until > now}
            self._few = max(FEW_BARRIERS, 2 * len(self.closed_until))


def _barrier_of(chat: SessionSource) -> Barrier:
    return str(chat.platform), chat.account, chat.chat_id or chat.user_id or ""
