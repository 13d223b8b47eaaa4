"""A program run to its end, within bounds of time and output, with nothing left of it afterwards."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

import msgspec

MAX_OUTPUT_BYTES = 4096
"""So much of what a program writes is kept; the rest is read and dropped."""
INPUT, OUTPUT = 0, 1
LAST_SECONDS = 2.0
"""How long the end of a killed program and of its output is waited for."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    code: int | None
    """What it ended with, negative for a signal; None when its time was up."""
    output: str


class Listener(asyncio.SubprocessProtocol):
    """Keeps the beginning of the output, and knows when the program and its output have ended."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        self.output += data[: MAX_OUTPUT_BYTES - len(self.output)]

    def pipe_connection_lost(self, fd: int, _error: Exception | None) -> None:
        if fd == OUTPUT:
            self.closed.set()

    def process_exited(self) -> None:
        self.exited.set()


async def run(command: Sequence[str], data: bytes, seconds: float) -> Finished:
    """Run a program with ``data`` as its input. Whatever it has started in its group is killed with it.

    Raises OSError when it cannot be started, and ValueError for arguments that no program can have.
    """
    transport, listener = await _start(command)
    try:
        _feed(transport, data)
        in_time = await _happens(listener.exited, seconds)
    finally:
        await _end(transport, listener)
    code = transport.get_returncode() if in_time else None
    return Finished(code=code, output=listener.output.decode(errors="replace").strip())


async def _start(command: Sequence[str]) -> tuple[asyncio.SubprocessTransport, Listener]:
    """Start it. Who is cancelled meanwhile waits for the start, since only then there is a group to kill."""
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            Listener,
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError, ValueError):
            await _end(*await starting)
        raise


def _feed(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """A program that does not read its input is no error."""
    pipe = transport.get_pipe_transport(INPUT)
    assert isinstance(pipe, asyncio.WriteTransport)
    pipe.write(data)
    pipe.close()


async def _end(transport: asyncio.SubprocessTransport, listener: Listener) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(transport.get_pid(), signal.SIGKILL)
    try:
        await _happens(listener.exited, LAST_SECONDS)
        await _happens(listener.closed, LAST_SECONDS)
    finally:
        transport.close()


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether it happens in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
