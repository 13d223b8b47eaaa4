"""Which process a number stands for: numbers are given out again, and a start time tells whose it is now."""

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"
BOOT_CHARACTERS = 8
CORPSES = ("Z", "X")
STATE, GROUP, STARTED = 0, 2, 19
"""Places in /proc/PID/stat, counted from behind the program's name."""
PS_SECONDS = 5.0


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A living process."""

    pid: int
    group: int
    mark: str
    """The same for as long as the process lives, and no other's on this machine."""


def find(pid: int) -> Seen | None:
    return next((each for each in _look(pid)), None)


def members(group: int) -> list[Seen]:
    return [each for each in _look(None) if each.group == group]


def variable_of(pid: int, name: str) -> str | None:
    """What a process was given in its environment, where the system tells."""
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    start = f"{name}=".encode()
    return next((each[len(start) :].decode() for each in variables if each.startswith(start)), None)


def _look(pid: int | None) -> Iterator[Seen]:
    """That process, or all."""
    if not BOOT_ID.exists():
        yield from _ask(pid)
        return
    for each in [pid] if pid else [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]:
        seen = _read(each)
        if seen:
            yield seen


def _read(pid: int) -> Seen | None:
    try:
        facts = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    if facts[STATE] in CORPSES:
        return None
    return Seen(pid=pid, group=int(facts[GROUP]), mark=f"{pid}-{_boot()}-{facts[STARTED]}")


@cache
def _boot() -> str:
    """Start times are counted from here."""
    return BOOT_ID.read_text()[:BOOT_CHARACTERS]


def _ask(pid: int | None) -> Iterator[Seen]:
    """The same where there is no /proc."""
    whom = ("-p", str(pid)) if pid else ("-A",)
    command = ("ps", *whom, "-o", "pid=,pgid=,stat=,lstart=")
    listed = subprocess.run(
        command, capture_output=True, check=False, timeout=PS_SECONDS, env={**os.environ, "LC_ALL": "C"}
    )
    for line in listed.stdout.decode(errors="replace").splitlines():
        number, group, state, *started = line.split()
        if not state.startswith(CORPSES):
            mark = "-".join((number, *started)).replace(":", "")
            yield Seen(pid=int(number), group=int(group), mark=mark)
