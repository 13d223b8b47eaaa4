"""Functions as agents."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from frontdesk import errors
from frontdesk.agents.python import Driver, Options
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import events
from frontdesk.testing.agents import answer, assignment, said

entered = threading.Event()
left = threading.Event()


class Holder:
    async def __call__(self, turn: events.Assignment, line: Line) -> str:
        return "called"

    def method(self, turn: events.Assignment, line: Line) -> str:
        return threading.current_thread().name


holder = Holder()
value = 3


async def mixed(turn: events.Assignment, line: Line) -> AsyncIterator[events.Event | str]:
    yield "a"
    yield events.Details(fields={"reasoning": "b"})
    yield events.Done(finish_reason="length")
    yield "never"


async def wrong(turn: events.Assignment, line: Line) -> AsyncIterator[object]:
    yield "a"
    yield 3


async def broken(turn: events.Assignment, line: Line) -> AsyncIterator[str]:
    yield "a"
    raise ValueError("the password is swordfish")


async def choosy(turn: events.Assignment, line: Line) -> str:
    await line.take()
    await line.receive()
    await line.take()
    line.mark_steered("t3")
    return "heard"


async def careful(turn: events.Assignment, line: Line) -> str:
    await line.confirm()
    return "mine"


async def cut_off(turn: events.Assignment, line: Line) -> str:
    raise ConnectionResetError


def leaving(turn: events.Assignment, line: Line) -> str:
    raise SystemExit(1)


def exhausted(turn: events.Assignment, line: Line) -> str:
    raise StopIteration


def generator(turn: events.Assignment, line: Line) -> Iterator[str]:
    yield "a"


def blocking(turn: events.Assignment, line: Line) -> str:
    entered.set()
    while not line.stopping:
        left.wait(0.001)
    left.set()
    return "stopped"


def driver(name: str, **options: object) -> Driver:
    return Driver(Options(target=f"{__name__}:{name}", **options))  # type: ignore[arg-type]


async def test_texts_and_events_are_mixed_up_to_the_end() -> None:
    assert await said(driver("mixed"), assignment("hello")) == [
        events.Text(text="a"),
        events.Details(fields={"reasoning": "b"}),
        events.Done(finish_reason="length"),
    ]


async def test_function_can_ask_whether_the_turn_is_still_its_own() -> None:
    assert answer(await said(driver("careful"), assignment("hello"))) == "mine"


@pytest.mark.parametrize(("name", "text"), [("holder", "called"), ("holder.method", "agent")])
async def test_objects_and_methods_are_functions_too(name: str, text: str) -> None:
    assert answer(await said(driver(name), assignment("hello"))) == text


async def test_values_of_another_kind_fail() -> None:
    heard = await said(driver("wrong"), assignment("hello"))
    message = "the agent's function gave a value of type int, not a text or an event"
    assert heard == [events.Text(text="a"), events.Failed(message=message)]


@pytest.mark.parametrize(
    ("name", "error", "retryable"),
    [
        ("broken", "ValueError", False),
        ("cut_off", "ConnectionResetError", True),
        ("leaving", "SystemExit", False),
        ("exhausted", "RuntimeError", False),
    ],
)
async def test_error_fails_the_turn_and_is_logged(
    name: str, error: str, retryable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    *_, failed = await said(driver(name), assignment("hello"))
    message = f"the agent's function raised {error}; the log says more"
    assert failed == events.Failed(message=message, retryable=retryable)
    assert "agent_raised" in caplog.text


async def test_plain_function_of_a_cancelled_turn_is_told_to_stop() -> None:
    entered.clear()
    left.clear()
    task = asyncio.create_task(said(driver("blocking"), assignment("hello")))
    assert await asyncio.to_thread(entered.wait, 60)
    task.cancel()
    await asyncio.wait({task})
    assert await asyncio.to_thread(left.wait, 60)


async def test_turn_beyond_the_threads_may_be_tried_again() -> None:
    entered.clear()
    agent = driver("blocking", max_threads=1)
    line = Line()
    first = asyncio.create_task(said(agent, assignment("hello"), line))
    assert await asyncio.to_thread(entered.wait, 60)
    (failed,) = await said(agent, assignment("hello"))
    assert isinstance(failed, events.Failed)
    assert failed.retryable
    line.send(events.Stop())
    assert answer(await first) == "stopped"


async def test_abilities_are_those_of_the_options() -> None:
    assert driver("mixed").abilities == Abilities(paths=True)
    able = Abilities(steers=True, stops=True, images=True, paths=True)
    assert driver("mixed", steers=True, stops=True, images=True).abilities == able


@pytest.mark.parametrize("target", ["no_such_module:f", f"{__name__}:nothing", f"{__name__}:value"])
def test_target_that_is_no_function_is_refused(target: str) -> None:
    with pytest.raises(errors.AgentFailed, match=target.partition(":")[2]):
        Driver(Options(target=target))


def test_generator_that_would_block_is_refused() -> None:
    with pytest.raises(errors.AgentFailed):
        driver("generator")


@pytest.mark.parametrize("target", ["", "module", "module:", ":name"])
def test_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(errors.InvalidSetting):
        Driver(Options(target=target))


async def test_function_says_what_it_heeds() -> None:
    line = Line()
    for name in ("t1", "t2", "t3"):
        line.send(events.Steer(text="left", id=name))
    assert (
        answer(await said(Driver(Options(target=f"{__name__}:choosy")), assignment("hello"), line)) == "heard"
    )
    assert [line.has_steered(name) for name in ("t1", "t2", "t3")] == [False, True, True]
