"""What the session of a running turn may still use, looked at between its agent's steps and after it."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from frontdesk.flow import limits
from frontdesk.flow.parts import Parts
from frontdesk.flow.speech import Speech
from frontdesk.logs import get_logger
from frontdesk.model import events, spirals
from frontdesk.model.messages import Plain
from frontdesk.model.policies import EndReason, SessionResetPolicy
from frontdesk.model.sessions import USAGE_COUNTERS, Session, SessionEntry
from frontdesk.model.turns import Turn

log = get_logger(__name__)


class Steps:
    """Tells by an agent's events where one of its steps is over and the next one is to come.

    A step is a call to the model with the tools that it called. One that called none is the last, as far as
    anybody knows.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._acted = False

    def take(self, event: events.Event) -> bool:
        """Whether a step is over after this event, and the agent goes on."""
        match event:
            case events.Calls(calls=calls):
                self._open.update(call.id for call in calls)
                self._acted = True
            case events.Result(id=call_id):
                self._open.discard(call_id)
            case events.Text():
                self._acted = self._acted and bool(self._open)
            case events.Used():
                pass
            case _:
                return False
        return self._acted and not self._open and not isinstance(event, events.Text)


class Allowance:
    """Messages are not counted between steps: the turn that reaches their limit ends with its answer."""

    def __init__(
        self,
        parts: Parts,
        turn: Turn,
        session: Session,
        policy: SessionResetPolicy,
        transcript: Sequence[Plain],
        speech: Speech,
    ) -> None:
        """``transcript`` is what there was before the speech's rows."""
        self._parts = parts
        self._turn = turn
        self._session = session
        self._transcript = transcript
        self._speech = speech
        self._steps = Steps()
        self._spent = False
        """The budget was used up when the agent last told what it used."""
        self.policy = policy

    @property
    def seconds_left(self) -> float | None:
        """Until the session's time is over; None when it has no end or is over already."""
        if not self.policy.max_session_minutes:
            return None
        end = self._session.as_limited().created_at + timedelta(minutes=self.policy.max_session_minutes)
        left = (end - self._parts.clock.now()).total_seconds()
        return left if left > 0 else None

    async def overrun_after(self, event: events.Event) -> EndReason | None:
        """Why the turn may not go on after an event of its agent. Only between two steps, and, where their
        ends cannot be told, when something was used once more after the budget had been used up."""
        between = self._steps.take(event)
        if not between and not isinstance(event, events.Used):
            return None
        reason = await self.overrun()
        stops = between or self._spent
        self._spent = self._spent or reason is not None
        return reason if stops else None

    async def ends_in_time(self) -> bool:
        """Whether the turn ends with the session's time."""
        return not await self._parts.conversations.is_busy(self._turn.session_key)

    async def overrun(self) -> EndReason | None:
        """Why the turn may not go on."""
        return await self.reason(within_turn=True)

    async def reason(
        self, stopped: EndReason | None = None, *, within_turn: bool = False
    ) -> EndReason | None:
        """Why the session is over once the turn is, which a limit may have stopped, unless background work
        holds that back. What cannot be told stops neither the turn nor the reply."""
        try:
            spiral, now = spirals.look(self._rows, self.policy), self._parts.clock.now()
            reason = stopped or limits.rotation_reason(
                self._limited, self.policy, spiral, now=now, within_turn=within_turn
            )
            busy = reason is not None and await self._parts.conversations.is_busy(self._turn.session_key)
        except Exception:
            log.exception("overrun_unknown" if within_turn else "rotation_failed", turn=self._turn.id)
            return None
        return None if busy else reason

    @property
    def _rows(self) -> list[Plain]:
        tail = spirals.tail_rows(self.policy)
        return [*self._transcript[-tail:], *self._speech.rows]

    @property
    def _limited(self) -> SessionEntry:
        """The session's counters as its limits see them once the turn is written."""
        entry, usage = self._session.entry, self._speech.usage
        counted = replace(entry, message_count=entry.message_count + self._speech.counted)
        if usage is not None:
            sums = {name: getattr(entry, name) + getattr(usage, name) for name in USAGE_COUNTERS}
            counted = replace(counted, estimated_cost_usd=entry.estimated_cost_usd + usage.cost_usd, **sums)
        return self._session.as_limited(counted)
