"""The standard streams of a program, on whatever loop runs."""

import asyncio
import signal
from typing import IO, cast

from frontdesk.processes.groups import Group

MAX_UNREAD_BYTES = 64 * 1024
LAST_SECONDS = 2.0
"""How long the end of a killed program is waited for."""


class Pipes:
    """What is written to a program and read of it. Without a standard error of its own, that is empty."""

    def __init__(self, max_line_bytes: int) -> None:
        self.stdout = asyncio.StreamReader(max_line_bytes)
        self.stderr = asyncio.StreamReader(MAX_UNREAD_BYTES)
        self.stdin: asyncio.StreamWriter
        self._read_ends: list[asyncio.ReadTransport] = []

    @classmethod
    async def open(cls, group: Group, max_line_bytes: int = MAX_UNREAD_BYTES) -> "Pipes":
        """Take hold of them. Who is cancelled meanwhile waits until nothing is left of the program."""
        opening = asyncio.create_task(cls._open(group, max_line_bytes))
        try:
            return await asyncio.shield(opening)
        except BaseException:
            group.signal(signal.SIGKILL)
            opening.add_done_callback(_close_opened)
            await group.ends_within(LAST_SECONDS)
            raise

    @classmethod
    async def _open(cls, group: Group, max_line_bytes: int) -> "Pipes":
        pipes, child = cls(max_line_bytes), group.child
        await pipes._write_to(cast("IO[bytes]", child.stdin))
        await pipes._read_from(cast("IO[bytes]", child.stdout), pipes.stdout)
        if child.stderr is None:
            pipes.stderr.feed_eof()
        else:
            await pipes._read_from(child.stderr, pipes.stderr)
        return pipes

    def close(self) -> None:
        """Close them at once, whoever may still hold their other ends."""
        self.stdin.close()
        if self.stdin.transport.get_write_buffer_size():
            self.stdin.transport.abort()
        for transport in self._read_ends:
            transport.close()

    async def _write_to(self, pipe: IO[bytes]) -> None:
        loop, nothing = asyncio.get_running_loop(), asyncio.StreamReader()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(nothing), pipe
        )
        self.stdin = asyncio.StreamWriter(transport, protocol, nothing, loop)

    async def _read_from(self, pipe: IO[bytes], reader: asyncio.StreamReader) -> None:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._read_ends.append(transport)


def _close_opened(opening: asyncio.Task[Pipes]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
