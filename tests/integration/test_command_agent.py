"""Agents that are programs: good ones, bad ones, and what is left of them."""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from frontdesk import errors
from frontdesk.agents.command import Driver, Options
from frontdesk.contracts.agents import Line
from frontdesk.model import events
from frontdesk.model.sessions import Usage
from frontdesk.testing.agents import PATIENCE_SECONDS, answer, assignment, run, said
from tests.processes import gone, lives, needs_proc

UNUSABLE = "the agent wrote a line that cannot be used"
EXAMPLE = Path(__file__).parents[2] / "examples" / "command_agent.py"
SOON_SECONDS = 0.2
PRELUDE = """\
import json, os, signal, subprocess, sys, time

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()

def say(kind, **fields):
    write(json.dumps({"type": kind, **fields}) + "\\n")

turn = hear()
"""
Make = Callable[..., Driver]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a driver of a program's text, and closes it in the end."""
    made: list[Driver] = []

    def make_one(program: str, **options: Any) -> Driver:
        file = tmp_path / f"agent{len(made)}.py"
        file.write_text(PRELUDE + program, encoding="utf-8")
        command = (sys.executable, "-X", "utf8", str(file))
        made.append(Driver(Options(command=command, **options)))
        return made[-1]

    yield make_one
    for driver in made:
        await driver.close()


@pytest.mark.parametrize("text", ["count 50", "remove x", "hello"])
@pytest.mark.parametrize("rest", ["", '{"type":"turn","mess'])
async def test_example_ends_when_its_input_ends(text: str, rest: str) -> None:
    turn = {"type": "turn", "messages": [], "input": {"content": text}}
    pipe = asyncio.subprocess.PIPE
    agent = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE), stdin=pipe, stdout=pipe)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            said, _ = await agent.communicate(f"{json.dumps(turn)}\n{rest}".encode())
    finally:
        if agent.returncode is None:
            agent.kill()
    assert agent.returncode == 0
    assert b'"done"' in said


async def failure(driver: Driver, line: Line | None = None) -> events.Failed:
    """How a turn fails."""
    *_, last = await said(driver, assignment("hello"), line)
    assert isinstance(last, events.Failed)
    return last


def pids(heard: list[events.Event]) -> list[int]:
    return [int(word) for event in heard if isinstance(event, events.Text) for word in event.text.split()]


# what is said


async def test_file_is_given_by_its_path_or_its_bytes(make: Make) -> None:
    program = """
write('{"type": "file", "path": "out/plot.png", "kind": "image/png"}\\n')
say("file", data="aGk=", name="hi.txt")
say("done")
"""
    assert await said(make(program), assignment("plot")) == [
        events.File(path="out/plot.png", kind="image/png"),
        events.File(data=b"hi", name="hi.txt"),
        events.Done(),
    ]


@pytest.mark.parametrize("given", ["", "path='a', data='aGk='", "data='no base64!'", "path=7"])
async def test_file_without_one_of_path_and_bytes_fails_the_turn(make: Make, given: str) -> None:
    assert (await failure(make(f"say('file', {given}); say('done')"))).message == UNUSABLE


async def test_choice_is_offered_with_its_options(make: Make) -> None:
    program = 'say("choice", text="Which?", options=["Red", "Blue"]); say("done")'
    offered = events.Choice(text="Which?", options=("Red", "Blue"))
    assert await said(make(program), assignment("paint")) == [offered, events.Done()]


@pytest.mark.parametrize("given", ["", "options=[]", "options=['a', 'a']", "options='ab'"])
async def test_choice_that_is_none_fails_the_turn(make: Make, given: str) -> None:
    assert (await failure(make(f"say('choice', {given}); say('done')"))).message == UNUSABLE


