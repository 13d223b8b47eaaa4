"""Any endpoint that speaks chat completions: answers are streamed, tools are those of a configured module."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import httpx

from frontdesk import errors
from frontdesk.agents import chat, models
from frontdesk.agents.openai import tools, transcripts
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.contracts.secrets import Secret
from frontdesk.formats import completions
from frontdesk.model import events, messages
from frontdesk.model.messages import Plain

HEADER_NAME = re.compile(r"[\w.!#$%&'*+^`|~-]+", re.ASCII)
ADDRESS = "an http:// or https:// address, without a name or password"
OURS = frozenset({"messages", "model", "stream", "stream_options", "tools", "n"})
"""What ``extra`` may not set."""


class OpenAIOptions(chat.Bounds, frozen=True, kw_only=True):
    base_url: str = "https://api.openai.com/v1"
    model: str
    api_key: Secret | None = None
    extra: Mapping[str, Any] = {}
    """Further fields of each request: temperature, max_tokens, …"""
    headers: Mapping[str, str] = {}
    """Further headers of each request. Like the key they go to ``base_url`` only."""
    reasoning_fields: tuple[str, ...] = ()
    """Which of the assistant's reasoning fields the endpoint wants back."""
    include_usage: bool = True
    images: bool = True
    """Whether the model is shown images of messages. One that cannot look at them fails the turn."""
    tools: str | None = None
    """``package.module:NAME`` of a mapping: name to (schema, async function)."""
    max_rounds: int = 20
    """How often the model may be asked in one turn; each round of tools takes one."""
    tool_seconds: float = 120.0


class Driver:
    Options = OpenAIOptions

    def __init__(self, options: OpenAIOptions) -> None:
        _check(options)
        self._options = options
        found = tools.load(options.tools) if options.tools else {}
        self._tools = tools.Toolbox(found, options.tool_seconds)
        self._client = chat.ChatClient(options, trust_env=True)

    @property
    def abilities(self) -> Abilities:
        return Abilities(models=True, images=self._options.images, counts=self._options.include_usage)

    async def run(
        self,
        turn: events.Assignment,
        line: Line,  # noqa: ARG002 - it is closed instead
    ) -> AsyncGenerator[events.Event]:
        try:
            async with aclosing(self._rounds(turn)) as happening:
                async for event in happening:
                    yield event
        except (errors.AgentFailed, errors.MissingSecret) as error:
            yield chat.failed_of(error, retryable=isinstance(error, errors.EndpointUnavailable))

    async def check(self, working_dir: str) -> str | None:  # noqa: ARG002 - it has none
        """Ask the endpoint for its models."""
        options = self._options
        token = options.api_key().strip() if options.api_key else None
        found = await models.list_models(options.base_url, token, options.headers)
        return models.doubt(options.model, found) if found else None

    async def release(self, session_id: str) -> None:
        """Nothing is held for a session."""

    async def close(self) -> None:
        await self._client.close()

    async def _rounds(self, turn: events.Assignment) -> AsyncGenerator[events.Event]:
        conversation = transcripts.to_wire(turn.messages, turn.system, self._options.reasoning_fields)
        for _ in range(self._options.max_rounds):
            request = self._request(turn, conversation)
            answer = completions.AnswerBuilder(request.endpoint)
            try:
                async with aclosing(self._client.answer(request)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            yield events.Text(text=piece)
                        else:
                            answer = piece
            except errors.EndpointRefused:
                # A model that cannot look at images would refuse all that follows in the conversation.
                told = messages.without_images(conversation)
                if told is None:
                    raise
                conversation = told
                continue
            if answer.usage is not None:
                yield events.Used(usage=answer.usage)
            if answer.fields:
                yield events.Details(fields=answer.fields)
            calls = answer.calls()
            if not calls:
                yield events.Done(finish_reason=answer.finish_reason)
                return
            yield events.Calls(calls=calls)
            rows = [transcripts.assistant(answer, calls)]
            for call in calls:
                outcome = await self._tools.run(call)
                yield outcome
                rows.append(transcripts.result(outcome))
            conversation += transcripts.to_wire(rows, "", self._options.reasoning_fields)
        why = f"it still called tools after {self._options.max_rounds} rounds (max_rounds)"
        yield events.Failed(message=f"the agent was stopped: {why}")

    def _request(self, turn: events.Assignment, conversation: list[Plain]) -> chat.ChatRequest:
        chosen = turn.model or {}
        base_url = chosen.get("base_url") or self._options.base_url
        if not _is_address(base_url):
            raise errors.EndpointRefused(endpoint=chat.label(base_url), why=f"base_url must be {ADDRESS}")
        # The configured credentials belong there alone.
        home = chat.origin(base_url) == chat.origin(self._options.base_url)
        key = self._options.api_key if home else None
        model = chosen.get("model") or self._options.model
        body: Plain = {**self._options.extra, "model": model, "messages": conversation, "stream": True}
        if self._options.include_usage:
            body["stream_options"] = {"include_usage": True}
        if schemas := self._tools.schemas:
            body["tools"] = schemas
        return chat.ChatRequest(
            base_url=base_url,
            body=body,
            token=key().strip() if key else None,
            headers=self._options.headers if home else {},
        )


def _is_address(base_url: str) -> bool:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.userinfo


def _check(options: OpenAIOptions) -> None:
    if not _is_address(options.base_url):
        shown = chat.label(options.base_url)  # without a password
        raise errors.InvalidSetting(key="base_url", value=shown, allowed=ADDRESS)
    for name, value in options.headers.items():
        if not HEADER_NAME.fullmatch(name) or not (value.isascii() and value.isprintable()):
            raise errors.InvalidSetting(key="headers", value=name, allowed="names and values of plain ASCII")
    if taken := OURS & set(options.extra):
        raise errors.InvalidSetting(key="extra", value=sorted(taken), allowed="other fields than these")
    if options.max_rounds < 1:
        raise errors.InvalidSetting(key="max_rounds", value=options.max_rounds, allowed="1 or more")
