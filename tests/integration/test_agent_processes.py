"""Programs as agents have them, on the loop of the standard library and on that of the gateway."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from frontdesk.agents import acp, command
from frontdesk.agents.programs import Process
from frontdesk.testing.agents import (
    PATIENCE_SECONDS,
    assignment,
    nothing_new,
    running,
    said,
    until,
)
from tests.processes import lives, needs_proc

EXAMPLE = Path(__file__).parents[2] / "examples" / "command_agent.py"
SOON_SECONDS = 0.2
MAX_LINE_BYTES = 4096
PRELUDE = "import os, signal, subprocess, sys, time\n"

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs a coroutine on the loop in question."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@pytest.fixture
def run_on_uvloop() -> Iterator[Run]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield runner.run


async def start(program: str) -> Process:
    words = (sys.executable, "-X", "utf8", "-c", PRELUDE + program)
    return await command.Options(command=words, max_line_bytes=MAX_LINE_BYTES).start(None)


async def write_on(process: Process) -> None:
    while True:
        await process.write(b"anybody?\n")
        await asyncio.sleep(0)


def test_lines_go_in_and_out_until_the_end_of_the_input(run: Run) -> None:
    async def check() -> None:
        process = await start("for line in sys.stdin: print(line.upper(), end='', flush=True)")
        await process.write(b"one\n")
        assert await process.read() == b"ONE\n"
        process.stdin.close()
        assert await process.read() == b""
        assert await process.fate() == "exit code 0"
        await process.end(0, 0)

    run(check())


def test_output_that_a_living_program_closed_is_noticed(run: Run) -> None:
    async def check() -> None:
        process = await start("print('last'); sys.stdout.flush(); os.close(1); time.sleep(1000)")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert [await process.read(), await process.read()] == [b"last\n", b""]
        assert await process.fate() == "it closed its output"
        await process.end(0, SOON_SECONDS)

    run(check())


def test_input_that_a_living_program_closed_is_noticed(run: Run) -> None:
    async def check() -> None:
        process = await start("os.close(0); print('closed', flush=True); time.sleep(1000)")
        await process.read()
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(write_on(process), PATIENCE_SECONDS)
        await process.end(0, SOON_SECONDS)

    run(check())


@needs_proc
def test_program_gets_its_three_streams_and_nothing_else_that_is_open(run: Run) -> None:
    async def check() -> None:
        process = await start("print(*sorted(os.listdir('/proc/self/fd'), key=int), flush=True)")
        # The fourth is the folder that is being read.
        assert (await process.read()).split()[:-1] == [b"0", b"1", b"2"]
        await process.end(PATIENCE_SECONDS, 0)

    ours = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        run(check())
    finally:
        os.close(ours)


@pytest.mark.parametrize(
    ("program", "fate"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        pytest.param("os.kill(os.getpid(), 35)", "killed by signal 35", marks=needs_proc),
    ],
)
def test_end_of_a_program_is_told_with_its_last_words(run: Run, program: str, fate: str) -> None:
    async def check() -> None:
        process = await start(f"print('no route', file=sys.stderr); {program}")
        assert await process.read() == b""
        assert (await process.fate(), process.last_words) == (fate, "no route")
        await process.end(0, 0)

    run(check())


@pytest.mark.parametrize("deaf", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"])
def test_nothing_of_a_program_outlives_its_end(run: Run, deaf: str) -> None:
    family = "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\n"

    async def check() -> None:
        before = running()
        process = await start(f"{deaf}{family}print(child.pid, flush=True); time.sleep(1000)")
        child = int(await process.read())
        assert lives(child)
        await process.end(0, SOON_SECONDS)
        await nothing_new(before)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await until(lambda: not lives(child))

    run(check())


def test_program_that_reads_nothing_does_not_hold_its_end(run: Run) -> None:
    async def check() -> None:
        process = await start("print('ready', flush=True); time.sleep(1000)")
        await process.read()
        writing = asyncio.create_task(process.write(b"x" * 10_000_000))
        await asyncio.sleep(0)
        await process.end(0, SOON_SECONDS)
        with pytest.raises(ConnectionError):
            await writing

    run(check())


def test_start_that_is_cancelled_leaves_nothing(run: Run) -> None:
    async def check() -> None:
        before = running()
        for steps in range(8):
            starting = asyncio.create_task(start("time.sleep(1000)"))
            for _ in range(steps):
                await asyncio.sleep(0)
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await (await starting).end(0, 0)
        await nothing_new(before)

    run(check())


def test_line_that_is_too_long_is_refused(run: Run) -> None:
    async def check() -> None:
        process = await start("print('x' * 1_000_000)")
        with pytest.raises(asyncio.LimitOverrunError):
            await process.read()
        await process.end(0, SOON_SECONDS)

    run(check())


def test_program_that_is_not_there_cannot_be_started(run: Run) -> None:
    async def check() -> None:
        with pytest.raises(FileNotFoundError):
            await command.Options(command=("no-such-program",)).start(None)

    run(check())


# The drivers as the gateway runs them


@pytest.mark.parametrize(
    ("driver", "detail"),
    [
        (command, "the agent ended before it was done (it closed its output)"),
        (acp, "it ended: it closed its output"),
    ],
    ids=["command", "acp"],
)
def test_agent_that_closes_its_output_and_lives_fails_at_once_on_uvloop(
    run_on_uvloop: Run, driver: Any, detail: str, tmp_path: Path
) -> None:
    program = (sys.executable, "-c", "import os, time; os.close(1); time.sleep(1000)")

    async def check() -> None:
        agent = driver.Driver(driver.Options(command=program, cwd=str(tmp_path), stop_seconds=SOON_SECONDS))
        heard = await said(agent, assignment("hello"))
        assert [(event.detail, event.retryable) for event in heard] == [(detail, True)]  # type: ignore[attr-defined]
        await agent.close()

    run_on_uvloop(check())
