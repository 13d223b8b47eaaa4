"""A program run to its end, within bounds of time and output, with nothing left of it afterwards."""

import asyncio
import signal
import subprocess
from collections.abc import Sequence

import msgspec

from frontdesk.processes import Group, Pipes

MAX_OUTPUT_BYTES = 4096
"""So much of what a program writes is kept; the rest is read and dropped."""
CHUNK_BYTES = 64 * 1024
LAST_SECONDS = 2.0
"""How long the end of a killed program and of its output is waited for."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    code: int | None
    """What it ended with, negative for a signal; None when its time was up."""
    output: str


class Output:
    """The beginning of what a program writes."""

    def __init__(self, pipes: Pipes) -> None:
        self.kept = bytearray()
        self._stream = pipes.stdout
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while chunk := await self._stream.read(CHUNK_BYTES):
            self.kept += chunk[: MAX_OUTPUT_BYTES - len(self.kept)]

    async def end(self) -> None:
        """Wait a little for its end, which others may hold up who have left the program's group."""
        try:
            await asyncio.wait({self._reading}, timeout=LAST_SECONDS)
        finally:
            self._reading.cancel()


async def run(command: Sequence[str], data: bytes, seconds: float) -> Finished:
    """Run a program with ``data`` as its input. Whatever it has started in its group is killed with it.

    Raises OSError when it cannot be started, and ValueError for arguments that no program can have.
    """
    group = Group.start(command, stderr=subprocess.STDOUT)
    pipes = await Pipes.open(group)
    output = Output(pipes)
    try:
        # A program that does not read its input is no error.
        pipes.stdin.write(data)
        pipes.stdin.close()
        in_time = await group.ends_within(seconds)
    finally:
        await _end(group, pipes, output)
    return Finished(code=group.code if in_time else None, output=output.kept.decode(errors="replace").strip())


async def _end(group: Group, pipes: Pipes, output: Output) -> None:
    group.signal(signal.SIGKILL)
    try:
        await group.ends_within(LAST_SECONDS)
        await output.end()
    finally:
        pipes.close()
