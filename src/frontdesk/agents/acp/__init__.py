"""Agents that speak the Agent Client Protocol over their standard input and output."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from frontdesk.agents.acp import options, prompts
from frontdesk.agents.acp.kept import Kept, Memory
from frontdesk.agents.acp.options import Options
from frontdesk.agents.acp.turns import CANCELLED, PromptTurn
from frontdesk.agents.acp.wire import Lost
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.logs import get_logger
from frontdesk.model import events

__all__ = ["Driver", "Options"]

log = get_logger(__name__)

Made = TypeVar("Made")
MAX_MEMORIES = 10_000


class Driver:
    """Keeps a process for each session. The iterator of a turn that is closed early takes it along."""

    Options = options.Options
    abilities = Abilities(stops=True, models=True)

    def __init__(self, options: options.Options) -> None:
        self._options = options.checked()
        self._pool = Pool(self._options)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        if line.stopping:
            yield events.Done(finish_reason=CANCELLED)
            return
        try:
            async with aclosing(self._run(turn, line)) as happening:
                async for event in happening:
                    yield event
        except Lost as lost:
            yield lost.failed

    async def check(self, working_dir: str) -> None:
        await self._options.try_out(working_dir)

    async def release(self, session_id: str) -> None:
        await self._pool.release(session_id)

    async def close(self) -> None:
        await self._pool.close()

    async def _run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        async with AsyncExitStack() as stack:
            ready = await unless_stopped(self._ready(turn, stack), line)
            if ready is None:
                yield events.Done(finish_reason=CANCELLED)
                return
            kept, blocks = ready
            async with aclosing(PromptTurn(kept, turn, line, self._options).run(blocks)) as happening:
                async for event in happening:
                    yield event

    async def _ready(
        self, turn: events.Assignment, stack: AsyncExitStack
    ) -> tuple[Kept, list[prompts.Block]]:
        """A process that can take the turn, and what to tell it."""
        kept = await stack.enter_async_context(self._pool.lent(turn.session_id, self._folder(turn)))
        memory = self._pool.memory_of(turn.session_id)
        return kept, await kept.prepare(turn, memory, self._options.preamble_characters)

    def _folder(self, turn: events.Assignment) -> str:
        return str(Path(turn.working_dir or self._options.cwd or ".").absolute())


async def unless_stopped(work: Coroutine[None, None, Made], line: Line) -> Made | None:
    """What the work makes; None when the turn is stopped first."""
    making = asyncio.create_task(work)
    stop = asyncio.create_task(line.stopped())
    try:
        await asyncio.wait({making, stop}, return_when=asyncio.FIRST_COMPLETED)
        return await making if making.done() else None
    finally:
        stop.cancel()
        making.cancel()
        await asyncio.wait({making, stop})


class Pool:
    """A turn that has a slot finds room for its process: whoever else is there without one, rests."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._slots = asyncio.Semaphore(options.max_processes)
        self._working: dict[str, Kept | None] = {}
        self._resting: dict[str, Kept] = {}
        """Who rests longest stands first."""
        self._memories: dict[str, Memory] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    def memory_of(self, session_id: str) -> Memory | None:
        return self._memories.get(session_id)

    @asynccontextmanager
    async def lent(self, session_id: str, cwd: str) -> AsyncIterator[Kept]:
        """The session's process, for a turn. One that is not settled afterwards is ended."""
        async with self._slot(session_id):
            kept = await self._found(session_id, cwd)
            self._working[session_id] = kept
            kept.settled = False
            try:
                yield kept
            finally:
                await self._give_back(session_id, kept)

    async def release(self, session_id: str) -> None:
        for kept in (self._resting.pop(session_id, None), self._working.get(session_id)):
            if kept:
                await self._end(kept)

    async def close(self) -> None:
        self._closed = True
        for session_id in [*self._resting, *self._working]:
            await self.release(session_id)
        if self._ending:
            await asyncio.wait(self._ending)

    @asynccontextmanager
    async def _slot(self, session_id: str) -> AsyncIterator[None]:
        if self._closed:
            raise Lost("it was closed")
        if session_id in self._working:
            raise Lost("its session is busy with another turn", retryable=True)
        # Noted before the wait for a slot, so that no second turn of the session waits beside it.
        self._working[session_id] = None
        try:
            try:
                async with asyncio.timeout(self._options.slot_seconds):
                    await self._slots.acquire()
            except TimeoutError:
                raise Lost(f"all {self._options.max_processes} processes are busy", retryable=True) from None
            try:
                yield
            finally:
                self._slots.release()
        finally:
            del self._working[session_id]

    async def _found(self, session_id: str, cwd: str) -> Kept:
        """The process that the session left, when it still serves; else a new one."""
        # Taken out before anything is awaited: its timer, or somebody who needs room, may end what rests.
        kept = self._resting.pop(session_id, None)
        if kept and kept.timer:
            kept.timer.cancel()
        if kept and kept.cwd == cwd and not kept.wire.lost:
            return kept
        if kept:
            await self._end(kept)
        while self._resting and len(self._resting) + len(self._working) > self._options.max_processes:
            oldest = next(iter(self._resting))
            log.info("agent_process_freed", session=oldest, why="room")
            await self._end(self._resting.pop(oldest))
        return await Kept.start(self._options, cwd)

    async def _give_back(self, session_id: str, kept: Kept) -> None:
        if not kept.settled or kept.wire.lost or self._closed:
            await self._end(kept)
            return
        self._memories.pop(session_id, None)
        self._memories[session_id] = kept.memory
        if len(self._memories) > MAX_MEMORIES:
            del self._memories[next(iter(self._memories))]
        self._resting[session_id] = kept
        loop = asyncio.get_running_loop()
        kept.timer = loop.call_later(self._options.idle_seconds, self._expire, session_id, kept)

    def _expire(self, session_id: str, kept: Kept) -> None:
        # A turn may have taken it meanwhile, and another process may rest there by now.
        if self._resting.get(session_id) is kept:
            log.info("agent_process_freed", session=session_id, why="idle")
            del self._resting[session_id]
            task = asyncio.create_task(self._end(kept))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _end(self, kept: Kept) -> None:
        if kept.timer:
            kept.timer.cancel()
        await kept.wire.close()
