"""A session as text to keep: JSON lines, or Markdown to read."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk.model import calls, messages
from frontdesk.model.messages import Plain, Role


class Format(StrEnum):
    JSONL = "jsonl"
    MARKDOWN = "markdown"


def export(form: Format, session: Mapping[str, Any], transcript: Sequence[Plain]) -> Iterator[str]:
    """The session and its messages, piece by piece."""
    if form is Format.MARKDOWN:
        return _as_markdown(session, transcript)
    return (f"{msgspec.json.encode(each).decode()}\n" for each in ({"session": session}, *transcript))


def _as_markdown(session: Mapping[str, Any], transcript: Sequence[Plain]) -> Iterator[str]:
    yield f"# {session.get('title') or 'Conversation'}\n\n"
    yield f"Session {session['id']}, {session['where']}, begun {session['created_at']}\n"
    for message in transcript:
        if message.get("role") != Role.SESSION_META:
            yield f"\n{_block(message)}\n"


def _block(message: Plain) -> str:
    text = messages.text_of(message)
    lines = [f"**{message['role']}:** {text}".rstrip()]
    lines += [f"`{call.name}` {call.arguments}" for call in calls.calls_of(message)]
    return "\n\n".join(lines)
