"""The chunks of a streamed chat completion, put together to the message that they are pieces of."""

import uuid
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model import events
from frontdesk.model.messages import Plain
from frontdesk.model.sessions import MAX_COUNT, Usage

MAX_CALLS = 128
END = "[DONE]"
REASONING_TEXTS = ("reasoning_content", "reasoning")


class FunctionPiece(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class CallPiece(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[CallPiece] | None = None


class ChunkChoice(msgspec.Struct, frozen=True):
    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class Counts(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None

    @property
    def usage(self) -> Usage:
        """The whole prompt counts as input; what of it came from the cache is counted beside it, too."""
        details = self.prompt_tokens_details or PromptDetails()
        return Usage(
            input_tokens=_count(self.prompt_tokens),
            output_tokens=_count(self.completion_tokens),
            cache_read_tokens=_count(details.cached_tokens),
            last_prompt_tokens=_count(self.prompt_tokens),
        )


class Chunk(msgspec.Struct, frozen=True):
    choices: list[ChunkChoice] | None = None
    usage: Counts | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(Chunk)


def read_chunk(data: str, endpoint: str) -> Chunk:
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise errors.BrokenStream(endpoint=endpoint, why=f"a chunk is none ({error})") from error


class AnswerBuilder:
    """An assistant's message in the making."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._texts: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[Any] = []
        self._calls: list[_Call] = []
        self._places: dict[int, int] = {}
        self.usage: Usage | None = None
        self.finish_reason: str | None = None

    def add(self, chunk: Chunk) -> str:
        """Take a chunk; the text that it brought."""
        if chunk.usage is not None:
            self.usage = chunk.usage.usage
        choice = next((choice for choice in chunk.choices or () if choice.index == 0), None)
        if choice is None:
            return ""
        self.finish_reason = choice.finish_reason or self.finish_reason
        return self._take(choice.delta or Delta())

    def _take(self, delta: Delta) -> str:
        self._reason(delta)
        for piece in delta.tool_calls or ():
            self._assemble(piece)
        text = (delta.content or "") + (delta.refusal or "")
        if text:
            self._texts.append(text)
        return text

    def _reason(self, delta: Delta) -> None:
        for name in REASONING_TEXTS:
            if text := getattr(delta, name):
                self._reasoning.setdefault(name, []).append(text)
        self._details += delta.reasoning_details or ()

    def _assemble(self, piece: CallPiece) -> None:
        call = self._call_of(piece)
        function = piece.function or FunctionPiece()
        call.id = call.id or piece.id or ""
        call.name = call.name or function.name or ""
        call.arguments.append(function.arguments or "")

    def _call_of(self, piece: CallPiece) -> "_Call":
        """The call a piece belongs to: by its index; another id begins another call."""
        last = len(self._calls) - 1
        index = piece.index if piece.index is not None else (last + 1 if piece.id else max(last, 0))
        place = self._places.get(index)
        if place is not None and piece.id in (None, "", self._calls[place].id):
            return self._calls[place]
        if len(self._calls) == MAX_CALLS:
            raise errors.BrokenStream(endpoint=self._endpoint, why=f"it calls more than {MAX_CALLS} tools")
        self._places[index] = len(self._calls)
        self._calls.append(_Call())
        return self._calls[-1]

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def fields(self) -> Plain:
        """The message's further fields: its reasoning."""
        texts: Plain = {name: "".join(pieces) for name, pieces in self._reasoning.items()}
        return texts | ({"reasoning_details": self._details} if self._details else {})

    def calls(self) -> tuple[events.Call, ...]:
        """The tools called, each under an id of its own, given where the endpoint gave none."""
        found: dict[str, events.Call] = {}
        for call in self._calls:
            if not call.name:
                raise errors.BrokenStream(endpoint=self._endpoint, why="a tool call names no tool")
            call_id = call.id if call.id and call.id not in found else f"call_{uuid.uuid4().hex}"
            arguments = "".join(call.arguments) or "{}"
            found[call_id] = events.Call(id=call_id, name=call.name, arguments=arguments)
        return tuple(found.values())


class _Call(msgspec.Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = []


def _count(number: int | None) -> int:
    return min(max(number or 0, 0), MAX_COUNT)
