"""The scripted agent."""

from collections.abc import AsyncGenerator

from frontdesk.agents.scripted import options
from frontdesk.agents.scripted.performance import Performance
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import events


class Driver:
    Options = options.Options

    def __init__(self, options: options.Options) -> None:
        self._options = options

    @property
    def abilities(self) -> Abilities:
        return Abilities(steers=self._options.steers, stops=self._options.stops, models=True)

    def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        return Performance(turn, line, self._options).run()

    async def release(self, session_id: str) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is open."""
