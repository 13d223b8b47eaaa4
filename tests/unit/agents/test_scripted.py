"""The scripted agent does what the message says."""

import asyncio
import subprocess
import sys

import pytest

from frontdesk.agents.scripted import Driver, Options
from frontdesk.contracts.agents import Line
from frontdesk.model import events
from frontdesk.model.messages import INTERRUPTED, Plain
from frontdesk.model.sessions import Usage
from frontdesk.testing.agents import answer, assignment, said

DONE = events.Done()


async def tell(text: str, line: Line | None = None, **options: object) -> list[events.Event]:
    return await said(Driver(Options(**options)), assignment(text), line)  # type: ignore[arg-type]


async def test_message_is_echoed() -> None:
    assert await tell("one; two! 東京") == [events.Text(text="echo: one; two! 東京"), DONE]


async def test_parts_that_are_no_directive_are_echoed_in_their_place() -> None:
    assert answer(await tell("a; !say b; c")) == "echo: abecho: c"


async def test_turn_that_says_nothing_else_echoes_the_message() -> None:
    assert answer(await tell("!sleep 0; !summary short")) == "echo: !sleep 0; !summary short"


async def test_semicolon_in_quotes_separates_nothing() -> None:
    (called, *_) = await tell('!tool run {"line": "a; b"}; !say x')
    assert isinstance(called, events.Calls)
    assert called.calls[0].arguments == '{"line": "a; b"}'


async def test_tool_is_called_and_gives_its_arguments() -> None:
    call = events.Call(id="turn.1.1", name="look", arguments='{"at": 1}')
    assert (await tell('!tool look {"at": 1}'))[:2] == [
        events.Calls(calls=(call,)),
        events.Result(id="turn.1.1", content='{"at": 1}', name="look"),
    ]


async def test_tool_may_fail_or_never_answer() -> None:
    heard = await tell("!toolerror look; !call wait")
    assert [type(event) for event in heard[:3]] == [events.Calls, events.Result, events.Calls]
    assert isinstance(heard[1], events.Result)
    assert heard[1].is_error


@pytest.mark.parametrize(("content", "again"), [("{}", False), (INTERRUPTED, True)])
async def test_tool_that_gave_its_result_before_is_not_called_again(content: str, again: bool) -> None:
    result: Plain = {"role": "tool", "tool_call_id": "turn.1.1", "content": content}
    turn = assignment("!tool look", attempt=2, before=(result,))
    heard = await said(Driver(Options()), turn)
    assert any(isinstance(event, events.Calls) for event in heard) is again


async def test_pieces_usage_and_summary_are_given() -> None:
    assert await tell("!stream 2; !tokens 10 20 0.5; !summary a b") == [
        events.Text(text="1 "),
        events.Text(text="2 "),
        events.Used(usage=Usage(input_tokens=10, output_tokens=20, cost_usd=0.5)),
        events.Summary(text="a b"),
        DONE,
    ]


@pytest.mark.parametrize(("approved", "word"), [(True, "approved: remove"), (False, "denied: remove (no)")])
async def test_approval_waits_for_its_own_decision(approved: bool, word: str) -> None:
    line = Line()
    line.send(events.Decision(id="other", approved=not approved))
    line.send(events.Decision(id="turn.approval.1", approved=approved, reason=None if approved else "no"))
    heard = await tell("!approve remove the file", line)
    asked = events.Approval(id="turn.approval.1", action="remove", description="the file")
    assert heard == [asked, events.Text(text=word), DONE]


async def test_failure_ends_the_turn() -> None:
    assert await tell("!fail; !say never") == [events.Failed(message="the script says so")]
    assert await tell("!fail retryable") == [events.Failed(message="the script says so", retryable=True)]


@pytest.mark.parametrize("directive", ["!fail retryable 1", "!hang 1", "!raise 1", "!exit 1"])
async def test_directive_for_the_first_attempt_is_passed_over_in_the_second(directive: str) -> None:
    turn = assignment(f"{directive}; !show attempt", attempt=2)
    assert answer(await said(Driver(Options()), turn)) == "attempt: 2"


async def test_exit_ends_the_process() -> None:
    program = (
        "import asyncio\n"
        "from frontdesk.agents.scripted import Driver, Options\n"
        "from frontdesk.testing.agents import assignment, said\n"
        "asyncio.run(said(Driver(Options()), assignment('!exit')))\n"
    )
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], check=False)
    assert done.returncode == 70


async def test_raise_raises() -> None:
    with pytest.raises(RuntimeError, match="the script says so"):
        await tell("!raise")


@pytest.mark.parametrize(
    "text", ["!say a; !hang; !say b", "!say a; !sleep 1000", "!say a; !approve x", "!say a; !steer"]
)
async def test_stop_ends_every_wait(text: str) -> None:
    line = Line()
    line.send(events.Stop())
    assert (await tell(text, line))[-1] == events.Done(finish_reason="stopped")


async def test_deaf_agent_is_told_nothing() -> None:
    line = Line()
    line.send(events.Stop())
    assert answer(await tell("hello", line, stops=False)) == "echo: hello"


async def test_steering_is_waited_for_or_said_at_the_end() -> None:
    line = Line()
    line.send(events.Steer(text="left", id="t2"))
    line.send(events.Steer(text="right", id="t3"))
    assert answer(await tell("!steer; !sleep 0", line, steers=True)) == "steered: leftsteered: right"
    assert line.has_steered("t2")
    assert line.has_steered("t3")


async def test_steering_that_nobody_repeats_is_not_heeded() -> None:
    line = Line()
    line.send(events.Steer(text="left", id="t2"))
    await tell("!sleep 0; !fail", line, steers=True)
    assert not line.has_steered("t2")


async def test_script_answers_messages_without_directives() -> None:
    script = ("!tokens 1 2", "as written")
    heard = await tell("hello", script=script)
    assert answer(heard) == "as written"
    assert isinstance(heard[0], events.Used)
    assert answer(await tell("!say other", script=script)) == "other"


@pytest.mark.parametrize("text", ["!fly", "!sleep", "!tokens 1", "!stream x", "!tokens -1 0"])
async def test_directive_that_cannot_be_understood_fails(text: str) -> None:
    (failed,) = await tell(text)
    assert isinstance(failed, events.Failed)
    assert not failed.retryable