async def test_turn_is_handed_over_whole(make: Make) -> None:
    turn = events.Assignment(
        turn_id="t",
        session_id="s",
        session_key="k",
        attempt=2,
        system="Be 短い\nand kind",
        messages=[{"role": "user", "content": "one"}, {"role": "user", "content": "two\n\u2028"}],
        input={"role": "user", "content": "two\n\u2028"},
    )
    heard = await said(make('say("text", text=json.dumps(turn)); say("done")'), turn)
    assert json.loads(answer(heard)) == {
        "type": "turn",
        "session_id": "s",
        "session_key": "k",
        "turn_id": "t",
        "attempt": 2,
        "system": "Be 短い\nand kind",
        "messages": [{"role": "user", "content": "one"}, {"role": "user", "content": "two\n\u2028"}],
        "input": {"role": "user", "content": "two\n\u2028"},
        "model": None,
    }


async def test_every_line_becomes_its_event(make: Make) -> None:
    driver = make("""
say("text", text="a")
write("\\n  \\n")
write('{"type": "tool_call", "id": "1", "name": "look", "arguments": {"b":  1, "a": 1.50}}\\n')
say("tool_call", id="2", name="look", arguments='{"a": ')
say("tool_call", id="3", name="look")
say("tool_result", id="1", content="seen")
say("tool_result", id="2", content=[{"type": "text", "text": "seen"}], is_error=True, new_field=1)
say("usage", input_tokens=10, output_tokens=20, cost_usd=0.5)
say("usage", input_tokens=1, cache_read_tokens=2, cache_write_tokens=3, last_prompt_tokens=4)
say("summary", text="b")
say("done", silent=True)
""")
    assert await said(driver, assignment("hello")) == [
        events.Text(text="a"),
        events.Calls(calls=(events.Call(id="1", name="look", arguments='{"b":  1, "a": 1.50}'),)),
        events.Calls(calls=(events.Call(id="2", name="look", arguments='{"a": '),)),
        events.Calls(calls=(events.Call(id="3", name="look", arguments="{}"),)),
        events.Result(id="1", content="seen"),
        events.Result(id="2", content=[{"type": "text", "text": "seen"}], is_error=True),
        events.Used(usage=Usage(input_tokens=10, output_tokens=20, cost_usd=0.5, cost_status="reported")),
        events.Used(
            usage=Usage(input_tokens=1, cache_read_tokens=2, cache_write_tokens=3, last_prompt_tokens=4)
        ),
        events.Summary(text="b"),
        events.Done(silent=True),
    ]


async def test_large_turn_and_large_answer_do_not_block_each_other(make: Make) -> None:
    driver = make('write(""); [say("text", text="x" * 1000) for _ in range(500)]; say("done")')
    heard = await said(driver, assignment("y" * 2_000_000))
    assert len(answer(heard)) == 500_000


async def test_example_asks_before_it_removes() -> None:
    driver = Driver(Options(command=(sys.executable, str(EXAMPLE))))
    for approved, text in ((True, "removed a.txt"), (False, "left a.txt alone")):
        line = Line()
        heard: list[events.Event] = []
        async with aclosing(run(driver, assignment("remove a.txt"), line)) as iterator:
            async for event in iterator:
                heard.append(event)
                if isinstance(event, events.Approval):
                    line.send(events.Decision(id=event.id, approved=approved, reason="because"))
        asked = events.Approval(
            id="1", action="remove", description="Remove a.txt?", details={"file": "a.txt"}
        )
        assert heard[0] == asked
        assert answer(heard) == text


async def test_signals_arrive_in_order(make: Make) -> None:
    line = Line()
    line.send(events.Steer(text="left\nnow", id="t2"))
    line.send(events.Decision(id="1", approved=False, reason=None))
    driver = make('say("text", text=json.dumps([hear(), hear()])); say("done")', steers=True)
    assert driver.abilities.steers
    assert json.loads(answer(await said(driver, assignment("hello"), line))) == [
        {"type": "steer", "text": "left\nnow", "id": "t2"},
        {"type": "decision", "id": "1", "approved": False, "reason": None},
    ]


async def test_message_is_steered_once_the_agent_says_so(make: Make) -> None:
    line = Line()
    line.send(events.Steer(text="left", id="t2"))
    line.send(events.Steer(text="right", id="t3"))
    driver = make(
        'hear(); steer = hear(); say("steered", id=steer["id"]); say("steered", id="t9"); say("done")',
        steers=True,
    )
    assert await said(driver, assignment("hello"), line) == [events.Done()]
    assert [line.has_steered(name) for name in ("t2", "t3", "t9")] == [False, True, False]


