"""The program as a user starts it."""

import subprocess
import sys
from pathlib import Path

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
    done = subprocess.run(
        [FRONTDESK, *arguments],
        input=given.encode() if isinstance(given, str) else given,
        env=environment(home, **more),
        cwd=home,
        capture_output=True,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def start(home: Path, *arguments: str, terminal: bool = False, **more: str) -> subprocess.Popen[bytes]:
    """Start the program and talk to it through pipes."""
    launcher = [sys.executable, "-c", ON_A_TERMINAL] if terminal else []
    return subprocess.Popen(
        [*launcher, str(FRONTDESK), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(home, **more),
        cwd=home,
        bufsize=0,
    )


def read_until(process: subprocess.Popen[bytes], text: str) -> str:
    """What the program writes up to and with a text; fails when it ends before that."""
    assert process.stdout is not None
    written = b""
    while not written.endswith(text.encode()):
        byte = process.stdout.read(1)
        assert byte, f"the program ended after writing {written.decode()!r}"
        written += byte
    return written.decode()


def write(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Its exit code and what it wrote last."""
    rest, _ = process.communicate()
    return process.returncode, rest.decode()
