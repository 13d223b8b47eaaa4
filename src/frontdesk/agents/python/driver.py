"""Runs a Python function as an agent."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from frontdesk import errors
from frontdesk.agents.python import options, targets
from frontdesk.agents.python.threads import Threads
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

PASSING = (ConnectionError, TimeoutError, errors.AgentFailed)
"""What may be otherwise the next time."""


class Driver:
    Options = options.Options

    def __init__(self, options: options.Options) -> None:
        """Import the function; AgentFailed when that cannot be done."""
        self._options = options
        self._pieces = targets.pieces_of(targets.load(options.target), Threads(options.max_threads))

    @property
    def abilities(self) -> Abilities:
        options = self._options
        return Abilities(steers=options.steers, stops=options.stops, models=options.models)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        try:
            async with aclosing(self._pieces(turn, line)) as pieces:
                async for piece in pieces:
                    event = _event(piece)
                    yield event
                    if isinstance(event, events.Done | events.Failed):
                        return
        except (Exception, SystemExit) as error:
            log.exception("agent_raised", target=self._options.target, turn=turn.turn_id)
            yield _failed(error)
            return
        yield events.Done()

    async def release(self, session_id: str) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is open."""


def _event(piece: object) -> events.Event:
    if isinstance(piece, str):
        return events.Text(text=piece)
    if isinstance(piece, events.Event):
        return piece
    name = type(piece).__name__
    return events.Failed(message=f"the agent's function gave a value of type {name}, not a text or an event")


def _failed(error: BaseException) -> events.Failed:
    """The failure without the error's words, which may hold anything; they are in the log."""
    name = type(error).__name__
    return events.Failed(
        message=f"the agent's function raised {name}; the log says more", retryable=isinstance(error, PASSING)
    )
