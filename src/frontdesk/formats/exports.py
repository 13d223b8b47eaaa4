"""A session as text to keep: JSON lines, or Markdown to read."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk.model import calls, messages
from frontdesk.model.messages import Plain, Role


class Format(StrEnum):
    JSONL = "jsonl"
    MARKDOWN = "markdown"


def begin(form: Format, session: Mapping[str, Any]) -> Iterator[str]:
    """What stands before the messages."""
    if form is Format.JSONL:
        yield _line({"session": session})
        return
    yield f"# {session.get('title') or 'Conversation'}\n\n"
    yield f"Session {session['id']}, {session['where']}, begun {session['created_at']}\n"


def written(form: Format, message: Plain) -> str:
    """A message; nothing where people read, and it is none for them."""
    if form is Format.JSONL:
        return _line(message)
    return f"\n{_block(message)}\n" if message.get("role") != Role.SESSION_META else ""


def _line(record: Mapping[str, Any]) -> str:
    return f"{msgspec.json.encode(record).decode()}\n"


def _block(message: Plain) -> str:
    text = messages.text_of(message)
    lines = [f"**{message['role']}:** {text}".rstrip()]
    lines += [f"`{call.name}` {call.arguments}" for call in calls.calls_of(message)]
    return "\n\n".join(lines)
