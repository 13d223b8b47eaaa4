"""A program with all that it started in its process group, its pipes, and the moment of its exit."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self, cast

from frontdesk.processes import keeping

MAX_UNREAD_BYTES = 64 * 1024
LAST_SECONDS = 2.0
"""How long the end of a killed program is waited for."""


class Group:
    """Started, signalled and ended as one. When the program ends, whatever it left in its group does too.

    What is written to it and read of it goes through pipes. Without an error output of its own that is empty.
    """

    stdin: asyncio.StreamWriter

    def __init__(self, child: subprocess.Popen[bytes], max_line_bytes: int) -> None:
        self.pid = child.pid
        self.child = child
        self.exited = asyncio.Event()
        self.stdout = asyncio.StreamReader(max_line_bytes)
        self.stderr = asyncio.StreamReader(MAX_UNREAD_BYTES)
        self._read_ends: list[asyncio.ReadTransport] = []
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._watch, name=f"program-{child.pid}", daemon=True).start()

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stderr: int = subprocess.PIPE,
        pass_fds: Collection[int] = (),
        max_line_bytes: int = MAX_UNREAD_BYTES,
    ) -> Self:
        """Start it in a session of its own, so that a ^C in the terminal does not reach it. Who is cancelled
        meanwhile waits until nothing is left of the program.

        Raises OSError when it cannot be started, and ValueError for arguments that no program can have.
        """
        pipe = subprocess.PIPE
        child = subprocess.Popen(  # noqa: ASYNC220 - so that the pipes are ours
            command,
            bufsize=0,
            stdin=pipe,
            stdout=pipe,
            stderr=stderr,
            cwd=cwd,
            env=keeping.marked(env),
            pass_fds=pass_fds,
            start_new_session=True,
        )
        keeping.add(child.pid)
        group = cls(child, max_line_bytes)
        opening = asyncio.create_task(group._open())
        try:
            await asyncio.shield(opening)
        except BaseException:
            group.signal(signal.SIGKILL)
            opening.add_done_callback(group._close_opened)
            await group.ends_within(LAST_SECONDS)
            raise
        return group

    @property
    def code(self) -> int:
        """What it ended with, negative for a signal."""
        return self.child.returncode or 0

    def signal(self, number: signal.Signals) -> None:
        # After the exit the number may be another group's; what was left of ours got its SIGKILL then.
        if not self.exited.is_set():
            # A group of which only corpses are left may not be signalled everywhere.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def ends_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        return self.exited.is_set()

    async def kill(self, reading: asyncio.Task[None], seconds: float, last: float) -> bool:
        """Kill it with all that it started, and close its pipes; whether it ended in time. The end of
        ``reading`` is waited for a little: others may hold it up who have left the group."""
        self.signal(signal.SIGKILL)
        try:
            ended = await self.ends_within(seconds)
            await asyncio.wait({reading}, timeout=last)
            return ended
        finally:
            reading.cancel()
            self.close()

    def close(self) -> None:
        """Close the pipes at once, whoever may still hold their other ends."""
        self.stdin.close()
        if self.stdin.transport.get_write_buffer_size():
            self.stdin.transport.abort()
        for transport in self._read_ends:
            transport.close()

    def _watch(self) -> None:
        """Wait, in a thread of its own, for the exit."""
        with suppress(ChildProcessError):  # somebody else was told of it
            if hasattr(os, "waitid"):
                # The corpse keeps the number of the group for us until the loop has ended the others.
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            else:
                self.child.wait()
        try:
            self._loop.call_soon_threadsafe(self._bury)
        except RuntimeError:  # the loop was closed before; nobody waits
            self.child.wait()

    def _bury(self) -> None:
        self.signal(signal.SIGKILL)
        keeping.remove(self.pid)
        self.child.wait()
        self.exited.set()

    async def _open(self) -> None:
        """Take hold of the pipes."""
        loop, nothing = self._loop, asyncio.StreamReader()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(nothing), cast("IO[bytes]", self.child.stdin)
        )
        self.stdin = asyncio.StreamWriter(transport, protocol, nothing, loop)
        await self._read_from(cast("IO[bytes]", self.child.stdout), self.stdout)
        if self.child.stderr is None:
            self.stderr.feed_eof()
        else:
            await self._read_from(self.child.stderr, self.stderr)

    async def _read_from(self, pipe: IO[bytes], reader: asyncio.StreamReader) -> None:
        transport, _ = await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._read_ends.append(transport)

    def _close_opened(self, opening: asyncio.Task[None]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self.close()
