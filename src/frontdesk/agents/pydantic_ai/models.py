"""The model of a turn: the configured one, or what the session chose instead."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from pydantic_ai import models, providers
from pydantic_ai.exceptions import UserError

from frontdesk.agents.pydantic_ai.options import Options

MAX_MODELS = 16
NO_KEY = "none"
"""Sent in place of a key to an address that the operator did not configure."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A model with all that is needed to reach it."""

    name: str
    base_url: str | None = None
    api_key: str | None = None


class Models:
    """Makes models and keeps the latest, since each has connections of its own."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._made: dict[Choice, models.Model] = {}

    def of_turn(self, override: Mapping[str, str] | None) -> models.Model | None:
        """The model to run with; None for the agent's own."""
        choice = choose(self._options, override or {})
        return self._model(choice) if choice else None

    def _model(self, choice: Choice) -> models.Model:
        model = self._made.pop(choice, None) or make(choice)
        self._made[choice] = model
        if len(self._made) > MAX_MODELS:
            del self._made[next(iter(self._made))]
        return model


def choose(options: Options, override: Mapping[str, str]) -> Choice | None:
    """What to run with. The configured key goes to the configured provider and address alone."""
    configured, _, _ = (options.model or "").rpartition(":")
    wanted = override.get("model") or options.model
    if not wanted or (not override and not options.model):
        return None
    given, _, model = wanted.rpartition(":") if not override.get("provider") else ("", "", wanted)
    provider = override.get("provider") or given or configured
    base_url = override.get("base_url") or (options.base_url if provider == configured else None)
    return Choice(
        name=f"{provider}:{model}" if provider else model,
        base_url=base_url,
        api_key=_key(options, provider == configured and base_url == options.base_url, base_url),
    )


def _key(options: Options, as_configured: bool, base_url: str | None) -> str | None:
    if as_configured:
        return options.api_key() if options.api_key else None
    return NO_KEY if base_url else None


def make(choice: Choice) -> models.Model:
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
