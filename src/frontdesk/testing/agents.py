"""The contract of an agent as tests, for whoever writes a driver.

Subclass `AgentContract` in a test module, with a fixture ``agent`` that gives a driver and closes it. It runs
under pytest-asyncio in its ``auto`` mode::

    class TestMine(AgentContract):
        slow = "count to a million"

        @pytest.fixture
        async def agent(self):
            driver = mine.Driver(mine.Options())
            yield driver
            await driver.close()
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from frontdesk.contracts.agents import Agent, Line
from frontdesk.model import events
from frontdesk.model.messages import Plain

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.01
ALL_SORTS = 'Grüße, 東京 👩‍🚀 \U0001f1f3\U0001f1f4 e\u0301 "quoted" \\ / \t\u2028 <b>&amp;</b>'


class AgentContract:
    """What holds for every agent. The attributes say what this one answers to."""

    question = "hello"
    """A message that is answered with some text, soon."""
    slow: str | None = None
    """A message that the agent works on for longer than the tests have patience; None when there is none."""
    slow_speaks = False
    """It says something before it gets slow."""

    def expected(self, text: str) -> str | None:  # noqa: ARG002
        """The exact answer to a text; None when nobody can know."""
        return None

    async def test_every_event_is_legal_and_nothing_follows_the_end(self, agent: Agent) -> None:
        check_events(await said(agent, assignment(self.question)))

    async def test_question_is_answered_with_text(self, agent: Agent) -> None:
        assert answer(await said(agent, assignment(self.question))).strip()

    async def test_text_comes_through_unchanged(self, agent: Agent) -> None:
        wanted = self.expected(ALL_SORTS)
        if wanted is None:
            pytest.skip("nobody knows the answer of this agent")
        assert answer(await said(agent, assignment(ALL_SORTS))) == wanted

    async def test_second_attempt_answers_like_a_first(self, agent: Agent) -> None:
        heard = await said(agent, assignment(self.question, attempt=2))
        check_events(heard)
        assert answer(heard).strip()

    async def test_turns_of_a_session_follow_each_other(self, agent: Agent) -> None:
        for number in range(3):
            turn = assignment(self.question, turn_id=f"turn-{number}")
            assert answer(await said(agent, turn)).strip()

    async def test_sessions_run_at_once(self, agent: Agent) -> None:
        turns = [
            assignment(self.question, session_id=f"session-{number}", turn_id=f"turn-{number}")
            for number in range(4)
        ]
        for heard in await asyncio.gather(*(said(agent, turn) for turn in turns)):
            check_events(heard)
            assert answer(heard).strip()

    async def test_stop_ends_the_turn(self, agent: Agent) -> None:
        if not agent.abilities.stops:
            pytest.skip("this agent is stopped by closing its iterator")
        line = Line()
        task = await self._slow_turn(agent, line)
        line.send(events.Stop())
        check_events(await asyncio.wait_for(task, PATIENCE_SECONDS))

    async def test_stop_before_the_turn_ends_it_too(self, agent: Agent) -> None:
        if not agent.abilities.stops:
            pytest.skip("this agent is stopped by closing its iterator")
        line = Line()
        line.send(events.Stop())
        check_events(await said(agent, self._slow(), line))

    async def test_cancelled_turn_leaves_nothing_running(self, agent: Agent) -> None:
        async with leaving_nothing():
            task = await self._slow_turn(agent, Line())
            task.cancel()
            await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
            assert task.cancelled(), "the turn did not end when it was cancelled"

    async def test_closed_iterator_leaves_nothing_running(self, agent: Agent) -> None:
        async with leaving_nothing():
            await self._begun_and_closed(agent)
            await agent.release("session")

    async def test_iterator_that_nobody_asked_may_be_closed(self, agent: Agent) -> None:
        async with leaving_nothing():
            await run(agent, assignment(self.question), Line()).aclose()

    async def test_turn_after_a_closed_one_works(self, agent: Agent) -> None:
        await self._begun_and_closed(agent)
        assert answer(await said(agent, assignment(self.question, attempt=2))).strip()

    async def test_finished_turn_leaves_nothing_running_once_it_is_released(self, agent: Agent) -> None:
        async with leaving_nothing():
            await said(agent, assignment(self.question))
            await agent.release("session")

    async def test_session_works_again_after_its_release(self, agent: Agent) -> None:
        await agent.release("never seen")
        await said(agent, assignment(self.question))
        await agent.release("session")
        await agent.release("session")
        assert answer(await said(agent, assignment(self.question, turn_id="turn-2"))).strip()

    async def test_closing_twice_is_closing_once(self, agent: Agent) -> None:
        async with leaving_nothing():
            await said(agent, assignment(self.question))
            await agent.close()
            await agent.close()

    async def _begun_and_closed(self, agent: Agent) -> None:
        async with aclosing(run(agent, assignment(self.question), Line())) as heard:
            await anext(heard, None)

    def _slow(self) -> events.Assignment:
        if self.slow is None:
            pytest.skip("nothing takes this agent long")
        return assignment(self.slow)

    async def _slow_turn(self, agent: Agent, line: Line) -> "asyncio.Task[list[events.Event]]":
        """A turn in the middle of its work."""
        started = asyncio.Event()
        task = asyncio.create_task(said(agent, self._slow(), line, started))
        await (asyncio.wait_for(started.wait(), PATIENCE_SECONDS) if self.slow_speaks else asyncio.sleep(0))
        return task


def assignment(
    text: str,
    *,
    attempt: int = 1,
    session_id: str = "session",
    turn_id: str = "turn",
    before: tuple[Plain, ...] = (),
) -> events.Assignment:
    """A turn that brings a text, after the messages before it."""
    asked: Plain = {"role": "user", "content": text}
    return events.Assignment(
        turn_id=turn_id,
        session_id=session_id,
        session_key=f"agent:main:test:dm:{session_id}",
        attempt=attempt,
        messages=[*before, asked],
        input=asked,
    )


def run(agent: Agent, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
    """The turn's iterator, which can be closed."""
    iterator: AsyncIterator[events.Event] = agent.run(turn, line)
    assert hasattr(iterator, "aclose"), "what run() gives must have aclose(): use an async generator"
    return cast("AsyncGenerator[events.Event, None]", iterator)


