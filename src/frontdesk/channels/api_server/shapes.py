"""What programs send and get besides responses: chat completions, models and errors, as records."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

NAME = r"^[!-~]([ -~]{0,198}[!-~])?$"
"""Spaces around a header are nobody's."""


class ErrorFacts(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str


class ErrorForm(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    error: ErrorFacts


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["frontdesk"] = "frontdesk"


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[ListedModel]


class CompletionMessage(msgspec.Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class CompletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    index: int = 0
    message: CompletionMessage
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class CachedTokens(msgspec.Struct, frozen=True, kw_only=True):
    cached_tokens: int


class CompletionUsage(msgspec.Struct, frozen=True, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage


class AskHeaders(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Headers of a request that says something."""

    x_frontdesk_session: Annotated[str, Meta(pattern=NAME)] | None = None
    idempotency_key: Annotated[str, Meta(pattern=NAME)] | None = None


class ShowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What stands after the question mark of a request for a response."""

    stream: Literal["true", "false"] = "false"
