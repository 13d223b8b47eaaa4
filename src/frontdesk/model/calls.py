"""Tool calls and their results, read from plain messages, whatever these hold."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from frontdesk.model.events import Call
from frontdesk.model.messages import Role


def calls_of(message: Mapping[str, Any]) -> Iterator[Call]:
    """The calls of an assistant's message, in order; what is none is passed over."""
    calls = message.get("tool_calls") if message.get("role") == Role.ASSISTANT else None
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            arguments = _as_text(function.get("arguments"))
            yield Call(id=str(call.get("id") or ""), name=function["name"], arguments=arguments)


def _as_text(arguments: object) -> str:
    """The arguments as JSON text, when somebody has decoded them already."""
    if arguments is None or isinstance(arguments, str):
        return arguments or "{}"
    try:
        return msgspec.json.encode(arguments, order="sorted").decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return repr(type(arguments))


def is_result(message: Mapping[str, Any]) -> bool:
    return message.get("role") == Role.TOOL


def is_failed(message: Mapping[str, Any]) -> bool:
    """Whether a tool's result is an error. Only its own flag says so: its text may be about errors."""
    return message.get("is_error") is True


def tool_of(message: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    """The name of the tool that gave a result; ``names`` holds those of the calls, by id."""
    named = message.get("tool_name") or message.get("name") or names.get(str(message.get("tool_call_id")))
    return named if isinstance(named, str) else None


def is_request(message: Mapping[str, Any]) -> bool:
    """Whether it begins a turn: a person said it to the agent."""
    return message.get("role") == Role.USER and message.get("observed") is not True
