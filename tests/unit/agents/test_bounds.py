"""A bounded agent is the agent inside, until it exceeds a bound."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable

import pytest

from frontdesk.agents.bounds import Bounded, Limits
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import events
from frontdesk.testing.agents import assignment, said

Says = Callable[[Line], AsyncGenerator[events.Event]]
NO_TIME = 0.01
CALL = events.Calls(calls=(events.Call(id="1", name="look"),))
RESULT = events.Result(id="1", content="seen")
ASK = events.Approval(id="a", action="remove", description="Remove it?")


class Inside:
    """An agent that says what it is given, and notes that it was closed."""

    abilities = Abilities(stops=True)

    def __init__(self, *given: events.Event, then: Says | None = None) -> None:
        self._given = given
        self._then = then
        self.closed = 0
        self.calls: list[str] = []

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        try:
            for event in self._given:
                yield event
            if self._then is not None:
                async for event in self._then(line):
                    yield event
        finally:
            self.closed += 1

    async def release(self, session_id: str) -> None:
        self.calls.append(session_id)

    async def close(self) -> None:
        self.calls.append("close")


async def hang(line: Line) -> AsyncGenerator[events.Event]:
    await asyncio.Event().wait()
    yield events.Done()


async def run(inside: Inside, limits: Limits, line: Line | None = None) -> list[events.Event]:
    heard = await said(Bounded(inside, limits), assignment("hello"), line)
    assert inside.closed == 1
    return heard


def text(count: int) -> events.Text:
    return events.Text(text="é" * count)


async def test_what_keeps_its_bounds_goes_through_unchanged() -> None:
    given = [text(3), CALL, RESULT, events.Summary(text="short"), events.Done(finish_reason="stop")]
    assert await run(Inside(*given), Limits()) == given


async def test_agent_that_simply_stops_is_left_to_do_so() -> None:
    assert await run(Inside(text(1)), Limits()) == [text(1)]


async def test_nothing_comes_through_after_the_end() -> None:
    assert await run(Inside(events.Done(), text(1)), Limits()) == [events.Done()]
    failed = events.Failed(message="no")
    assert await run(Inside(failed, events.Done()), Limits()) == [failed]


@pytest.mark.parametrize(
    ("limits", "given", "message"),
    [
        (Limits(max_events=2), [text(1)] * 3, "the turn brought more than 2 events"),
        (
            Limits(max_text_characters=5),
            [text(3), text(3)],
            "the turn brought more than 5 characters of text",
        ),
        (Limits(max_calls=1), [CALL, CALL], "the turn brought more than 1 tool calls"),
    ],
)
async def test_too_much_fails_and_names_the_bound(
    limits: Limits, given: list[events.Event], message: str
) -> None:
    heard = await run(Inside(*given, events.Done()), limits)
    assert heard == [*given[:-1], events.Failed(message=message)]


async def test_exactly_as_much_as_allowed_is_no_failure() -> None:
    limits = Limits(max_events=4, max_text_characters=6, max_calls=1)
    heard = await run(Inside(text(3), text(3), CALL, events.Done()), limits)
    assert heard[-1] == events.Done()


async def test_silence_fails_and_may_be_tried_again() -> None:
    heard = await run(Inside(text(1), then=hang), Limits(idle_seconds=NO_TIME))
    assert heard == [
        text(1),
        events.Failed(message="the agent said nothing for 0.01 seconds", retryable=True),
    ]


async def test_turn_that_takes_too_long_fails() -> None:
    async def chatter(line: Line) -> AsyncGenerator[events.Event]:
        while True:
            await asyncio.sleep(NO_TIME / 10)
            yield text(1)

    heard = await run(Inside(then=chatter), Limits(turn_seconds=NO_TIME, max_events=None))
    assert heard[-1] == events.Failed(message="the turn took more than 0.01 seconds")


async def test_bounds_that_are_none_do_not_bound() -> None:
    limits = Limits(
        turn_seconds=None, idle_seconds=None, max_events=None, max_text_characters=None, max_calls=None
    )
    assert len(await run(Inside(*[CALL, RESULT, text(9)] * 100), limits)) == 300


async def test_time_stands_still_while_a_person_decides() -> None:
    line = Line()

    async def decided(inner: Line) -> AsyncGenerator[events.Event]:
        yield ASK
        # Far beyond both bounds, which would have cut this short.
        await asyncio.sleep(NO_TIME * 5)
        line.send(events.Decision(id="a", approved=True))
        assert await inner.receive() == events.Decision(id="a", approved=True)
        yield text(1)

    heard = await run(Inside(then=decided), Limits(idle_seconds=NO_TIME, turn_seconds=NO_TIME), line)
    assert heard == [ASK, text(1)]


async def test_time_runs_on_after_the_decision() -> None:
    line = Line()
    line.send(events.Decision(id="other", approved=True))
    line.send(events.Decision(id="a", approved=False))

    async def decided(inner: Line) -> AsyncGenerator[events.Event]:
        yield ASK
        await inner.receive()
        await inner.receive()
        await asyncio.Event().wait()

    heard = await run(Inside(then=decided), Limits(idle_seconds=NO_TIME), line)
    assert [type(event) for event in heard] == [events.Approval, events.Failed]


async def test_time_that_the_asker_takes_is_not_the_agents() -> None:
    inside = Inside(text(1), text(2), events.Done())
    heard = []
    async for event in Bounded(inside, Limits(idle_seconds=NO_TIME, turn_seconds=NO_TIME)).run(
        assignment("hello"), Line()
    ):
        heard.append(event)
        await asyncio.sleep(NO_TIME * 2)
    assert heard[-1] == events.Done()


async def test_agent_that_shrugs_off_its_end_has_failed_all_the_same() -> None:
    async def stubborn(line: Line) -> AsyncGenerator[events.Event]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield text(1)

    heard = await run(Inside(then=stubborn), Limits(idle_seconds=NO_TIME))
    assert [type(event) for event in heard] == [events.Failed]


async def test_timeouts_of_the_agent_itself_are_not_taken_for_the_bounds() -> None:
    async def late(line: Line) -> AsyncGenerator[events.Event]:
        raise TimeoutError("its own")
        yield events.Done()

    with pytest.raises(TimeoutError, match="its own"):
        await run(Inside(then=late), Limits())


async def test_orphan_and_second_results_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    orphan = events.Result(id="9", content="?")
    with caplog.at_level(logging.WARNING):
        heard = await run(Inside(orphan, CALL, RESULT, RESULT, events.Done()), Limits())
    assert heard == [CALL, RESULT, events.Done()]
    assert ["call=9" in line for line in caplog.messages] == [True, False]
    assert "repeated" in caplog.messages[1]


async def test_id_that_has_its_result_may_be_used_again() -> None:
    given = [CALL, RESULT, CALL, RESULT]
    assert await run(Inside(*given), Limits()) == given


async def test_cleaning_up_has_its_bound_too(caplog: pytest.LogCaptureFixture) -> None:
    async def clinging(line: Line) -> AsyncGenerator[events.Event]:
        try:
            yield text(1)
        finally:
            await asyncio.Event().wait()

    class Clinging(Inside):
        def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
            return clinging(line)

    agent = Bounded(Clinging(), Limits(max_events=0, close_seconds=NO_TIME))
    heard = await said(agent, assignment("hello"))
    assert [type(event) for event in heard] == [events.Failed]
    assert "agent_close_timeout" in caplog.text


class Stubborn(Inside):
    """Cannot free anything: it hangs, or it raises."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self._error = error

    async def release(self, session_id: str) -> None:
        await super().release(session_id)
        await self._fail()

    async def close(self) -> None:
        await super().close()
        await self._fail()

    async def _fail(self) -> None:
        if self._error:
            raise self._error
        await asyncio.Event().wait()


