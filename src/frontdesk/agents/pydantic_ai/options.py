"""What can be set for a pydantic-ai agent."""

from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.secrets import Secret


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of one's own (`target`), or one made of a model and instructions."""

    target: str | None = None
    """``package.module:name`` of a pydantic_ai.Agent, or of a function without arguments that makes one."""
    model: str | None = None
    """``provider:model``, as pydantic-ai names it; stands before the target's own model."""
    instructions: str = ""
    settings: dict[str, Any] = {}
    """Model settings: temperature, max_tokens, thinking and the like."""
    base_url: str | None = None
    api_key: Secret | None = None
    """The key for `model`; without it pydantic-ai looks in the provider's environment variable."""
    stream: bool = True
    """Whether the answer is asked for in pieces. Some models cannot do that."""
    request_seconds: float = 300.0
    max_requests: int = 50
    """The most requests to the model in a turn."""
    max_tokens: int | None = None
    """The most tokens in a turn, in and out."""

    def checked(self) -> "Options":
        """Itself, when an agent can be made of it."""
        if self.target is None and self.model is None:
            raise errors.InvalidInput(what="A pydantic_ai agent without target and model", why="name one")
        if self.target is not None and not all(self.target.partition(":")):
            raise errors.InvalidInput(what=f"target {self.target!r}", why="write package.module:name")
        if self.max_requests < 1 or self.request_seconds <= 0:
            raise errors.InvalidInput(what="max_requests or request_seconds", why="use more than 0")
        return self
