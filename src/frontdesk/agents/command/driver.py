"""Processes for turns: one each, or one per session that rests between turns."""

import asyncio
import errno
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from frontdesk.agents import processes, trials
from frontdesk.agents.command import options, protocol
from frontdesk.agents.command.exchange import Exchange
from frontdesk.agents.processes import Process
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Why a program could not be started just now."""


class Resting(NamedTuple):
    process: Process
    watch: asyncio.Task[None]


class Driver:
    Options = options.Options

    def __init__(self, options: options.Options) -> None:
        self._options = options
        self._running: set[Process] = set()
        self._resting: dict[str, Resting] = {}
        self._watches: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def abilities(self) -> Abilities:
        return Abilities(steers=self._options.steers, stops=True, models=self._options.models)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        try:
            process = await self._process_for(turn)
        except OSError as error:
            yield self._not_started(error)
            return
        last: events.Event | None = None
        self._running.add(process)
        try:
            await line.confirm()
            async with aclosing(Exchange(process, turn, line, self._options).run()) as said:
                async for last in said:
                    yield last
        finally:
            await self._put_away(
                turn.session_id, process, last, keep=self._options.keep and not line.stopping
            )

    async def check(self, working_dir: str) -> None:
        """Start the program once."""
        env = processes.environment((*options.PASSED, *self._options.env))
        await trials.start_once(self._options.command, working_dir, env)

    async def release(self, session_id: str) -> None:
        """End the process that rests for a session. One in the middle of a turn goes on."""
        if resting := self._resting.pop(session_id, None):
            await _wake(resting)
            await self._end(resting.process)

    async def close(self) -> None:
        """End every process, running turns included."""
        self._closed = True
        ends = [self.release(session_id) for session_id in self._resting]
        ends += [self._end(process) for process in self._running]
        await asyncio.gather(*ends)
        if self._watches:
            await asyncio.wait(self._watches)

    async def _process_for(self, turn: events.Assignment) -> Process:
        cwd = turn.working_dir or self._options.cwd
        if resting := self._resting.pop(turn.session_id, None):
            if (
                await _wake(resting)
                and resting.process.cwd == cwd
                and await _stays_silent(resting.process, 0)
            ):
                resting.process.begin_turn()
                return resting.process
            await self._end(resting.process)
        return await Process.start(
            self._options.command,
            cwd=cwd,
            env=processes.environment((*options.PASSED, *self._options.env)),
            max_line_bytes=self._options.max_line_bytes,
        )

    def _not_started(self, error: OSError) -> events.Failed:
        program = quoting.quote(self._options.command[0])
        return events.Failed(
            message="the agent cannot be started",
            detail=f"the agent {program} cannot be started: {error.strerror}",
            retryable=error.errno in PASSING,
        )

    async def _put_away(
        self, session_id: str, process: Process, last: events.Event | None, keep: bool
    ) -> None:
        try:
            if not isinstance(last, events.Done):
                await process.end(0, self._options.kill_seconds)
            elif keep and not self._closed:
                await self._keep(session_id, process)
            else:
                await self._see_off(process)
        finally:
            self._running.discard(process)

    async def _see_off(self, process: Process) -> None:
        """End a process that is done; what it still says is nobody's answer."""
        try:
            process.finish_input()
            await _stays_silent(process, self._options.stop_seconds)
        finally:
            await self._end(process)

    async def _end(self, process: Process) -> None:
        await process.end(self._options.stop_seconds, self._options.kill_seconds)

    async def _keep(self, session_id: str, process: Process) -> None:
        await self.release(session_id)
        while len(self._resting) >= self._options.max_kept:
            await self.release(next(iter(self._resting)))
        watch = asyncio.create_task(self._watch(session_id, process))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        self._resting[session_id] = Resting(process, watch)

    async def _watch(self, session_id: str, process: Process) -> None:
        """End a resting process after its time, or when it says anything unasked: that is no answer."""
        await _stays_silent(process, self._options.keep_seconds)
        self._resting.pop(session_id, None)
        await self._end(process)


async def _stays_silent(process: Process, seconds: float) -> bool:
    """Whether a process that is done neither ends nor says anything for so long; logged when it speaks."""
    try:
        async with asyncio.timeout(seconds):
            line = await process.read()
    except TimeoutError:
        return True
    except asyncio.LimitOverrunError:
        line = b"(too long)"
    if line:
        log.warning("agent_spoke_after_done", line=protocol.quote(line))
    return False


async def _wake(resting: Resting) -> bool:
    """Take a process from its rest; whether it still lives."""
    resting.watch.cancel()
    await asyncio.wait({resting.watch})
    return resting.watch.cancelled()
