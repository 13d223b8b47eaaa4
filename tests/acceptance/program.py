"""The program as a user starts it."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Thread

import apsw

from tests import patience
from tests.acceptance import forks

PATIENCE_SECONDS = patience.PATIENCE_SECONDS
FRONTDESK = Path(sys.executable).with_name("frontdesk")
# Run the arguments on a terminal of their own, its other end being our input and output.
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def environment(home: Path, **more: str) -> dict[str, str]:
    """A user's environment without anything of ours, in a zone where nothing happens at night."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"} | more


def run(
    home: Path, *arguments: str, given: str | bytes = b"", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return _run(forks.popen, arguments, home, given, more)


def run_afresh(
    home: Path, *arguments: str, given: str | bytes = b"", **more: str
) -> subprocess.CompletedProcess[str]:
    """Start the program from nothing, and run it to its end."""
    return _run(subprocess.Popen, arguments, home, given, more)


def _run(
    begin: Callable[..., subprocess.Popen[bytes]],
    arguments: Sequence[str],
    home: Path,
    given: str | bytes,
    more: Mapping[str, str],
) -> subprocess.CompletedProcess[str]:
    pipe, env = subprocess.PIPE, environment(home, **more)
    with begin([FRONTDESK, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=home) as process:
        try:
            read = given.encode() if isinstance(given, str) else given
            output, errors = process.communicate(read, PATIENCE_SECONDS)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, output.decode(), errors.decode())


@contextlib.contextmanager
def start(
    home: Path, *arguments: str, terminal: bool = False, **more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program and talk to it through pipes; it does not outlive the block."""
    launcher = [sys.executable, "-c", ON_A_TERMINAL] if terminal else []
    begin = subprocess.Popen if terminal else forks.popen
    with begin(
        [*launcher, FRONTDESK, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(home, **more),
        cwd=home,
        bufsize=0,
    ) as process:
        try:
            yield process
        finally:
            if terminal:
                _end_what_it_launched(process)
            process.kill()


def _end_what_it_launched(launcher: subprocess.Popen[bytes]) -> None:
    """The terminal ends with the program. The other way round, the program would hear that it has lost its
    terminal, and take its time."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        launcher.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def drained(process: subprocess.Popen[bytes], into: Path) -> Iterator[None]:
    """Take what the program writes to a file, to its end: it would stand still once a pipe is full."""
    assert process.stdout is not None
    with into.open("ab") as kept:
        reading = Thread(target=shutil.copyfileobj, args=(process.stdout, kept, 1024))
        reading.start()
        try:
            yield
        finally:
            process.kill()
            reading.join()


def read_until(process: subprocess.Popen[bytes], text: str) -> str:
    """What the program writes up to and with a text; fails when it ends, or takes too long, before that."""
    assert process.stdout is not None
    written = b""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not written.endswith(text.encode()):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        byte = os.read(process.stdout.fileno(), 1) if ready else b""
        assert byte, f"the program ended or fell silent after writing {written.decode()!r}"
        written += byte
    return written.decode()


def set_aside(home: Path) -> list[str]:
    """The messages whose turns broke off at each attempt, which their senders are told."""
    file = apsw.Connection(str(home / ".frontdesk" / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    file.set_busy_timeout(5_000)  # a log that a killed process has left is looked through first
    try:
        rows = file.execute("SELECT CAST(body AS TEXT) FROM turns WHERE state = 'set_aside'")
        return [str(json.loads(body)["text"]) for (body,) in rows]
    finally:
        file.close()


def write(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Its exit code and what it wrote last."""
    rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, rest.decode()