@pytest.mark.parametrize("error", [None, RuntimeError("the tool is gone"), TimeoutError("the tool is slow")])
async def test_agent_that_cannot_take_leave_keeps_nobody_waiting(
    error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    inside = Stubborn(error)
    agent = Bounded(inside, Limits(release_seconds=NO_TIME, close_seconds=NO_TIME))
    await agent.release("session")
    await agent.close()
    assert inside.calls == ["session", "close"]
    assert "event=release_failed session=session" in caplog.text
    assert "event=agent_close_failed" in caplog.text


async def test_everything_else_is_the_agents_own() -> None:
    inside = Inside()
    agent = Bounded(inside)
    await agent.release("session")
    await agent.close()
    assert agent.abilities == Abilities(stops=True)
    assert inside.calls == ["session", "close"]


async def test_agent_inside_hears_stop_and_steering() -> None:
    line = Line()
    line.send(events.Steer(text="left"))
    line.send(events.Stop())

    async def obeying(inner: Line) -> AsyncGenerator[events.Event]:
        await inner.stopped()
        assert inner.stopping
        assert await inner.receive() == events.Steer(text="left")
        assert await inner.receive() == events.Stop()
        yield events.Done()

    assert await run(Inside(then=obeying), Limits(), line) == [events.Done()]


async def test_agent_inside_says_what_it_heeds() -> None:
    line = Line()
    for name in ("t1", "t2", "t3"):
        line.send(events.Steer(text="left", id=name))

    async def choosing(inner: Line) -> AsyncGenerator[events.Event]:
        await inner.take()
        await inner.receive()
        await inner.take()
        inner.mark_steered("t3")
        yield events.Done()

    assert await run(Inside(then=choosing), Limits(), line) == [events.Done()]
    assert [line.has_steered(name) for name in ("t1", "t2", "t3")] == [False, True, True]
