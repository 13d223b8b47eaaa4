"""Transcript messages: plain dicts in the chat-completions form."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk import errors

Plain = dict[str, Any]
INTERRUPTED = "[interrupted: the tool call has no result]"
NO_IMAGE = {"type": "text", "text": "[an image that you cannot be shown]"}
OVERHEARD = "[overheard in the group, not said to you]"


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    SESSION_META = "session_meta"


ROLES = {str(role): role for role in Role}
CONTENT_OPTIONAL = frozenset({Role.ASSISTANT, Role.SESSION_META})


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message ready to be stored: its JSON bytes and what the store looks at."""

    body: bytes
    role: Role
    platform_message_id: str | None = None
    source_key: str | None = None
    """The conversation that the platform id belongs to; None for that of the session it is stored in."""
    calls: tuple[str, ...] = ()
    answers: str | None = None
    closes_calls: bool = False
    """Whether tool calls still open before it can no longer be answered."""
    counts: bool = True
    """Whether it is a message, and no note of the gateway's own."""
    turn_id: str | None = None
    turn_position: int | None = None


def pack(message: Mapping[str, Any], turn_id: str | None = None, turn_position: int | None = None) -> Message:
    """Check a message and make it ready to be stored; refuse what would not come back as it went in."""
    if not isinstance(message, dict | Mapping):
        raise errors.InvalidMessage(why=f"expected an object, got {type(message).__name__}")
    named = message.get("role")
    role = ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        raise errors.InvalidMessage(why=f"role is {named!r}; allowed: {', '.join(Role)}")
    data, counts = dict(message), role is not Role.SESSION_META
    if counts and ("platform_message_id" in data or "message_id" in data):
        _rename_id(data)
    if role not in CONTENT_OPTIONAL and not isinstance(data.get("content"), str | list):
        raise errors.InvalidMessage(why=f"a {role} message needs content: a text or a list of parts")
    answers = data.get("tool_call_id")
    return Message(
        body=_encode(data),
        role=role,
        platform_message_id=data.get("platform_message_id") if counts else None,
        calls=_call_ids(data) if role is Role.ASSISTANT and "tool_calls" in data else (),
        answers=str(answers) if role is Role.TOOL and answers else None,
        closes_calls=role in (Role.USER, Role.ASSISTANT) and data.get("observed") is not True,
        counts=counts,
        turn_id=turn_id,
        turn_position=turn_position,
    )


def interrupted(call_id: str) -> Message:
    """The result that closes a tool call which will never get one."""
    return pack(_interruption(call_id))


def open_calls(before: Iterable[str], message: Message) -> tuple[str, ...]:
    """The tool calls without a result after ``message``, given those open before it."""
    still = () if message.closes_calls else tuple(call for call in before if call != message.answers)
    return (*still, *message.calls)


class Ordering:
    """Puts messages in the order in which a model takes them, any number at a time: each tool call directly
    followed by its one result.

    Results that came late or after other messages move to their call; a real result stands before an
    interrupted one; a call without any is shown as interrupted.
    """

    def __init__(self) -> None:
        self.shown: list[Plain] = []
        self._places: dict[str, int] = {}

    def add(self, messages: Sequence[Plain]) -> None:
        shown, places = self.shown, self._places
        if not places and not _any_calls(messages):
            shown += messages
            return
        for message in messages:
            place = places.get(str(message.get("tool_call_id"))) if message.get("role") == Role.TOOL else None
            if place is not None:
                shown[place] = message if shown[place].get("content") == INTERRUPTED else shown[place]
                continue
            shown.append(message)
            for call in _call_ids(message):
                places[call] = len(shown)
                shown.append(_interruption(call))


def conversation(messages: list[Plain]) -> list[Plain]:
    """The messages as a model takes them."""
    if not _any_calls(messages):
        return messages
    ordering = Ordering()
    ordering.add(messages)
    return ordering.shown


def _any_calls(messages: Sequence[Plain]) -> bool:
    return bool([message for message in messages if "tool_calls" in message])


def _interruption(call_id: str) -> Plain:
    return {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}


def as_heard(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message as a model is shown it: one that was observed, and not said to it, says so."""
    if message.get("observed") is not True:
        return message
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "role": "user", "content": [{"type": "text", "text": OVERHEARD}, *content]}
    return {**message, "role": "user", "content": f"{OVERHEARD} {text_of(message)}"}


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, the text parts joined by line ends."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )


def any_in_parts(rows: Iterable[Plain]) -> bool:
    """Whether some of them are more than texts."""
    return bool([row for row in rows if "content" in row and type(row["content"]) is list])


def any_tools(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether some of them call tools, or are what these gave."""
    return bool([row for row in rows if row.get("tool_calls") or row.get("role") == "tool"])


def without_images(rows: Sequence[Plain]) -> list[Plain] | None:
    """The rows with words in the place of images; None when there are none in them."""
    told = [_in_words(row) for row in rows]
    return told if told != list(rows) else None


def _in_words(row: Plain) -> Plain:
    content = row.get("content")
    if not isinstance(content, list):
        return row
    kinds = [part.get("type") if isinstance(part, Mapping) else None for part in content]
    return row | {
        "content": [
            NO_IMAGE if kind == "image_url" else part for kind, part in zip(kinds, content, strict=True)
        ]
    }


def _rename_id(data: Plain) -> None:
    """Have the platform's id under its present name, as text."""
    older = data.pop("message_id", None)
    platform_id = data.pop("platform_message_id", None)
    platform_id = older if platform_id is None else platform_id
    if platform_id is not None and platform_id != "":
        if isinstance(platform_id, bool) or not isinstance(platform_id, str | int):
            raise errors.InvalidMessage(why="platform_message_id must be a text")
        data["platform_message_id"] = str(platform_id)


def _encode(data: Plain) -> bytes:
    try:
        body = msgspec.json.encode(data)
        # Texts always come back as they are.
        plain = {*map(type, data), *map(type, data.values())} == {str}
        exact = plain or msgspec.json.decode(body) == data
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise errors.InvalidMessage(why=f"it is not plain JSON text ({error})") from error
    if not exact:
        raise errors.InvalidMessage(why="it holds values that JSON cannot give back as they are")
    return body


def _call_ids(data: Plain) -> tuple[str, ...]:
    calls = data.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise errors.InvalidMessage(why="tool_calls must be a list")
    ids = [str(call["id"]) for call in calls if isinstance(call, Mapping) and call.get("id")]
    return tuple(dict.fromkeys(ids))