async def test_error_of_the_agent_is_its_failure(make: Make) -> None:
    driver = make('say("error", message="no money", retryable=True, detail="42"); say("text", text="never")')
    assert await failure(driver) == events.Failed(message="no money", retryable=True, detail="42")


# where it runs


async def test_environment_is_only_what_was_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTDESK_SECRET", "swordfish")
    monkeypatch.setenv("WANTED", "yes")
    program = 'say("text", text=json.dumps(dict(os.environ))); say("done")'
    seen = json.loads(answer(await said(make(program, env=("WANTED", "NOT_SET")), assignment("hello"))))
    assert seen["WANTED"] == "yes"
    assert set(seen) <= {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "WANTED"}


async def test_folder_of_the_session_goes_before_that_of_the_options(make: Make, tmp_path: Path) -> None:
    own, common = tmp_path / "own", tmp_path / "common"
    own.mkdir()
    common.mkdir()
    driver = make('say("text", text=os.getcwd()); say("done")', cwd=str(common))
    assert answer(await said(driver, assignment("hello"))) == str(common.resolve())
    turn = events.Assignment(
        turn_id="t", session_id="s", session_key="k", input={"role": "user"}, working_dir=str(own)
    )
    assert answer(await said(driver, turn)) == str(own.resolve())


@pytest.mark.parametrize(
    "options",
    [
        {"command": ("/no/such/program", "--token=swordfish")},
        {"command": (sys.executable,), "cwd": "/no/such/folder"},
        {"command": (str(EXAMPLE.parent),)},
    ],
)
async def test_program_that_cannot_be_started_is_named(options: dict[str, Any]) -> None:
    failed = await failure(Driver(Options(**options)))
    assert options["command"][0] in str(failed.detail)
    assert "swordfish" not in str(failed.detail)
    assert failed.message == "the agent cannot be started"
    assert not failed.retryable


async def test_standard_error_goes_to_the_log_within_bounds(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    program = """
print("first\\x1b[31m", file=sys.stderr)
sys.stderr.write("x" * 1_000_000 + "\\n")
for number in range(10_000): print("more", file=sys.stderr)
sys.stderr.flush()
say("done")
"""
    with caplog.at_level(logging.INFO):
        await said(make(program), assignment("hello"))
    logged = [line for line in caplog.messages if "event=agent_stderr " in line]
    assert "\x1b" not in logged[0]
    assert "first" in logged[0]
    assert len(logged) == 200
    assert max(map(len, logged)) < 1100
    assert "agent_stderr_cut" in caplog.text


# bad agents

HANGING = 'say("text", text=str(os.getpid())); time.sleep(1000)'


@pytest.mark.parametrize(
    ("program", "why", "retryable"),
    [
        ('say("text", text="a"); sys.exit(3)', "the agent ended before it was done (exit code 3)", True),
        ("", "the agent ended before it was done (exit code 0)", True),
        (
            'print("no\\nroute to \\"host\\"", file=sys.stderr); sys.exit(1)',
            'the agent ended before it was done (exit code 1, its last words: "route to \\"host\\"")',
            True,
        ),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "the agent ended before it was done (killed by SIGKILL)",
            True,
        ),
        (
            "os.close(1); time.sleep(1000)",
            "the agent ended before it was done (it closed its output)",
            True,
        ),
        ('write("{" + "x" * 5000 + "\\n")', "the agent wrote a line of more than 4096 bytes", False),
        ('write("x" * 50_000_000)', "the agent wrote a line of more than 4096 bytes", False),
        (
            'while True: say("text", text="x" * 1000)',
            "the turn brought more than 9999 characters of text",
            False,
        ),
        ('while True: say("usage")', "the turn brought more than 99 events", False),
    ],
)
async def test_agent_that_dies_or_floods_is_named(
    make: Make, program: str, why: str, retryable: bool
) -> None:
    driver = make(program, max_line_bytes=4096, max_text_characters=9999, max_events=99)
    failed = await failure(driver)
    assert (failed.detail or failed.message, failed.retryable) == (why, retryable)


