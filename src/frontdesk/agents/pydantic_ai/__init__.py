"""Any agent built with pydantic-ai: every model provider it knows, tools, MCP servers, approvals."""

import importlib
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec
from pydantic_ai import Agent, exceptions, models, providers
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UserError
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from frontdesk import errors
from frontdesk.agents.pydantic_ai.runs import AnyAgent, Relay, Run
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.contracts.secrets import Secret
from frontdesk.logs import get_logger
from frontdesk.model import events, messages

log = get_logger(__name__)

MAX_MODELS = 16
NO_KEY = "none"
"""Sent in place of a key to an address that the operator did not configure."""
MAX_CHARACTERS = 500
TOO_MANY_REQUESTS, REQUEST_TIMEOUT, SERVER_ERRORS = 429, 408, 500
RETRYABLE = (
    exceptions.ModelRateLimitError,
    exceptions.ModelUnavailableError,
    exceptions.ModelServerError,
    exceptions.ModelConnectionError,
)
UNLOOKED_AT = (400, 404, 415, 422)
"""What endpoints say to images that their model cannot look at, among other things."""
FOREIGN = (exceptions.AgentRunError, exceptions.UserError)


class PydanticOptions(msgspec.Struct, frozen=True, kw_only=True):
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
    images: bool = True
    """Whether the model is shown images of messages. One that cannot look at them fails the turn."""
    request_seconds: float = 300.0
    max_requests: int = 50
    """The most requests to the model in a turn."""
    max_tokens: int | None = None
    """The most tokens in a turn, in and out."""

    def checked(self) -> "PydanticOptions":
        """Itself, when an agent can be made of it."""
        if self.target is None and self.model is None:
            raise errors.InvalidInput(what="A pydantic_ai agent without target and model", why="name one")
        if self.target is not None and not all(self.target.partition(":")):
            raise errors.InvalidInput(what=f"target {self.target!r}", why="write package.module:name")
        if self.max_requests < 1 or self.request_seconds <= 0:
            raise errors.InvalidInput(what="max_requests or request_seconds", why="use more than 0")
        return self


Options = PydanticOptions


class Driver:
    """Runs each turn from its transcript; nothing is kept from one turn to the next."""

    Options = PydanticOptions

    def __init__(self, options: PydanticOptions) -> None:
        self._options = options.checked()
        self._agent = find_agent(options)
        # The latest are kept, since each has connections of its own.
        self._made = lru_cache(MAX_MODELS)(make)

    @property
    def abilities(self) -> Abilities:
        return Abilities(steers=True, models=True, images=self._options.images, counts=True)

    def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        """The events of the turn. Closing the iterator cancels the run with its tools and requests."""
        return Relay().run(partial(self._work, turn, line))

    async def check(self, working_dir: str) -> None:  # noqa: ARG002 - it has none
        """Make the model, with its package and its key."""
        try:
            self._model(None)
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

    def _model(self, override: Mapping[str, str] | None) -> models.Model | None:
        """The model to run with; None for the agent's own."""
        choice = choose(self._options, override or {})
        return self._made(choice) if choice else None

    async def _go(self, turn: events.Assignment, line: Line, relay: Relay) -> None:
        chosen: Any = {"timeout": self._options.request_seconds} | self._options.settings
        settings: ModelSettings = chosen
        limit, tokens = self._options.max_requests, self._options.max_tokens
        await Run(self._agent, turn, line, relay).go(
            self._options.stream,
            model=self._model(turn.model),
            model_settings=settings,
            usage_limits=UsageLimits(request_limit=limit, total_tokens_limit=tokens),
        )

    async def _work(self, turn: events.Assignment, line: Line, relay: Relay) -> None:
        try:
            try:
                await self._go(turn, line, relay)
            except exceptions.ModelHTTPError as error:
                # A model that cannot look at images would refuse all that follows in the conversation.
                told = messages.without_images(turn.messages)
                if error.status_code not in UNLOOKED_AT or told is None or not relay.is_silent:
                    raise
                (asked,) = messages.without_images([turn.input]) or [turn.input]
                await self._go(msgspec.structs.replace(turn, messages=told, input=asked), line, relay)
        except FOREIGN as error:
            await relay.put(failure_of(error))
        except errors.FrontdeskError as error:
            message = f"The agent failed: {type(error).__name__}"
            await relay.put(events.Failed(message=message, detail=str(error)))
        except Exception as error:  # The agent's tools are anybody's code.
            log.exception("agent_run_failed", turn=turn.turn_id, session=turn.session_id)
            await relay.put(events.Failed(message=f"The agent failed: {type(error).__name__}"))


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A model with all that is needed to reach it."""

    name: str
    base_url: str | None = None
    api_key: str | None = None


def choose(options: PydanticOptions, override: Mapping[str, str]) -> ModelChoice | None:
    """What to run with. The configured key goes to the configured provider and address alone."""
    configured, _, _ = (options.model or "").rpartition(":")
    wanted = override.get("model") or options.model
    if not wanted or (not override and not options.model):
        return None
    given, _, model = wanted.rpartition(":") if not override.get("provider") else ("", "", wanted)
    provider = override.get("provider") or given or configured
    base_url = override.get("base_url") or (options.base_url if provider == configured else None)
    return ModelChoice(
        name=f"{provider}:{model}" if provider else model,
        base_url=base_url,
        api_key=_key(options, provider == configured and base_url == options.base_url, base_url),
    )


def _key(options: PydanticOptions, as_configured: bool, base_url: str | None) -> str | None:
    if as_configured:
        return options.api_key() if options.api_key else None
    return NO_KEY if base_url else None


def make(choice: ModelChoice) -> models.Model:
    given = {"base_url": choice.base_url, "api_key": choice.api_key}
    known = {name: value for name, value in given.items() if value is not None}
    return models.infer_model(choice.name, _factory(known)) if known else models.infer_model(choice.name)


def _factory(known: dict[str, Any]) -> Callable[[str], providers.Provider[Any]]:
    def provider(name: str) -> providers.Provider[Any]:
        try:
            return providers.infer_provider_class(name)(**known)
        except TypeError:
            raise UserError(f"The provider {name!r} takes no {' or '.join(sorted(known))}") from None

    return provider


def find_agent(options: PydanticOptions) -> AnyAgent:
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


def failure_of(error: exceptions.AgentRunError | exceptions.UserError) -> events.Failed:
    """The failure. What a provider wrote in its answer stays out of it: it may name keys and accounts."""
    if isinstance(error, exceptions.ModelAPIError):
        message = _refusal(error)
        detail = f"{message}, model {error.model_name!r}"[:MAX_CHARACTERS]
        return events.Failed(message=message, retryable=_is_passing(error), detail=detail)
    name = type(error).__name__
    detail = f"{name}: {error.message}"[:MAX_CHARACTERS]
    return events.Failed(message=f"The agent failed: {name}", detail=detail)


def _refusal(error: exceptions.ModelAPIError) -> str:
    if isinstance(error, exceptions.ModelHTTPError) and error.status_code == TOO_MANY_REQUESTS:
        return "the model takes no more requests for now; try again later (status 429)"
    status = f", status {error.status_code}" if isinstance(error, exceptions.ModelHTTPError) else ""
    return f"The model failed: {type(error).__name__}{status}"


def _is_passing(error: exceptions.ModelAPIError) -> bool:
    if isinstance(error, exceptions.ModelQuotaExceededError):
        return False
    if isinstance(error, RETRYABLE):
        return True
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else 0
    return status in (TOO_MANY_REQUESTS, REQUEST_TIMEOUT) or status >= SERVER_ERRORS
