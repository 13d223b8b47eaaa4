"""A pydantic-ai agent with a tool, on the library's own test model."""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel())


@agent.tool_plain
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"
