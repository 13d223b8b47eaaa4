"""Programs that are agents: lines in and out, and nothing of them that outlives their end.

The pipes and the wait for the exit are ours, not the event loop's: uvloop leaves copies of its pipes in the
program, whose closed output would never be seen to end.
"""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, cast

from frontdesk.logs import get_logger

log = get_logger(__name__)

STDERR_CHUNK_BYTES = 64 * 1024
MAX_STDERR_LINE_CHARACTERS = 1_000
MAX_STDERR_LINES = 200
SETTLE_SECONDS = 1.0
REAP_SECONDS = 10.0


def environment(names: Iterable[str]) -> dict[str, str]:
    """What a program gets of the gateway's environment, where the secrets are: these variables only."""
    return {name: os.environ[name] for name in names if name in os.environ}


class Process:
    """Lines to and from a program. Its standard error goes to the log.

    When the program ends, whatever it started and left in its process group ends too.
    """

    def __init__(self, group: "Group", pipes: "Pipes", cwd: str | None) -> None:
        self.cwd = cwd
        self.last_words = ""
        self._group = group
        self._pipes = pipes
        self._stderr_lines = 0
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, command: Sequence[str], *, cwd: str | None, env: dict[str, str], max_line_bytes: int
    ) -> "Process":
        """Start a program; OSError when that cannot be done."""
        pipe = subprocess.PIPE
        child = subprocess.Popen(  # noqa: ASYNC220 - as brief as the loop's own; ours to wait for
            command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env, start_new_session=True
        )
        group = Group(child)
        opening = asyncio.create_task(Pipes.open(child, max_line_bytes))
        try:
            return cls(group, await asyncio.shield(opening), cwd)
        except BaseException:
            group.signal(signal.SIGKILL)
            opening.add_done_callback(_close_opened)
            raise

    async def read(self) -> bytes:
        """The next line, the last one perhaps without its end; empty when there is no more.

        Raises asyncio.LimitOverrunError for a line that is too long.
        """
        try:
            return await self._pipes.stdout.readuntil()
        except asyncio.IncompleteReadError as error:
            return error.partial

    async def write(self, line: bytes) -> None:
        """Hand over a line. ConnectionError when nobody reads any more."""
        self._pipes.stdin.write(line)
        await self._pipes.stdin.drain()

    def finish_input(self) -> None:
        """The program reads the end of its input."""
        self._pipes.stdin.close()

    def begin_turn(self) -> None:
        self.last_words = ""
        self._stderr_lines = 0

    async def fate(self) -> str:
        """What became of it, shortly after its output ended."""
        if not await self.ends_within(SETTLE_SECONDS):
            return "it closed its output"
        await asyncio.wait({self._listening}, timeout=SETTLE_SECONDS)
        code = self._group.code
        return f"exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"

    async def ends_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._group.exited.wait()
        except TimeoutError:
            return False
        return True

    async def end(self, stop_seconds: float, kill_seconds: float) -> None:
        """Leave nothing running: end of input, in time SIGTERM, in time SIGKILL. Cancelled, it kills."""
        try:
            self.finish_input()
            if not await self.ends_within(stop_seconds):
                self._group.signal(signal.SIGTERM)
                await self.ends_within(kill_seconds)
        finally:
            await self._kill()

    async def _kill(self) -> None:
        self._group.signal(signal.SIGKILL)
        try:
            if not await self.ends_within(REAP_SECONDS):
                log.warning("agent_not_killed", pid=self._group.pid)
            await asyncio.wait({self._listening}, timeout=SETTLE_SECONDS)
        finally:
            self._listening.cancel()
            self._pipes.close()

    async def _listen(self) -> None:
        """Log the standard error line by line."""
        rest = b""
        while chunk := await self._pipes.stderr.read(STDERR_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[: 4 * MAX_STDERR_LINE_CHARACTERS]
            for line in lines:
                self._note(line)
        self._note(rest)

    def _note(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()[:MAX_STDERR_LINE_CHARACTERS]
        if not text:
            return
        self.last_words = text
        self._stderr_lines += 1
        if self._stderr_lines <= MAX_STDERR_LINES:
            log.info("agent_stderr", pid=self._group.pid, text=text)
        elif self._stderr_lines == MAX_STDERR_LINES + 1:
            log.warning("agent_stderr_cut", pid=self._group.pid, lines=MAX_STDERR_LINES)


class Group:
    """A program with all that it started in its process group, and the moment of its exit."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.pid = child.pid
        self.exited = asyncio.Event()
        self._child = child
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._watch, name=f"agent-{child.pid}", daemon=True).start()

    @property
    def code(self) -> int:
        """What it ended with, negative for a signal."""
        return self._child.returncode or 0

    def signal(self, number: signal.Signals) -> None:
        # After the exit the number may be another group's; what was left of ours got its SIGKILL then.
        if not self.exited.is_set():
            # A group of which only corpses are left may not be signalled everywhere.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _watch(self) -> None:
        """Wait, in a thread of its own, for the exit."""
        with suppress(ChildProcessError):  # somebody else was told of it
            if hasattr(os, "waitid"):
                # The corpse keeps the number of the group for us until the loop has ended the others.
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            else:
                self._child.wait()
        with suppress(RuntimeError):  # the loop was closed before; nobody waits
            self._loop.call_soon_threadsafe(self._bury)

    def _bury(self) -> None:
        self.signal(signal.SIGKILL)
        self._child.wait()
        self.exited.set()


class Pipes:
    """The standard streams of a program."""

    def __init__(self, max_line_bytes: int) -> None:
        self.stdout = asyncio.StreamReader(max_line_bytes)
        self.stderr = asyncio.StreamReader(STDERR_CHUNK_BYTES)
        self.stdin: asyncio.StreamWriter
        self._read_ends: list[asyncio.ReadTransport] = []

    @classmethod
    async def open(cls, child: subprocess.Popen[bytes], max_line_bytes: int) -> "Pipes":
        pipes = cls(max_line_bytes)
        await pipes._write_to(cast("IO[bytes]", child.stdin))
        await pipes._read_from(cast("IO[bytes]", child.stdout), pipes.stdout)
        await pipes._read_from(cast("IO[bytes]", child.stderr), pipes.stderr)
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


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
