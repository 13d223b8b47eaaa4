"""A process that has imported the program, and forks one off for each order: the program, or a module of the
tests that is made of its parts.

    python forker.py 5

5 is a socket. An order is arguments, environment and directory, with input, output and errors, and perhaps
the name of a module; the answer is the new process. Importing is nearly all that a short command takes time
for.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import socket
import sys
import termios
import threading
import time
from typing import Any

import frontdesk
from frontdesk import cli
from frontdesk.model import lookalikes

# What takes long and few commands need, or needs a package that may be missing.
LEFT_OUT = ("frontdesk.agents", "frontdesk.stores.postgres", "frontdesk.testing")
LATE = (
    "frontdesk.agents.command",
    "frontdesk.agents.scripted",
    "httpcore",
    "jinja2",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
)
PERHAPS = "frontdesk.stores.postgres"
MOST_BYTES = 1_000_000
UNWRITTEN = 120
"""What Python says when its output could not be written at the end."""


def import_all() -> None:
    for found in pkgutil.walk_packages(frontdesk.__path__, "frontdesk."):
        if not found.name.startswith(LEFT_OUT):
            importlib.import_module(found.name)
    for name in LATE:
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module(PERHAPS)
    lookalikes.passes_for("\u0430")  # has the tables of Unicode read
    gc.freeze()


def wait_for_order(orders: socket.socket) -> str:
    """Returns in a new process, which is as if it had been started with the order; the name of its module."""
    while True:
        message, streams, _, _ = socket.recv_fds(orders, MOST_BYTES, 3)
        if not message:
            sys.exit()
        between = os.fork()
        if not between:
            pid = os.fork()
            if not pid:
                orders.close()
                order = json.loads(message)
                _begin(order, streams)
                return str(order["module"])
            # Whoever gave the order inherits what this process leaves.
            orders.send(str(pid).encode())
            os._exit(0)
        os.waitpid(between, 0)
        orders.send(b"")
        for stream in streams:
            os.close(stream)


def _begin(order: dict[str, Any], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if order["new_session"]:
        os.setsid()
    if order["seated"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(order["umask"])
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    # Those of the interpreter remember what kind of files they were opened for.
    sys.stdin = sys.__stdin__ = _stream(0, "rb", sys.stdin.errors)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "wb", sys.stdout.errors)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "wb", sys.stderr.errors)  # type: ignore[misc]
    sys.stderr.reconfigure(line_buffering=True)
    sys.argv[:] = order["arguments"]


def _stream(number: int, mode: str, errors: str | None) -> io.TextIOWrapper:
    file = open(number, mode, closefd=False)  # noqa: SIM115 - as long as the process lasts
    return io.TextIOWrapper(file, "utf-8", errors, "\n", line_buffering=file.isatty())


def end(code: str | int | None) -> None:
    """As the interpreter does it, but for taking its memory apart, which takes longer than most commands."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = UNWRITTEN
    os._exit(code or 0)


if __name__ == "__main__":
    import_all()
    module = wait_for_order(socket.socket(fileno=int(sys.argv[1])))
    try:
        if module:
            sys.path[0] = os.getcwd()
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            cli.main()
    except SystemExit as left:
        end(left.code)
    end(0)
