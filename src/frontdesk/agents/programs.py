"""Programs that are agents: lines in and out, and nothing of them that outlives their end."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Annotated, ClassVar, Generic, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.agents.bounds import Count, Seconds
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.processes import Group

log = get_logger(__name__)

STDERR_CHUNK_BYTES = 64 * 1024
MAX_STDERR_LINE_CHARACTERS = 1_000
MAX_STDERR_LINES = 200
SETTLE_SECONDS = 1.0
REAP_SECONDS = 10.0
WATCHED_SECONDS = 1.0
KILL_SECONDS = 1.0
WELL = "exit code 0"

Kept = TypeVar("Kept")


class ProgramOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set for every agent that is a program."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """The program and its arguments; no shell reads them."""
    cwd: str | None = None
    """Where it works, unless the turn names a folder. The gateway's turns do: theirs is made of this."""
    sends: bool = False
    """It has a way for whoever thinks in it to send messages besides the answer: it is told where to."""
    env: tuple[str, ...] = ()
    """The names of further variables that it gets from the gateway's environment."""
    stop_seconds: Seconds = 5.0
    """To end by itself after a stop or the end of its input; then it gets SIGTERM."""
    kill_seconds: Seconds = 2.0
    """To end after SIGTERM; then it gets SIGKILL, with everything that it started."""
    max_line_bytes: Count = 1024 * 1024

    passed: ClassVar[tuple[str, ...]] = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
    """The variables that it always gets. Nothing else of the gateway's environment, where the secrets are."""

    async def start(self, cwd: str | None) -> "Process":
        """Start the program; OSError when that cannot be done."""
        env = {name: os.environ[name] for name in (*self.passed, *self.env) if name in os.environ}
        process = await Process.start(self.command, cwd=cwd, env=env, max_line_bytes=self.max_line_bytes)
        process.cwd = cwd
        return process

    async def try_out(self, cwd: str) -> None:
        """Start it once; AgentFailed when it cannot be started, or gives up before it was asked anything."""
        program = quoting.quote(self.command[0])
        try:
            process = await self.start(cwd)
        except OSError as error:
            raise errors.AgentFailed(why=f"{program} cannot be started: {error.strerror}") from error
        try:
            if await process.ends_within(WATCHED_SECONDS) and (fate := await process.fate()) != WELL:
                said = f": {quoting.clean_text(process.last_words)}" if process.last_words else ""
                raise errors.AgentFailed(why=f"{program} ended before it was asked anything ({fate}){said}")
        finally:
            await process.end(0, KILL_SECONDS)


class Process(Group):
    """Lines to and from a program. Its standard error goes to the log."""

    cwd: str | None = None
    last_words = ""
    _stderr_lines = 0

    async def _open(self) -> None:
        await super()._open()
        self._listening = asyncio.create_task(self._listen())

    async def read(self) -> bytes:
        """The next line, the last one perhaps without its end; empty when there is no more.

        Raises asyncio.LimitOverrunError for a line that is too long.
        """
        try:
            return await self.stdout.readuntil()
        except asyncio.IncompleteReadError as error:
            return error.partial

    async def write(self, line: bytes) -> None:
        """Hand over a line. ConnectionError when nobody reads any more."""
        self.stdin.write(line)
        await self.stdin.drain()

    def begin_turn(self) -> None:
        self.last_words = ""
        self._stderr_lines = 0

    async def fate(self) -> str:
        """What became of it, shortly after its output ended."""
        if not await self.ends_within(SETTLE_SECONDS):
            return "it closed its output"
        await asyncio.wait({self._listening}, timeout=SETTLE_SECONDS)
        return f"exit code {self.code}" if self.code >= 0 else f"killed by {_signal_name(-self.code)}"

    async def end_told(self) -> str:
        """What became of it, and what it said last."""
        fate, words = await self.fate(), self.last_words
        return f"{fate}, its last words: {quoting.quote(words)}" if words else fate

    async def end(self, stop_seconds: float, kill_seconds: float) -> None:
        """Leave nothing running: end of input, in time SIGTERM, in time SIGKILL. Cancelled, it kills."""
        try:
            self.stdin.close()
            if not await self.ends_within(stop_seconds):
                self.signal(signal.SIGTERM)
                await self.ends_within(kill_seconds)
        finally:
            if not await self.kill(self._listening, REAP_SECONDS, SETTLE_SECONDS):
                log.warning("agent_not_killed", pid=self.pid)

    async def _listen(self) -> None:
        """Log the standard error line by line."""
        rest = b""
        while chunk := await self.stderr.read(STDERR_CHUNK_BYTES):
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
            log.info("agent_stderr", pid=self.pid, text=text)
        elif self._stderr_lines == MAX_STDERR_LINES + 1:
            log.warning("agent_stderr_cut", pid=self.pid, lines=MAX_STDERR_LINES)


class Resting(Generic[Kept]):
    """Processes between two turns of their session. Who rests longest stands first."""

    def __init__(
        self, rest: Callable[[Kept], Awaitable[object]], end: Callable[[Kept], Awaitable[None]]
    ) -> None:
        """``rest`` takes as long as a process may rest, ``end`` ends it."""
        self.closed = False
        self._rest = rest
        self._end = end
        self._kept: dict[str, tuple[Kept, asyncio.Task[None]]] = {}
        self._watches: set[asyncio.Task[None]] = set()

    async def keep(self, session_id: str, process: Kept) -> None:
        await self.release(session_id)
        if self.closed:
            await self._end(process)
            return
        watch = asyncio.create_task(self._watch(session_id, process))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        self._kept[session_id] = process, watch

    async def take(self, session_id: str) -> Kept | None:
        """The process of a session, which may have ended by itself."""
        # Taken out before anything is awaited: somebody who needs room may end what rests.
        process, watch = self._kept.pop(session_id, (None, None))
        if watch is None:
            return None
        # The watch may just have found that its time is over: then it ends the process.
        watch.cancel()
        await asyncio.wait({watch})
        return process if watch.cancelled() else None

    async def release(self, session_id: str) -> None:
        process = await self.take(session_id)
        if process is not None:
            await self._end(process)

    async def make_room(self, most: int) -> None:
        """Let no more than so many rest, if any."""
        while self._kept and len(self._kept) > most:
            oldest = next(iter(self._kept))
            log.info("agent_process_freed", session=oldest, why="room")
            await self.release(oldest)

    async def close(self) -> None:
        self.closed = True
        await asyncio.gather(*map(self.release, list(self._kept)))
        if self._watches:
            await asyncio.wait(self._watches)

    async def _watch(self, session_id: str, process: Kept) -> None:
        await self._rest(process)
        # Who takes it now finds nothing; who has taken it waits until it is ended here.
        if self._kept.pop(session_id, None):
            log.info("agent_process_freed", session=session_id, why="idle")
        await self._end(process)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
