"""The driver: turns into runs of a pydantic-ai agent."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from frontdesk import errors
from frontdesk.agents.pydantic_ai import failures, options, targets
from frontdesk.agents.pydantic_ai.models import Models
from frontdesk.agents.pydantic_ai.relay import Relay
from frontdesk.agents.pydantic_ai.runs import Run
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)


class Driver:
    """Runs each turn from its transcript; nothing is kept from one turn to the next."""

    Options = options.Options
    abilities = Abilities(steers=True, models=True, counts=True)

    def __init__(self, options: options.Options) -> None:
        self._options = options.checked()
        self._agent = targets.find_agent(options)
        self._models = Models(options)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        """The events of the turn. Closing the iterator cancels the run with its tools and requests."""
        relay = Relay()
        async with aclosing(relay.run(self._work(turn, line, relay))) as happening:
            async for event in happening:
                yield event

    async def check(self, working_dir: str) -> None:  # noqa: ARG002 - it has none
        """Make the model, with its package and its key."""
        try:
            self._models.of_turn(None)
        except ImportError as error:
            provider = (self._options.model or "").partition(":")[0]
            part = f"The model {self._options.model}"
            raise errors.MissingProvider(part=part, package=provider, extra=provider) from error
        except UserError as error:
            raise errors.AgentFailed(why=str(error)) from error

    async def release(self, session_id: str) -> None:
        """Nothing is held for a session."""

    async def close(self) -> None:
        """Nothing is held at all."""

    async def _work(self, turn: events.Assignment, line: Line, relay: Relay) -> None:
        try:
            await Run(self._agent, turn, line, relay).go(self._options.stream, **self._settings(turn))
        except failures.FOREIGN as error:
            await relay.put(failures.of(error))
        except errors.FrontdeskError as error:
            message = f"The agent failed: {type(error).__name__}"
            await relay.put(events.Failed(message=message, detail=str(error)))
        except Exception as error:  # The agent's tools are anybody's code.
            log.exception("agent_run_failed", turn=turn.turn_id, session=turn.session_id)
            await relay.put(events.Failed(message=f"The agent failed: {type(error).__name__}"))

    def _settings(self, turn: events.Assignment) -> dict[str, Any]:
        chosen: Any = {"timeout": self._options.request_seconds} | self._options.settings
        settings: ModelSettings = chosen
        limit, tokens = self._options.max_requests, self._options.max_tokens
        return {
            "model": self._models.of_turn(turn.model),
            "model_settings": settings,
            "usage_limits": UsageLimits(request_limit=limit, total_tokens_limit=tokens),
        }
