"""Transcripts as chat-completions endpoints take them, and their answers as they are stored."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frontdesk.formats import completions
from frontdesk.model import events, messages
from frontdesk.model.messages import Plain, Role

FIELDS: Mapping[str, tuple[str, ...]] = {
    Role.SYSTEM: ("role", "content", "name"),
    Role.USER: ("role", "content", "name"),
    Role.ASSISTANT: ("role", "content", "name", "tool_calls"),
    Role.TOOL: ("role", "content", "tool_call_id"),
}
"""What an endpoint takes of each kind of message; session_meta rows are none of its business."""


def to_wire(
    transcript: Sequence[Plain], system: str = "", reasoning_fields: Iterable[str] = ()
) -> list[Plain]:
    """The conversation as a request holds it: ``system`` first, each tool call followed by its one result."""
    rows = [row for row in transcript if row.get("role") in FIELDS]
    allowed = tuple(reasoning_fields)
    wired = (_wire(row, allowed) for row in _without_orphans(messages.conversation(rows)))
    head = [{"role": "system", "content": system}] if system else []
    return head + [message for message in wired if message is not None]


def assistant(answer: completions.AnswerBuilder, calls: Sequence[events.Call]) -> Plain:
    """The assistant's message that was streamed, as it is stored."""
    message: Plain = {"role": "assistant", "content": answer.text if answer.text or not calls else None}
    if calls:
        message["tool_calls"] = [call.plain for call in calls]
    return message | answer.fields


def result(outcome: events.Result) -> Plain:
    """A tool's result, as it is stored."""
    return {"role": "tool", "tool_call_id": outcome.id, "content": outcome.content}


def _without_orphans(rows: Iterable[Plain]) -> Iterable[Plain]:
    """Without results whose calls are gone, which an endpoint would refuse."""
    called: set[str] = set()
    for row in rows:
        called.update(str(call.get("id")) for call in row.get("tool_calls") or ())
        if row["role"] != Role.TOOL or str(row.get("tool_call_id")) in called:
            yield row


def _wire(row: Plain, allowed: tuple[str, ...]) -> Plain | None:
    """The message, or None when nothing is left of it to be sent."""
    message = _kept(messages.as_heard(row), allowed)
    if message.get("tool_calls") or message.get("content") is not None:
        return message
    return message | {"content": ""} if any(name in message for name in allowed) else None


def _kept(row: Mapping[str, Any], allowed: tuple[str, ...]) -> Plain:
    names = FIELDS[row["role"]] + (allowed if row["role"] == Role.ASSISTANT else ())
    message = {name: row[name] for name in names if name in row}
    if not message.get("tool_calls"):
        message.pop("tool_calls", None)
        return message
    return message | {
        "content": message.get("content"),
        "tool_calls": [_call(call) for call in message["tool_calls"]],
    }


def _call(call: Mapping[str, Any]) -> Plain:
    function = call.get("function") or {}
    return events.Call(
        id=str(call.get("id")),
        name=str(function.get("name")),
        arguments=str(function.get("arguments") or "{}"),
    ).plain
