"""The programs of a process that is killed, and the watchdog over them."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

PATIENCE_SECONDS = 30.0

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to look into")


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_watchdog(of: int) -> None:
    """The shell that is no child and reads from a pipe of the process."""
    ours = {_target(file) for file in Path(f"/proc/{of}/fd").iterdir()}
    (watchdog,) = [pid for pid in _shells(of) if _target(Path(f"/proc/{pid}/fd/0")) in ours]
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
