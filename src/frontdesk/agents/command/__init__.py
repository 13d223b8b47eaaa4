"""An agent that is a program: one JSON object per line over its standard input and output."""

import asyncio
import errno
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from frontdesk.agents.bounds import Count, Limits, Patience, Seconds, Tally
from frontdesk.agents.command import protocol
from frontdesk.agents.programs import Process, ProgramOptions, Resting
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""Why a program could not be started just now."""
STOPPED = "stopped"
ENDED = "the agent ended before it was done"


class CommandOptions(ProgramOptions, frozen=True, kw_only=True):
    steers: bool = False
    """The agent heeds `steer` and answers with `steered`. Otherwise a message waits for its own turn."""
    models: bool = False
    """The agent heeds the `model` of a turn. Otherwise nobody can choose one with /model."""
    images: bool = False
    """The agent takes images as parts of a message. Otherwise it is told where they lie."""
    keep: bool = False
    """Keep the process of a session from turn to turn. Otherwise each turn has a process of its own."""
    keep_seconds: Seconds = 900.0
    """How long a kept process may rest."""
    max_kept: Count = 50
    """How many may rest; beyond that the one that rested longest is ended."""
    start_seconds: Seconds = 60.0
    """Until its first line."""
    idle_seconds: Seconds = 600.0
    """Between two lines. While a person decides nothing is expected."""
    max_text_characters: Count = 1_000_000
    """Of one turn."""
    max_events: Count = 100_000
    """Of one turn."""


Options = CommandOptions


class Driver:
    Options = CommandOptions

    def __init__(self, options: CommandOptions) -> None:
        self._options = options
        self._running: set[Process] = set()
        self._resting = Resting[Process](
            lambda process: _stays_silent(process, options.keep_seconds), self._end
        )

    @property
    def abilities(self) -> Abilities:
        options = self._options
        able = {name: getattr(options, name) for name in ("steers", "models", "sends", "images")}
        return Abilities(stops=True, paths=True, **able)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        try:
            process = await self._process_for(turn)
        except OSError as error:
            program = quoting.quote(self._options.command[0])
            yield events.Failed(
                message="the agent cannot be started",
                detail=f"the agent {program} cannot be started: {error.strerror}",
                retryable=error.errno in PASSING,
            )
            return
        last: events.Event | None = None
        self._running.add(process)
        try:
            await line.confirm()
            async with aclosing(Exchange(process, turn, line, self._options).run()) as said:
                async for last in said:
                    yield last
        finally:
            keep = self._options.keep and not line.stopping
            await self._put_away(turn.session_id, process, last, keep)

    async def check(self, working_dir: str) -> None:
        await self._options.try_out(working_dir)

    async def release(self, session_id: str) -> None:
        """End the process that rests for a session. One in the middle of a turn goes on."""
        await self._resting.release(session_id)

    async def close(self) -> None:
        """End every process, running turns included."""
        await asyncio.gather(self._resting.close(), *map(self._end, self._running))

    async def _process_for(self, turn: events.Assignment) -> Process:
        cwd = turn.working_dir or self._options.cwd
        if process := await self._resting.take(turn.session_id):
            if process.cwd == cwd and await _stays_silent(process, 0):
                process.begin_turn()
                return process
            await self._end(process)
        return await self._options.start(cwd)

    async def _put_away(
        self, session_id: str, process: Process, last: events.Event | None, keep: bool
    ) -> None:
        try:
            if not isinstance(last, events.Done):
                await process.end(0, self._options.kill_seconds)
            elif keep and not self._resting.closed:
                await self._resting.make_room(self._options.max_kept - 1)
                await self._resting.keep(session_id, process)
            else:
                await self._see_off(process)
        finally:
            self._running.discard(process)

    async def _see_off(self, process: Process) -> None:
        """End a process that is done; what it still says is nobody's answer."""
        try:
            process.stdin.close()
            await _stays_silent(process, self._options.stop_seconds)
        finally:
            await self._end(process)

    async def _end(self, process: Process) -> None:
        await process.end(self._options.stop_seconds, self._options.kill_seconds)


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


class Exchange:
    def __init__(
        self, process: Process, turn: events.Assignment, line: Line, options: CommandOptions
    ) -> None:
        self._process = process
        self._turn = turn
        self._options = options
        self._patience = Patience(options.start_seconds)
        self._line = line
        line.overhear(self._patience.heed)
        self._reader = protocol.LineReader()
        limits = Limits(
            max_events=options.max_events, max_text_characters=options.max_text_characters, max_calls=None
        )
        self._tally = Tally(limits)
        self._steers: set[str] = set()
        """The messages that the agent was told of."""

    async def run(self) -> AsyncGenerator[events.Event, None]:
        """What the agent says, up to Done or Failed."""
        tasks = {asyncio.create_task(self._speak()), asyncio.create_task(self._heed_stop())}
        try:
            event: events.Event | protocol.SteeredLine | None = None
            while not isinstance(event, events.Done | events.Failed):
                event = await self._next()
                if isinstance(event, protocol.SteeredLine):
                    # From now on the message belongs to this turn. One of an earlier turn has become its own.
                    if event.id in self._steers:
                        self._line.mark_steered(event.id)
                    else:
                        log.warning(
                            "agent_steered_unknown", turn=self._turn.turn_id, id=quoting.clean_text(event.id)
                        )
                    continue
                if isinstance(event, events.Approval):
                    self._patience.note(event)
                yield event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _next(self) -> events.Event | protocol.SteeredLine:
        try:
            line = await self._patience.wait_for(self._read_line())
        except asyncio.LimitOverrunError:
            return events.Failed(
                message=f"the agent wrote a line of more than {self._options.max_line_bytes} bytes"
            )
        if isinstance(line, events.Failed):
            return line
        if not line:
            return await self._ended()
        self._patience.allow(self._options.idle_seconds)
        said = self._reader.read(line)
        counted = events.Event() if isinstance(said, protocol.SteeredLine) else said
        return self._tally.count(counted) or said

    async def _read_line(self) -> bytes:
        """The next line with something in it; empty at the end."""
        while line := await self._process.read():
            if line.strip():
                return line
        return b""

    async def _ended(self) -> events.Event:
        """The output ended before the agent was done."""
        if self._line.stopping:
            return events.Done(finish_reason=STOPPED)
        detail = f"{ENDED} ({await self._process.end_told()})"
        return events.Failed(message=ENDED, detail=detail, retryable=True)

    async def _speak(self) -> None:
        """Hand over the turn, and then every signal."""
        await self._tell(protocol.turn_line(self._turn))
        while True:
            signal = await self._line.take()
            if isinstance(signal, events.Steer):
                self._steers.add(signal.id)
            await self._tell(protocol.signal_line(signal))

    async def _tell(self, line: bytes) -> None:
        """Write a line; an agent that has ended does not hear it."""
        with suppress(ConnectionError):
            await self._process.write(line)

    async def _heed_stop(self) -> None:
        """See that the agent ends when it is to stop, listening or not."""
        await self._line.stopped()
        if not await self._process.ends_within(self._options.stop_seconds):
            await self._process.end(0, self._options.kill_seconds)
