"""One turn with one process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from frontdesk.agents.bounds import Ear, Limits, Patience, Tally
from frontdesk.agents.command import protocol
from frontdesk.agents.command.options import Options
from frontdesk.agents.processes import Process
from frontdesk.contracts.agents import Line
from frontdesk.formats import quoting
from frontdesk.logs import get_logger
from frontdesk.model import events

STOPPED = "stopped"
ENDED = "the agent ended before it was done"

log = get_logger(__name__)


class Exchange:
    def __init__(self, process: Process, turn: events.Assignment, line: Line, options: Options) -> None:
        self._process = process
        self._turn = turn
        self._options = options
        self._patience = Patience(options.start_seconds)
        self._line = Ear(line, self._patience)
        self._reader = protocol.Reader()
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
            event: events.Event | protocol.Heeded | None = None
            while not isinstance(event, events.Done | events.Failed):
                event = await self._next()
                if isinstance(event, protocol.Heeded):
                    self._heed(event.id)
                    continue
                self._patience.note(event)
                yield event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        _raise_unexpected(tasks)

    def _heed(self, turn_id: str) -> None:
        """From now on the message belongs to this turn. One of an earlier turn has become its own."""
        if turn_id in self._steers:
            self._line.mark_steered(turn_id)
        else:
            log.warning("agent_steered_unknown", turn=self._turn.turn_id, id=quoting.clean_text(turn_id))

    async def _next(self) -> events.Event | protocol.Heeded:
        try:
            async with self._patience.waiting():
                line = await self._read_line()
        except TimeoutError:
            if self._patience.failure is None:
                raise
            return self._patience.failure
        except asyncio.LimitOverrunError:
            return events.Failed(
                message=f"the agent wrote a line of more than {self._options.max_line_bytes} bytes"
            )
        if not line:
            return await self._ended()
        self._patience.allow(self._options.idle_seconds)
        said = self._reader.read(line)
        counted = events.Event() if isinstance(said, protocol.Heeded) else said
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
        fate = await self._process.fate()
        words = (
            f", its last words: {quoting.quote(self._process.last_words)}" if self._process.last_words else ""
        )
        return events.Failed(message=ENDED, detail=f"{ENDED} ({fate}{words})", retryable=True)

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


def _raise_unexpected(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        if not task.cancelled():
            task.result()
