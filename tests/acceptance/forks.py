"""The program, forked off a process that has imported it already: see `forker`.

Such a process is like any other child of ours, with the same arguments, environment and streams. Tests about
the start itself, and all tests in `make prove`, start the program from nothing.
"""

import atexit
import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tests import counts
from tests.acceptance import forker

PR_SET_CHILD_SUBREAPER = 36
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
INHERITED = -1
TAKE_SEAT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal on its input the one that it is interrupted from, and becomes the program."""


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether it is a process like the one that would be started: what Python and the loader look at before
    the program runs is the same for all that are forked."""
    return (
        sys.platform == "linux"
        and not counts.proving()
        and environment.get("LANG") == ENVIRONMENT["LANG"]
        and not any(name.startswith(("LC_", "LD_", "PYTHON")) for name in environment)
    )


class Forker:
    """The other process."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, forker.__file__, str(theirs.fileno())],
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._lock = threading.Lock()
        self._prctl = ctypes.CDLL(None).prctl
        atexit.register(self.close)

    def fork(self, order: Mapping[str, object], streams: Sequence[int]) -> int:
        """A new child of this process."""
        message = [json.dumps(order).encode()]
        with self._lock:
            # For this moment alone: what other processes leave behind goes where it always goes.
            self._prctl(PR_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._orders, message, streams)
                pid = int(self._orders.recv(100))
                self._orders.recv(100)
            finally:
                self._prctl(PR_SET_CHILD_SUBREAPER, 0)
        return pid

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


@functools.cache
def the_forker() -> Forker:
    return Forker()


def _umask() -> int:
    """Ours, which is only told to whoever sets another."""
    ours = os.umask(0o077)
    os.umask(ours)
    return ours


class Forked(subprocess.Popen[Any]):
    """A process that was not started but forked."""

    seated = False
    module = ""

    def _execute_child(
        self,
        args: Sequence[str | Path],
        executable: None,
        preexec_fn: None,
        close_fds: bool,
        pass_fds: Sequence[int],
        cwd: Path,
        env: Mapping[str, str],
        *rest: Any,
    ) -> None:
        """What `subprocess` calls with everything that was said and the ends of its pipes."""
        _startupinfo, _creationflags, _shell, *pipes = rest[:9]
        *_others, start_new_session, _process_group = rest[9:]
        order = {
            "arguments": [str(each) for each in args],
            "cwd": str(cwd),
            "environment": dict(env),
            "new_session": start_new_session,
            "seated": self.seated,
            "module": self.module,
            "umask": _umask(),
        }
        given, _, _, output, _, errors = pipes
        streams = [
            number if each == INHERITED else each for number, each in enumerate((given, output, errors))
        ]
        try:
            self.pid = the_forker().fork(order, streams)
            self._child_created = True
        finally:
            popen: Any = self
            popen._close_pipe_fds(*pipes)


class Seated(Forked):
    seated = True


def popen_module(module: str, *arguments: str, **named: Any) -> subprocess.Popen[Any]:
    """A module of the tests that is run like a program: `python -m module ...`."""
    if can_fork(named["env"]):
        kind = type("ForkedModule", (Forked,), {"module": module})
        return cast("subprocess.Popen[Any]", kind([module, *arguments], **named))
    return subprocess.Popen([sys.executable, "-m", module, *arguments], **named)


def popen(command: Sequence[str | Path], **named: Any) -> subprocess.Popen[Any]:
    """The program with its arguments, as `subprocess.Popen` would start it."""
    alike = can_fork(named["env"]) and not named.keys() & {"pass_fds", "umask"}
    kind = Forked if alike else subprocess.Popen
    return kind(command, **named)


def popen_seated(command: Sequence[str | Path], **named: Any) -> subprocess.Popen[Any]:
    """The program on the terminal of its input, from which it can be interrupted."""
    if can_fork(named["env"]):
        return Seated(command, start_new_session=True, **named)
    return subprocess.Popen([sys.executable, "-c", TAKE_SEAT, *command], start_new_session=True, **named)
