"""A turn in the form of the responses API: the response as it stands, and the events of its stream."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from frontdesk.channels.api_server import outbound
from frontdesk.channels.api_server.shapes import CachedTokens
from frontdesk.model import deliveries, events, turns

PREFIX = "resp_"


class ResponseStatus(StrEnum):
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    """It was stopped after something had been said."""
    CANCELLED = "cancelled"
    """It was stopped before."""
    FAILED = "failed"


class OutputText(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = []
    logprobs: list[Any] = []


class OutputMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent said."""

    type: Literal["message"] = "message"
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"] = "assistant"
    content: list[OutputText]


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """What was said to the agent."""

    type: Literal["message"] = "message"
    id: str
    status: Literal["completed"] = "completed"
    role: Literal["user"] = "user"
    content: list[dict[str, Any]]


class InputItems(msgspec.Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[InputItem]
    first_id: str
    last_id: str
    has_more: Literal[False] = False


class ResponseError(msgspec.Struct, frozen=True, kw_only=True):
    code: Literal["server_error"] = "server_error"
    message: str


class ConversationName(msgspec.Struct, frozen=True, kw_only=True):
    id: str


class ReasoningTokens(msgspec.Struct, frozen=True, kw_only=True):
    reasoning_tokens: int


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class FormatName(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["text"] = "text"


class TextForm(msgspec.Struct, frozen=True, kw_only=True):
    format: FormatName = FormatName()


class ModelResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, as the responses API shows it."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: ResponseStatus
    background: bool = False
    conversation: ConversationName
    error: ResponseError | None = None
    incomplete_details: None = None
    instructions: str | None = None
    max_output_tokens: None = None
    metadata: dict[str, str] = {}
    model: str
    output: list[OutputMessage] = []
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    store: bool = True
    temperature: None = None
    text: TextForm = TextForm()
    tool_choice: Literal["auto"] = "auto"
    tools: list[Any] = []
    top_p: None = None
    truncation: Literal["disabled"] = "disabled"
    usage: TokenUsage | None = None
    """Of what was seen while the client waited; unknown to who comes later."""
    user: str | None = None


def status_of(turn: turns.Turn, said: bool) -> ResponseStatus:
    match turn.state:
        case turns.TurnState.QUEUED | turns.TurnState.JOINED:
            return ResponseStatus.QUEUED
        case turns.TurnState.RUNNING | turns.TurnState.WAITING:
            return ResponseStatus.IN_PROGRESS
        case turns.TurnState.DONE | turns.TurnState.SILENT:
            return ResponseStatus.COMPLETED
        case turns.TurnState.INTERRUPTED:
            return ResponseStatus.INCOMPLETE if said else ResponseStatus.CANCELLED
    return ResponseStatus.FAILED


def input_of(turn: turns.Turn) -> InputItems:
    """The message that a turn answers; what was said before it is its conversation's."""
    parts = turn.content if isinstance(turn.content, list) else [{"type": "text", "text": turn.text}]
    item = InputItem(id=f"msg_in_{turn.id}", content=[_input_part(part) for part in parts])
    return InputItems(data=[item], first_id=item.id, last_id=item.id)


def _input_part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            return {"type": "input_image", "image_url": url, "detail": more.get("detail", "auto")}
        case {"type": "file", "file": dict(file)}:
            return {"type": "input_file", **file}
    return dict(part)


class ResponseForm(outbound.AnswerForm):
    """The response to one request, in its various forms."""

    def __init__(
        self,
        turn_id: str,
        model: str,
        conversation: str,
        created: datetime,
        *,
        instructions: str | None = None,
        noted: Mapping[str, Any],
    ) -> None:
        self.id = f"{PREFIX}{turn_id}"
        self.hint = f"GET /v1/responses/{self.id} gets its answer"
        self._item_id = f"msg_{turn_id}"
        self._head = ModelResponse(
            id=self.id,
            created_at=int(created.timestamp()),
            status=ResponseStatus.IN_PROGRESS,
            conversation=ConversationName(id=conversation),
            instructions=instructions,
            model=model,
            **{name: noted[name] for name in NOTED if name in noted},
        )
        self._used: list[events.Used] = []
        self._sequence = 0
        self._begun = False

    def count(self, used: events.Used) -> None:
        self._used.append(used)

    def standing(self, turn: turns.Turn, found: Sequence[deliveries.Delivery]) -> ModelResponse:
        """The response as far as the store has it."""
        failure = outbound.failure_of(turn, found) if turn.state in turns.FINISHED else None
        return self._ended(turn, "" if failure else outbound.answer_of(found), failure)

    def waiting(self) -> ModelResponse:
        """The response to who does not wait for it."""
        return msgspec.structs.replace(self._head, status=ResponseStatus.QUEUED)

    def whole(self, text: str, turn: turns.Turn) -> ModelResponse:
        return msgspec.structs.replace(self._ended(turn, text, None), usage=self.usage)

    def opening(self) -> bytes:
        return self._state("response.created", self._head) + self._state("response.in_progress", self._head)

    def piece(self, text: str) -> bytes:
        begun = b"" if self._begun else self._begin()
        return begun + self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])

    def ending(self, text: str, turn: turns.Turn) -> bytes:
        whole = self.whole(text, turn)
        closing = self._close(whole.output[0]) if whole.output else b""
        name = "response.completed" if whole.status is ResponseStatus.COMPLETED else "response.incomplete"
        return closing + self._state(name, whole)

    def failing(self, failure: outbound.Failure, turn: turns.Turn | None) -> bytes:
        """The end of a stream that has no answer; clients that only know errors get one, too."""
        said = b""
        if turn is not None and failure.is_outcome:
            said = self._state("response.failed", self._ended(turn, "", failure))
        facts = failure.form.error
        told = {"code": facts.code, "message": facts.message, "param": facts.param, "error": facts}
        return said + self._event("error", **told)

    @property
    def usage(self) -> TokenUsage:
        taken, given, cached = outbound.count_tokens(self._used)
        return TokenUsage(
            input_tokens=taken,
            input_tokens_details=CachedTokens(cached_tokens=cached),
            output_tokens=given,
            output_tokens_details=ReasoningTokens(reasoning_tokens=0),
            total_tokens=taken + given,
        )

    def _ended(self, turn: turns.Turn, text: str, failure: outbound.Failure | None) -> ModelResponse:
        status = status_of(turn, bool(text))
        cut = status is ResponseStatus.INCOMPLETE
        item = OutputMessage(
            id=self._item_id,
            status="incomplete" if cut else "completed",
            content=[OutputText(text=text)],
        )
        told = failure is not None and status is ResponseStatus.FAILED
        return msgspec.structs.replace(
            self._head,
            status=status,
            completed_at=int(turn.finished_at.timestamp()) if turn.finished_at else None,
            output=[item] if text else [],
            error=ResponseError(message=failure.message) if failure and told else None,
        )

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": 0, "content_index": 0}

    def _begin(self) -> bytes:
        self._begun = True
        item = OutputMessage(id=self._item_id, status="in_progress", content=[])
        part = OutputText(text="")
        return self._event("response.output_item.added", output_index=0, item=item) + self._event(
            "response.content_part.added", **self._place, part=part
        )

    def _close(self, item: OutputMessage) -> bytes:
        (part,) = item.content
        done = self._event("response.output_text.done", **self._place, text=part.text, logprobs=[])
        done += self._event("response.content_part.done", **self._place, part=part)
        return done + self._event("response.output_item.done", output_index=0, item=item)

    def _state(self, name: str, response: ModelResponse) -> bytes:
        return self._event(name, response=response)

    def _event(self, name: str, **fields: Any) -> bytes:
        fields = {"type": name, **fields, "sequence_number": self._sequence}
        self._sequence += 1
        return f"event: {name}\n".encode() + outbound.event_of(fields)


NOTED = ("background", "metadata", "previous_response_id", "store", "user")
"""What a request says of itself, and its turn keeps."""


def gone(message: str, param: str | None, code: str = "not_found") -> outbound.Failure:
    """Not there; nor is what is somebody else's."""
    return outbound.Failure(
        status=HTTPStatus.NOT_FOUND, message=message, code=code, type="invalid_request_error", param=param
    )