async def test_standard_error_and_exit_code_are_not_told_to_people(make: Make) -> None:
    failed = await failure(make('print("key sk-123", file=sys.stderr); sys.exit(1)'))
    assert failed.message == "the agent ended before it was done"
    assert "sk-123" in str(failed.detail)


async def test_agent_that_never_begins_fails_and_may_be_tried_again(make: Make) -> None:
    failed = await failure(make("time.sleep(1000)", start_seconds=SOON_SECONDS))
    assert failed == events.Failed(message="the agent said nothing for 0.2 seconds", retryable=True)


@needs_proc
async def test_agent_that_hangs_fails_and_is_gone(make: Make) -> None:
    heard = await said(make(HANGING, idle_seconds=SOON_SECONDS), assignment("hello"))
    assert heard[-1] == events.Failed(message="the agent said nothing for 0.2 seconds", retryable=True)
    await gone(*pids(heard[:1]))


async def test_agent_may_wait_for_a_decision_longer_than_it_may_be_silent(make: Make) -> None:
    driver = make(
        'say("approval", id="1", action="a", description="b"); hear(); say("text", text="c"); say("done")',
        idle_seconds=SOON_SECONDS,
    )
    line = Line()
    heard: list[events.Event] = []
    async with aclosing(run(driver, assignment("hello"), line)) as iterator:
        heard.append(await anext(iterator))
        asyncio.get_running_loop().call_later(
            3 * SOON_SECONDS, line.send, events.Decision(id="1", approved=True)
        )
        heard.extend([event async for event in iterator])
    assert answer(heard) == "c"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Hello!", "malformed"),
        ('"text"', "Expected `object`"),
        ("[1]", "Expected `object`"),
        ('{"text": "a"}', "`type`"),
        ('{"type": "poem", "text": "a"}', "poem"),
        ('{"type": "text"}', "missing required field `text`"),
        ('{"type": "text", "text": 3}', "Expected `str`, got `int`"),
        ('{"type": "text", "text": "a"', "truncated"),
        ('{"type": "text", "text": "\\ud800"}', ""),
        ('{"type": "tool_call", "id": "", "name": "a"}', "length >= 1"),
        ('{"type": "tool_call", "id": 7, "name": "a"}', "Expected `str`, got `int`"),
        ('{"type": "tool_call", "id": "7", "name": "a", "arguments": [1]}', "arguments"),
        ('{"type": "tool_call", "id": "1", "name": "a"}', "was made before in this turn"),
        ('{"type": "tool_result", "id": "9", "content": "a"}', "no call with this id"),
        ('{"type": "tool_result", "id": "2", "content": "a"}', "has its result already"),
        ('{"type": "tool_result", "id": "1", "content": {"a": 1}}', "`$.content`"),
        ('{"type": "approval", "id": "1", "action": "a"}', "missing required field `description`"),
        ('{"type": "usage", "input_tokens": -1}', "input_tokens = -1"),
        ('{"type": "usage", "input_tokens": 1.5}', "Expected `int`, got `float`"),
        ('{"type": "usage", "cost_usd": 1e400}', ""),
        ('{"type": "error", "message": null}', "Expected `str`, got `null`"),
        ("[" * 100_000, "Expected `object`"),
        ('{"type": "approval", "details": ' + '{"a":' * 100_000, "recursion"),
    ],
)
async def test_garbage_fails_with_the_line_quoted(make: Make, line: str, why: str) -> None:
    opened = (
        'say("tool_call", id="1", name="a"); say("tool_call", id="2", name="a"); '
        'say("tool_result", id="2", content="b")\n'
    )
    failed = await failure(make(f"{opened}write({line!r} + chr(10)); say('done')"))
    detail = str(failed.detail)
    assert failed.message == "the agent wrote a line that cannot be used"
    assert detail.startswith(f'{failed.message}: "')
    assert json.dumps(line[:50], ensure_ascii=False)[1:-1] in detail
    assert why in detail
    assert len(detail) < 1000
    assert not failed.retryable