async def said(
    agent: Agent, turn: events.Assignment, line: Line | None = None, started: asyncio.Event | None = None
) -> list[events.Event]:
    """All events of a turn."""
    heard = []
    async with asyncio.timeout(PATIENCE_SECONDS), aclosing(run(agent, turn, line or Line())) as iterator:
        async for event in iterator:
            heard.append(event)
            if started is not None:
                started.set()
    return heard


def answer(heard: list[events.Event]) -> str:
    """The text of a turn that ended well."""
    failures = [event.message for event in heard if isinstance(event, events.Failed)]
    assert not failures, f"the turn failed: {failures[0]}"
    return "".join(event.text for event in heard if isinstance(event, events.Text))


def check_events(heard: list[events.Event]) -> None:
    """Refuse what the gateway could not store."""
    called: set[str] = set()
    for position, event in enumerate(heard):
        assert isinstance(event, events.Event), f"not an event: {event!r}"
        if isinstance(event, events.Done | events.Failed):
            assert position == len(heard) - 1, f"{event!r} is not the last event"
        if isinstance(event, events.Calls):
            assert event.calls, "Calls without a call"
            called.update(call.id for call in event.calls)
        if isinstance(event, events.Result):
            assert event.id in called, f"{event!r} belongs to no open call"
            called.remove(event.id)
        if isinstance(event, events.Used):
            event.usage.checked()


def running() -> set[object]:
    """Our tasks and, where the system tells, the processes that we started and did not end."""
    return {*asyncio.all_tasks(), *_children()}


async def nothing_new(before: set[object]) -> None:
    """Wait until nothing runs that did not run before; what is ending gets the time to."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await until(lambda: not running() - before)
    except TimeoutError:
        raise AssertionError(f"still running: {running() - before}") from None


@asynccontextmanager
async def leaving_nothing() -> AsyncIterator[None]:
    """What is begun in here has ended soon afterwards."""
    before = running()
    yield
    await nothing_new(before)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what nobody tells us."""
    while True:
        if holds():
            return
        await asyncio.sleep(LOOK_SECONDS)


def _children() -> set[int]:
    lists = Path("/proc/self/task").glob("*/children")
    found: set[int] = set()
    for each in lists:
        try:
            found.update(map(int, each.read_text().split()))
        except OSError:  # the thread ended meanwhile
            continue
    return found
