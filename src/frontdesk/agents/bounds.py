"""Bounds around any agent: how long, how much, how often. The same interface outside."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Annotated, TypeVar

import msgspec

from frontdesk.contracts.agents import Abilities, Agent, Line
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

T = TypeVar("T")

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn may take; None is no bound. The time in which a person decides counts nowhere."""

    turn_seconds: float | None = 1800.0
    idle_seconds: float | None = 600.0
    """Between two events."""
    max_events: int | None = 100_000
    max_text_characters: int | None = 1_000_000
    max_calls: int | None = 1_000
    close_seconds: float = 30.0
    """How long an agent may take to clean up after its turn, and at its own end."""
    release_seconds: float = 10.0
    """How long it may take to free what it holds for a session."""


NO_ABILITIES = Abilities()


class Bounded:
    """An agent that keeps its bounds: the turn that exceeds one ends with a Failed that names it.

    Results of unknown calls and second results of a call are left out.
    """

    def __init__(self, agent: Agent, limits: Limits | None = None) -> None:
        self._agent = agent
        self._limits = limits or Limits()

    @property
    def abilities(self) -> Abilities:
        """None, where the agent says nothing of them."""
        return getattr(self._agent, "abilities", NO_ABILITIES)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        patience = Patience(self._limits.idle_seconds, self._limits.turn_seconds)
        tally, book = Tally(self._limits), Book(turn.turn_id)
        line.overhear(patience.heed)
        inner = self._agent.run(turn, line)
        try:
            while (event := await patience.wait_for(anext(inner, None))) is not None:
                if isinstance(event, events.Calls | events.Result) and not book.admits(event):
                    continue
                if isinstance(event, events.Approval):
                    patience.note(event)
                event = tally.count(event) or event
                yield event
                if isinstance(event, events.Done | events.Failed):
                    return
        finally:
            await close_iterator(inner, self._limits.close_seconds)

    async def release(self, session_id: str) -> None:
        """What an agent cannot free in time keeps no conversation waiting."""
        try:
            async with asyncio.timeout(self._limits.release_seconds):
                await self._agent.release(session_id)
        except Exception:
            log.exception("release_failed", session=session_id)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await self._agent.close()
        except Exception:
            log.exception("agent_close_failed")


async def close_iterator(iterator: AsyncIterator[events.Event], seconds: float) -> None:
    """Close what an agent's run gave, within bounds."""
    aclose = getattr(iterator, "aclose", None)
    if aclose is None:
        return
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            await aclose()
    except TimeoutError:
        if not timer.expired():
            raise
        log.warning("agent_close_timeout", seconds=seconds)


class Patience(msgspec.Struct, eq=False):
    """How long an agent may still take.

    The clock runs only while somebody waits for the agent and no person has to decide something first.
    """

    _idle: float | None
    """Seconds between two events."""
    _turn: float | None = None
    """Seconds in all."""
    _used: float = 0.0
    """Of those."""
    _asked: set[str] = set()
    _timer: asyncio.Timeout | None = None
    _since: float | None = None
    _failure: events.Failed | None = None

    async def wait_for(self, coming: Awaitable[T]) -> T | events.Failed | None:
        """What comes of the agent; a Failed once the time is up."""
        found = None
        try:
            async with asyncio.timeout(None) as timer:
                self._timer = timer
                try:
                    self._run_on()
                    found = await coming
                finally:
                    if timer.expired():
                        self._failure = self._named()
                    self._stand_still()
                    self._timer = None
        except TimeoutError:
            if self._failure is None:
                raise
        return self._failure or found

    def allow(self, idle_seconds: float) -> None:
        """From the next wait on, this long."""
        self._idle = idle_seconds

    def note(self, approval: events.Approval) -> None:
        """A person is to decide first."""
        self._asked.add(approval.id)
        self._stand_still()

    def heed(self, signal: events.Signal) -> None:
        """A decision that the agent hears lets its time run on."""
        if isinstance(signal, events.Decision):
            self._asked.discard(signal.id)
            self._run_on()

    def _run_on(self) -> None:
        if self._timer is None or self._asked or self._since is not None or self._timer.expired():
            return
        self._since = asyncio.get_running_loop().time()
        left = None if self._turn is None else self._turn - self._used
        bounds = [each for each in (left, self._idle) if each is not None]
        if bounds:
            self._timer.reschedule(self._since + max(0.0, min(bounds)))

    def _stand_still(self) -> None:
        if self._since is None:
            return
        self._used += asyncio.get_running_loop().time() - self._since
        self._since = None
        if self._timer is not None and not self._timer.expired():
            self._timer.reschedule(None)

    def _named(self) -> events.Failed:
        if self._turn is not None and (self._idle is None or self._turn - self._used <= self._idle):
            return events.Failed(message=f"the turn took more than {self._turn:g} seconds")
        return events.Failed(message=f"the agent said nothing for {self._idle:g} seconds", retryable=True)


class Tally(msgspec.Struct):
    """Counts what a turn brings."""

    _limits: Limits
    _events: int = 0
    _characters: int = 0
    _calls: int = 0

    def count(self, event: events.Event) -> events.Failed | None:
        """The failure, when this event is too much."""
        self._events += 1
        match event:
            case events.Text(text=text) | events.Summary(text=text) | events.Send(text=text):
                self._characters += len(text)
            case events.Choice(numbered=text):
                self._characters += len(text)
            case events.Calls(calls=calls):
                self._calls += len(calls)
        counts = (
            (self._events, self._limits.max_events, "events"),
            (self._characters, self._limits.max_text_characters, "characters of text"),
            (self._calls, self._limits.max_calls, "tool calls"),
        )
        for count, most, what in counts:
            if most is not None and count > most:
                return events.Failed(message=f"the turn brought more than {most} {what}")
        return None


class Book(msgspec.Struct):
    """The calls of a turn and whether they have their result. An id may come again once it has."""

    _turn_id: str
    _open: set[str] = set()
    _answered: set[str] = set()

    def admits(self, event: events.Event) -> bool:
        """Whether the event fits; logged when it does not."""
        match event:
            case events.Calls(calls=calls):
                self._open.update(call.id for call in calls)
            case events.Result(id=call_id) if call_id not in self._open:
                why = "repeated" if call_id in self._answered else "unknown call"
                log.warning("agent_result_dropped", turn=self._turn_id, call=call_id, why=why)
                return False
            case events.Result(id=call_id):
                self._open.remove(call_id)
                self._answered.add(call_id)
        return True