async def test_bytes_that_are_no_text_fail_with_the_line_quoted(make: Make) -> None:
    program = 'sys.stdout.buffer.write(b\'{"type": "text", "text": "\\xff\\x1b"}\\n\'); sys.stdout.flush()'
    failed = await failure(make(program))
    assert "\ufffd" in str(failed.detail)
    assert "\x1b" not in str(failed.detail)


async def test_second_request_with_the_same_id_is_refused(make: Make) -> None:
    failed = await failure(make('[say("approval", id="1", action="a", description="b") for _ in range(2)]'))
    assert "asked for before" in str(failed.detail)


@pytest.mark.parametrize("keep", [False, True])
async def test_words_after_done_are_nobodys_answer(
    make: Make, keep: bool, caplog: pytest.LogCaptureFixture
) -> None:
    program = """
while turn:
    say("text", text=turn["turn_id"])
    write('{"type": "done"}\\n{"type": "text", "text": "by the way"}\\n')
    turn = hear()
"""
    driver = make(program, keep=keep)
    for number in range(3):
        turn = assignment("hello", turn_id=f"turn-{number}")
        assert answer(await said(driver, turn)) == f"turn-{number}"
    await driver.release("session")
    assert "agent_spoke_after_done" in caplog.text


# what is left of them

FAMILY = """
sleeping = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"
child = subprocess.Popen([sys.executable, "-c", sleeping])
say("text", text=f"{os.getpid()} {child.pid}")
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


@needs_proc
@pytest.mark.parametrize("deaf", ["", DEAF])
async def test_closed_turn_leaves_neither_agent_nor_its_children(make: Make, deaf: str) -> None:
    driver = make(f"{deaf}{FAMILY}time.sleep(1000)", kill_seconds=SOON_SECONDS)
    async with aclosing(run(driver, assignment("hello"), Line())) as heard:
        family = pids([await anext(heard)])
        assert all(map(lives, family))
    for pid in family:
        await gone(pid)


@needs_proc
@pytest.mark.parametrize("deaf", ["", DEAF])
async def test_stopped_agent_that_does_not_listen_is_killed_with_its_children(make: Make, deaf: str) -> None:
    driver = make(f"{deaf}{FAMILY}time.sleep(1000)", stop_seconds=SOON_SECONDS, kill_seconds=SOON_SECONDS)
    line = Line()
    heard: list[events.Event] = []
    async for event in run(driver, assignment("hello"), line):
        heard.append(event)
        if isinstance(event, events.Text):
            line.send(events.Stop())
    assert heard[-1] == events.Done(finish_reason="stopped")
    for pid in pids(heard):
        await gone(pid)


async def test_stopped_agent_may_have_its_last_words(make: Make) -> None:
    driver = make('say("text", text="a"); say("text", text=hear()["type"]); say("done")')
    line = Line()
    line.send(events.Stop())
    heard = await said(driver, assignment("hello"), line)
    assert heard == [events.Text(text="a"), events.Text(text="stop"), events.Done()]


@needs_proc
async def test_child_that_holds_the_output_does_not_hold_the_turn(make: Make) -> None:
    heard = await said(make(f"{FAMILY}sys.exit(4)"), assignment("hello"))
    failed = heard[-1]
    assert isinstance(failed, events.Failed)
    assert (failed.detail, failed.retryable) == ("the agent ended before it was done (exit code 4)", True)
    for pid in pids(heard[:1]):
        await gone(pid)


@needs_proc
async def test_agent_that_lingers_after_done_is_ended(make: Make) -> None:
    driver = make(
        f'{DEAF}{FAMILY}say("done"); time.sleep(1000)',
        stop_seconds=SOON_SECONDS,
        kill_seconds=SOON_SECONDS,
    )
    heard = await said(driver, assignment("hello"))
    assert heard[-1] == events.Done()
    for pid in pids(heard):
        await gone(pid)


@needs_proc
async def test_cancelled_twice_it_still_leaves_nothing(make: Make) -> None:
    driver = make(f"{DEAF}{FAMILY}time.sleep(1000)", kill_seconds=PATIENCE_SECONDS)
    heard: list[events.Event] = []
    begun = asyncio.Event()

    async def listen() -> None:
        async with aclosing(run(driver, assignment("hello"), Line())) as iterator:
            async for event in iterator:
                heard.append(event)
                begun.set()

    task = asyncio.create_task(listen())
    await begun.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.01)
    assert pids(heard)
    for pid in pids(heard):
        await gone(pid)


@needs_proc
async def test_close_ends_running_turns(make: Make) -> None:
    driver = make(HANGING, stop_seconds=SOON_SECONDS)
    iterator = run(driver, assignment("hello"), Line())
    (pid,) = pids([await anext(iterator)])
    await driver.close()
    assert not lives(pid)
    assert isinstance(await anext(iterator), events.Failed)
    await iterator.aclose()


# processes that are kept

COUNTING = """
count = 0
while turn:
    count += 1
    say("text", text=f"{os.getpid()} {count}")
    say("done")
    turn = hear()
