"""Processes that tests look at from outside, and the watchdog over those of a process that is killed."""

import asyncio
import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.patience import PATIENCE_SECONDS, until

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to look into")


def lives(pid: int) -> bool:
    """Whether there is such a process, and not just its remains that nobody has asked for."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(pid: int) -> None:
    """Wait until a process is no more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await _ended(pid)


async def _ended(pid: int) -> None:
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watch, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(watch)
        os.close(watch)


class Followed:
    """A process that we started, whose output and end are awaited."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self.pid = process.pid
        self.send_signal = process.send_signal
        self.kill = process.kill
        self._process = process
        self._transports: list[asyncio.ReadTransport] = []
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()

    async def read(self) -> None:
        """Let its output come in."""
        loop = asyncio.get_running_loop()
        for reader, pipe in ((self.stdout, self._process.stdout), (self.stderr, self._process.stderr)):
            transport, _ = await loop.connect_read_pipe(partial(asyncio.StreamReaderProtocol, reader), pipe)
            self._transports.append(transport)

    @property
    def returncode(self) -> int | None:
        code: int | None = self._process.poll()
        return code

    async def wait(self) -> int:
        await _ended(self.pid)
        code: int = self._process.wait()
        return code

    def close(self) -> None:
        """Once everything that it wrote is read."""
        for transport in self._transports:
            transport.close()


def kill_watchdog(of: int) -> None:
    """The shell that is no child and reads from a pipe of the process."""
    ours = {_target(file) for file in Path(f"/proc/{of}/fd").iterdir()}
    found: list[int] = []

    def is_found() -> bool:
        """For a moment, what a shell is about to start looks as it does, and reads from where it does."""
        found[:] = [pid for pid in _shells(of) if _target(Path(f"/proc/{pid}/fd/0")) in ours]
        return len(found) == 1

    until(is_found)
    (watchdog,) = found
    os.kill(watchdog, signal.SIGKILL)
    until(lambda: not lives(watchdog))


def _shells(of: int) -> list[int]:
    found = psutil.process_iter(["cmdline", "ppid"])
    shells = [each for each in found if (each.info["cmdline"] or [])[:2] == ["/bin/sh", "-c"]]
    return [each.pid for each in shells if each.info["ppid"] != of]


def _target(file: Path) -> str:
    """The pipe behind an open file; another text for each file that is none."""
    try:
        target = os.readlink(file)
    except OSError:
        return str(file)
    return target if target.startswith("pipe:") else str(file)
