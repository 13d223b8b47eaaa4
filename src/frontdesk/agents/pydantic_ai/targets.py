"""The agent that the options name."""

import importlib
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent

from frontdesk import errors
from frontdesk.agents.pydantic_ai.options import Options

AnyAgent = AbstractAgent[Any, Any]


def find_agent(options: Options) -> AnyAgent:
    """The target, imported or made; without one an agent of instructions alone."""
    if options.target is None:
        return Agent(instructions=options.instructions or None)
    found = _load(options.target)
    if not isinstance(found, AbstractAgent) and callable(found):
        found = found()
    if not isinstance(found, AbstractAgent):
        raise errors.AgentFailed(why=f"{options.target} is no pydantic_ai.Agent but {type(found).__name__}")
    return found


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise errors.AgentFailed(why=f"{target} cannot be imported: {error}") from error
