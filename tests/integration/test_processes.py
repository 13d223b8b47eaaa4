"""Programs that end with the process that started them, with real processes that are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from frontdesk.processes import end_left
from tests.patience import until
from tests.processes import kill_watchdog, lives, needs_proc

STARTER = """
import asyncio, sys
from pathlib import Path
from frontdesk.processes import Group, kept

async def main():
    with kept(Path(sys.argv[1])):
        while script := await asyncio.to_thread(sys.stdin.readline):
            group = await Group.start(["/bin/sh", "-c", script])
            print(group.pid, int(await group.stdout.readline()), flush=True)

asyncio.run(main())
"""
STAYS = "sleep 1000 & echo $!; trap '' HUP TERM; while :; do sleep 1000; done"
"""Does not end with its input."""
LEAVES = "sleep 1000 & echo $!; exec 1>&-; read -r line"
"""Ends with its input, and leaves what it started."""


class Family(NamedTuple):
    """A program and what it started."""

    program: int
    child: int


class Starter:
    """A process that starts programs, and can be killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pids: set[int] = set()

    def start(self, script: str) -> Family:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(script.encode() + b"\n")
        family = Family(*map(int, self._process.stdout.readline().split()))
        self.pids |= {pid for pid in family if pid}
        return family

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def kill_watchdog(self) -> None:
        kill_watchdog(self._process.pid)


@contextmanager
def starting(folder: Path) -> Iterator[Starter]:
    command, pipe = [sys.executable, "-c", STARTER, str(folder)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        starter = Starter(process)
        try:
            yield starter
        finally:
            starter.kill()
            for pid in filter(lives, starter.pids):
                os.kill(pid, signal.SIGKILL)


def test_killed_process_takes_its_programs_and_what_they_started_along(tmp_path: Path) -> None:
    with starting(tmp_path) as starter:
        starter.start(STAYS)
        starter.start(LEAVES)
        assert all(map(lives, starter.pids))
        starter.kill()
        until(lambda: not any(map(lives, starter.pids)))


@needs_proc
def test_what_a_killed_process_has_left_is_ended_at_the_next_start(tmp_path: Path) -> None:
    with starting(tmp_path) as starter:
        stays, leaves = starter.start(STAYS), starter.start(LEAVES)
        starter.kill_watchdog()
        starter.kill()
        until(lambda: not lives(leaves.program))
        assert all(map(lives, (*stays, leaves.child)))
        assert end_left(tmp_path) == 2
        assert not any(map(lives, starter.pids))
        assert list(tmp_path.iterdir()) == []


@needs_proc
def test_killed_watchdog_is_replaced_with_the_next_program(tmp_path: Path) -> None:
    with starting(tmp_path) as starter:
        starter.start(STAYS)
        starter.kill_watchdog()
        starter.start(STAYS)
        starter.kill()
        until(lambda: not any(map(lives, starter.pids)))


def test_what_a_living_process_has_started_is_left_alone(tmp_path: Path) -> None:
    with starting(tmp_path) as starter:
        starter.start(STAYS)
        assert end_left(tmp_path) == 0
        assert all(map(lives, starter.pids))
        assert len(list(tmp_path.iterdir())) == 1


def test_program_that_has_ended_is_forgotten(tmp_path: Path) -> None:
    with starting(tmp_path) as starter:
        starter.start("echo 0")
        until(lambda: [file for folder in tmp_path.iterdir() for file in folder.iterdir()] == [])


def test_another_process_that_has_got_the_number_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as other:
        try:
            gone = tmp_path / "1-long-ago"
            gone.mkdir()
            (gone / f"{other.pid}-long-ago").touch()
            assert end_left(tmp_path) == 0
            assert other.poll() is None
            assert list(tmp_path.iterdir()) == []
        finally:
            other.kill()
