"""The driver: turns into prompts of agents that speak ACP."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import TypeVar

from frontdesk.agents import processes, trials
from frontdesk.agents.acp import options, prompts
from frontdesk.agents.acp.kept import Kept
from frontdesk.agents.acp.pool import Pool
from frontdesk.agents.acp.turns import CANCELLED, Turn
from frontdesk.agents.acp.wire import Lost
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import events

Made = TypeVar("Made")


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
        """Start the program once."""
        env = processes.environment((*options.PASSED, *self._options.env))
        await trials.start_once(self._options.command, working_dir, env)

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
            async with aclosing(Turn(kept, turn, line, self._options).run(blocks)) as happening:
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