"""


async def counted(driver: Driver, session_id: str = "session", **more: Any) -> list[int]:
    """The process that took the turn, and how many it took."""
    return pids(await said(driver, assignment("hello", session_id=session_id, **more)))


async def test_each_turn_has_its_process_unless_it_is_kept(make: Make) -> None:
    driver = make(COUNTING)
    first, second = await counted(driver), await counted(driver)
    assert first[0] != second[0]
    assert first[1] == second[1] == 1


@needs_proc
async def test_kept_process_serves_its_session_until_it_is_released(make: Make) -> None:
    driver = make(COUNTING, keep=True)
    pid, _ = await counted(driver)
    assert await counted(driver) == [pid, 2]
    assert (await counted(driver, "other"))[0] != pid
    assert await counted(driver) == [pid, 3]
    await driver.release("session")
    assert not lives(pid)
    assert (await counted(driver))[1] == 1


@needs_proc
async def test_kept_process_ends_after_its_rest(make: Make) -> None:
    driver = make(COUNTING, keep=True, keep_seconds=SOON_SECONDS)
    pid, _ = await counted(driver)
    await gone(pid)
    assert (await counted(driver))[1] == 1


@needs_proc
async def test_process_that_rested_longest_makes_room(make: Make) -> None:
    driver = make(COUNTING, keep=True, max_kept=2)
    first, second, third = [(await counted(driver, name))[0] for name in "abc"]
    assert [lives(pid) for pid in (first, second, third)] == [False, True, True]


@needs_proc
async def test_kept_process_ends_with_the_driver(make: Make) -> None:
    driver = make(COUNTING, keep=True)
    pid, _ = await counted(driver)
    await driver.close()
    assert not lives(pid)


async def test_kept_process_that_died_is_replaced(make: Make) -> None:
    driver = make('say("text", text=f"{os.getpid()} 1"); say("done")', keep=True)
    first, second = await counted(driver), await counted(driver, turn_id="turn-2")
    assert first != second


async def test_process_of_a_failed_turn_is_not_kept(make: Make) -> None:
    driver = make(
        'say("text", text=str(os.getpid())); say("error", message="a", retryable=True); hear()', keep=True
    )
    first = await said(driver, assignment("hello"))
    second = await said(driver, assignment("hello"))
    assert first[0] != second[0]


async def test_kept_process_does_not_follow_into_another_folder(make: Make, tmp_path: Path) -> None:
    driver = make(COUNTING, keep=True)
    pid, _ = await counted(driver)
    turn = events.Assignment(
        turn_id="t",
        session_id="session",
        session_key="k",
        input={"role": "user"},
        working_dir=str(tmp_path),
    )
    assert pids(await said(driver, turn))[0] != pid


async def test_turn_that_somebody_else_has_is_not_handed_over(make: Make, tmp_path: Path) -> None:
    """The program is started by then, and has heard nothing."""
    heard = tmp_path / "heard"

    async def lost() -> None:
        raise errors.LeaseLost(lane="turn:k")

    driver = make(f"if turn: open({str(heard)!r}, 'w').close()")
    with pytest.raises(errors.LeaseLost):
        await said(driver, assignment("hello"), Line(lost))
    await driver.close()
    assert not heard.exists()
