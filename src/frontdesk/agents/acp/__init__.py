"""Agents that speak the Agent Client Protocol over their standard input and output."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from frontdesk.agents.acp import prompts
from frontdesk.agents.acp.options import AcpOptions
from frontdesk.agents.acp.session import AcpSession, Memory
from frontdesk.agents.acp.turns import CANCELLED, PromptTurn
from frontdesk.agents.acp.wire import Lost
from frontdesk.agents.programs import Resting
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import events

Options = AcpOptions
Made = TypeVar("Made")
MAX_MEMORIES = 10_000
CLOSED = "it was closed"


class Driver:
    """Keeps a process for each session. The iterator of a turn that is closed early takes it along.

    A turn that has a slot finds room for its process: whoever else is there without one, rests.
    """

    Options = AcpOptions

    def __init__(self, options: AcpOptions) -> None:
        self.abilities = Abilities(stops=True, models=True, sends=options.sends, images=True, paths=True)
        self._options = options.checked()
        self._slots = asyncio.Semaphore(options.max_processes)
        self._working: dict[str, AcpSession | None] = {}
        self._resting = Resting[AcpSession](
            lambda _: asyncio.sleep(options.idle_seconds), lambda kept: kept.wire.close()
        )
        self._memories: dict[str, Memory] = {}

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        if line.stopping:
            yield events.Done(finish_reason=CANCELLED)
            return
        try:
            async with AsyncExitStack() as stack:
                ready = await unless_stopped(self._ready(turn, stack), line)
                if ready is None:
                    yield events.Done(finish_reason=CANCELLED)
                    return
                kept, blocks = ready
                prompt_turn = PromptTurn(kept, turn, line, self._options)
                async with aclosing(prompt_turn.run(blocks)) as happening:
                    async for event in happening:
                        yield event
        except Lost as lost:
            yield lost.failed

    async def check(self, working_dir: str) -> None:
        await self._options.try_out(working_dir)

    async def release(self, session_id: str) -> None:
        await self._resting.release(session_id)
        if kept := self._working.get(session_id):
            await kept.wire.close()

    async def close(self) -> None:
        await self._resting.close()
        for session_id in list(self._working):
            await self.release(session_id)

    async def _ready(
        self, turn: events.Assignment, stack: AsyncExitStack
    ) -> tuple[AcpSession, list[prompts.Block]]:
        """A process that can take the turn, and what to tell it."""
        kept = await stack.enter_async_context(self._lent(turn.session_id, self._folder(turn)))
        memory = self._memories.get(turn.session_id)
        return kept, await kept.prepare(turn, memory, self._options.preamble_characters)

    def _folder(self, turn: events.Assignment) -> str:
        return str(Path(turn.working_dir or self._options.cwd or ".").absolute())

    @asynccontextmanager
    async def _lent(self, session_id: str, cwd: str) -> AsyncIterator[AcpSession]:
        """The session's process, for a turn. One that is not settled afterwards is ended."""
        async with self._slot(session_id):
            kept = await self._found(session_id, cwd)
            self._working[session_id] = kept
            kept.settled = False
            try:
                if self._resting.closed:  # while it waited for its slot, or was started
                    raise Lost(CLOSED)
                yield kept
            finally:
                await self._give_back(session_id, kept)

    @asynccontextmanager
    async def _slot(self, session_id: str) -> AsyncIterator[None]:
        if self._resting.closed:
            raise Lost(CLOSED)
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

    async def _found(self, session_id: str, cwd: str) -> AcpSession:
        """The process that the session left, when it still serves; else a new one."""
        kept = await self._resting.take(session_id)
        if kept and kept.cwd == cwd and not kept.wire.lost:
            return kept
        if kept:
            await kept.wire.close()
        await self._resting.make_room(self._options.max_processes - len(self._working))
        return await AcpSession.start(self._options, cwd)

    async def _give_back(self, session_id: str, kept: AcpSession) -> None:
        if not kept.settled or kept.wire.lost:
            await kept.wire.close()
            return
        self._memories.pop(session_id, None)
        self._memories[session_id] = kept.memory
        if len(self._memories) > MAX_MEMORIES:
            del self._memories[next(iter(self._memories))]
        await self._resting.keep(session_id, kept)


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
