"""Whole conversations: chat-completions messages and pydantic-ai's, there and back without loss.

One of our messages is one of theirs. What theirs has no place for (the platform's ids, fields of other
agents) travels in its metadata, which no model sees, so that `to_plain(to_model(messages)) == messages`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    is_multi_modal_content,
)

from frontdesk.agents.pydantic_ai import parts
from frontdesk.model.messages import INTERRUPTED, Plain, Role, as_heard, text_of

KEPT = "frontdesk"
"""Where a message's metadata holds what the message itself cannot: fields to set, and fields not to have."""

SOME_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a message that does not say it."""

FINISHED: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_call",
    "error": "error",
}
REASONS = {theirs: ours for ours, theirs in FINISHED.items()}
THOUGHT = "reasoning.text"
THOUGHT_TEXTS = ("id", "signature", "provider_name")
THOUGHT_FIELDS = frozenset({"type", "text", "provider_details", *THOUGHT_TEXTS})

Names = dict[str, str]
"""The names of the tools called so far, by the id of the call."""


def to_model(messages: Iterable[Mapping[str, Any]]) -> list[ModelMessage]:
    """The conversation as pydantic-ai takes it. Rows that are no messages (session_meta) are left out."""
    names: Names = {}
    return [found for message in messages if (found := _read(message, names)) is not None]


def to_plain(messages: Iterable[ModelMessage]) -> list[Plain]:
    """The conversation in the chat-completions form."""
    return [plain for message in messages for plain in _write(message)]


def _read(message: Mapping[str, Any], names: Names) -> ModelMessage | None:
    if message.get("role") not in list(_READERS):
        return None
    heard = as_heard(message)
    at = _time(heard)
    part = _READERS[heard["role"]](heard, names, at or SOME_TIME)
    found = part if isinstance(part, ModelResponse) else ModelRequest(parts=[part], timestamp=at)
    kept = _difference(message, _write(found)[0])
    found.metadata = {KEPT: kept} if kept else None
    return found


def _read_system(message: Mapping[str, Any], _names: Names, at: datetime) -> ModelRequestPart:
    return SystemPromptPart(text_of(message), timestamp=at)


def _read_user(message: Mapping[str, Any], _names: Names, at: datetime) -> ModelRequestPart:
    return UserPromptPart(_shown(message), timestamp=at)


def _shown(message: Mapping[str, Any]) -> str | list[parts.Shown]:
    content = message.get("content")
    return parts.read_all(content) if isinstance(content, list) else text_of(message)


def _read_tool(message: Mapping[str, Any], names: Names, at: datetime) -> ModelRequestPart:
    """The result of a call; one whose call is unknown would be refused by every model, so it is told."""
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or call_id not in names:
        return UserPromptPart(f"[result of a tool] {text_of(message)}", timestamp=at)
    name = message.get("tool_name")
    failed = message.get("is_error") is True
    interrupted = message.get("content") == INTERRUPTED
    return ToolReturnPart(
        tool_name=name if isinstance(name, str) and name else names[call_id],
        content=_shown(message),
        tool_call_id=call_id,
        timestamp=at,
        outcome="interrupted" if interrupted else "failed" if failed else "success",
    )


def _read_assistant(message: Mapping[str, Any], names: Names, at: datetime) -> ModelResponse:
    calls = _calls(message.get("tool_calls"))
    names.update({call.tool_call_id: call.tool_name for call in calls})
    finished = message.get("finish_reason")
    return ModelResponse(
        parts=[*_thoughts(message.get("reasoning_details")), *_texts(message), *calls],
        timestamp=at,
        finish_reason=FINISHED.get(finished) if isinstance(finished, str) else None,
    )


_READERS = {
    str(Role.SYSTEM): _read_system,
    str(Role.USER): _read_user,
    str(Role.TOOL): _read_tool,
    str(Role.ASSISTANT): _read_assistant,
}


def _texts(message: Mapping[str, Any]) -> list[TextPart]:
    content = message.get("content")
    if not isinstance(content, list):
        return [TextPart(content)] if isinstance(content, str) and content else []
    return [TextPart(shown) for shown in parts.read_all(content) if isinstance(shown, str)]


def _calls(calls: object) -> list[ToolCallPart]:
    """The calls that can be made sense of."""
    found = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, Mapping) else None
        texts = (function.get("name"), function.get("arguments"), call.get("id")) if function else ()
        if texts and all(isinstance(text, str) for text in texts):
            found.append(ToolCallPart(*texts))
    return found


def _thoughts(details: object) -> list[ThinkingPart]:
    """The thoughts, when all of them are in the form that `write_thoughts` gives."""
    if not isinstance(details, list) or not all(map(_is_thought, details)):
        return []
    return [
        ThinkingPart(detail["text"], **{name: detail.get(name) for name in THOUGHT_FIELDS - {"type", "text"}})
        for detail in details
    ]


def _is_thought(detail: object) -> bool:
    if not isinstance(detail, dict) or detail.get("type") != THOUGHT or not detail.keys() <= THOUGHT_FIELDS:
        return False
    texts = (detail.get("text"), *(detail[name] for name in THOUGHT_TEXTS if name in detail))
    return all(isinstance(text, str) for text in texts) and isinstance(
        detail.get("provider_details", {}), dict
    )


def write_thoughts(thoughts: Iterable[ThinkingPart]) -> list[Plain]:
    """Thoughts as ``reasoning_details``, signatures included: some models want them back as they were."""
    written = []
    for part in thoughts:
        fields = {name: getattr(part, name) for name in (*THOUGHT_TEXTS, "provider_details")}
        known = {name: value for name, value in fields.items() if value is not None}
        written.append({"type": THOUGHT, "text": part.content} | known)
    return written


def _write(message: ModelMessage) -> list[Plain]:
    if isinstance(message, ModelResponse):
        written = [_write_response(message)]
    else:
        written = [plain for part in message.parts if (plain := _write_part(part))]
    at = None if message.timestamp == SOME_TIME else message.timestamp
    if at is not None:
        written = [plain | {"timestamp": at.isoformat()} for plain in written]
    kept = (message.metadata or {}).get(KEPT)
    return [_restored(plain, kept) for plain in written] if kept else written


def _write_response(message: ModelResponse) -> Plain:
    texts = [part.content for part in message.parts if isinstance(part, TextPart)]
    calls = [write_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
    thoughts = write_thoughts(part for part in message.parts if isinstance(part, ThinkingPart))
    several = len(texts) > 1 or texts == [""]
    plain: Plain = {
        "role": "assistant",
        "content": parts.write_all(texts) if several else "".join(texts) or None,
    }
    plain |= {"tool_calls": calls} if calls else {}
    plain |= {"reasoning_details": thoughts} if thoughts else {}
    return plain | ({"finish_reason": REASONS[message.finish_reason]} if message.finish_reason else {})


def write_call(part: ToolCallPart) -> Plain:
    arguments = part.args if isinstance(part.args, str) else part.args_as_json_str()
    function = {"name": part.tool_name, "arguments": arguments}
    return {"id": part.tool_call_id, "type": "function", "function": function}


def _write_part(part: ModelRequestPart) -> Plain | None:
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, UserPromptPart):
        content = part.content if isinstance(part.content, str) else parts.write_all(part.content)
        return {"role": "user", "content": content}
    if isinstance(part, RetryFeedbackPart):
        return {"role": "user", "content": part.model_response()}
    return _write_return(part) if isinstance(part, ToolReturnPart) else None


def _write_return(part: ToolReturnPart) -> Plain:
    plain: Plain = {"role": "tool", "tool_call_id": part.tool_call_id, "tool_name": part.tool_name}
    error = {"is_error": True} if is_error(part) else {}
    return plain | {"content": write_result(part)} | error


def is_error(part: ToolReturnPart) -> bool:
    """Whether the call did not do what it was to do. An interrupted one says so in its content."""
    return part.outcome not in ("success", "interrupted")


def write_result(part: ToolReturnPart) -> str | list[Plain]:
    """What a tool gave back: text, a list of parts, or the JSON text of anything else."""
    content: Any = part.content
    if isinstance(content, str):
        return content
    if is_multi_modal_content(content):
        return parts.write_all([content])
    if _is_shown(content):
        return parts.write_all(content)
    return part.model_response_str(wrap_if_error=False)


def _is_shown(content: object) -> bool:
    if not isinstance(content, Sequence):
        return False
    return all(isinstance(item, str) or is_multi_modal_content(item) for item in content)


def _difference(message: Mapping[str, Any], written: Plain) -> Plain:
    """What turns the written message into the real one."""
    missing = object()
    fields = {name: value for name, value in message.items() if not _same(written.get(name, missing), value)}
    extra = [name for name in written if name not in message]
    return ({"set": fields} if fields else {}) | ({"unset": extra} if extra else {})


def _same(one: object, other: object) -> bool:
    """Equal, and of the same kind all through: 1, 1.0 and true are three things in JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


def _restored(plain: Plain, kept: Mapping[str, Any]) -> Plain:
    unset, fields = kept.get("unset", ()), kept.get("set", {})
    return {name: value for name, value in (plain | fields).items() if name not in unset}


def _time(message: Mapping[str, Any]) -> datetime | None:
    """The message's time, when it is written as we write it."""
    text = message.get("timestamp")
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found and found.tzinfo and found != SOME_TIME else None
