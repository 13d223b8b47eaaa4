"""What an agent is told at the start of a turn: what it does not know yet, then the message."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from frontdesk.agents.acp.wire import fields
from frontdesk.model import events
from frontdesk.model.messages import Plain, Role, as_heard, text_of

MAX_MESSAGE_CHARACTERS = 2_000
MAX_RESULT_CHARACTERS = 500
COMPARED = ("role", "content", "tool_calls", "tool_call_id")
OWN = (Role.ASSISTANT, Role.TOOL)
CUT = "…"

EARLIER = "Earlier in this conversation, one message to a line, oldest first:"
INTERRUPTED = "You began to answer the message below and were interrupted. Until then, one step to a line:"
MESSAGE = "The message to answer:"

Block = dict[str, Any]


class Seen(msgspec.Struct, frozen=True):
    """How far an agent knows the conversation."""

    count: int = 0
    digest: str = ""


def digest(messages: Iterable[Mapping[str, Any]]) -> str:
    """The same for the same conversation, whatever is noted beside it."""
    told = [[message.get(name) for name in COMPARED] for message in messages]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()


def position_of(turn: events.Assignment) -> int:
    """Where the message to be answered stands; what follows was written by an earlier attempt."""
    places = [place for place, message in enumerate(turn.messages) if message == turn.input]
    return places[-1] if places else len(turn.messages)


def seen_after(turn: events.Assignment) -> Seen:
    """What the agent knows once it has answered; its own words it knows anyway."""
    count = position_of(turn) + 1
    return Seen(count, digest(turn.messages[:count]))


def unseen(turn: events.Assignment, seen: Seen) -> Sequence[Plain] | None:
    """What came before the message and is new to the agent; None when it knows another conversation."""
    before = turn.messages[: position_of(turn)]
    if digest(turn.messages[: seen.count]) != (seen.digest or digest(())):
        return None
    new = list(before[seen.count :])
    while seen.count and new and new[0].get("role") in OWN:
        del new[0]
    return new


def preamble(turn: events.Assignment, earlier: Sequence[Plain], system: str, characters: int) -> str:
    """The text before the message; empty when there is nothing to say."""
    began = turn.messages[position_of(turn) + 1 :]
    sections = [system, _section(EARLIER, earlier, characters), _section(INTERRUPTED, began, characters)]
    told = [section for section in sections if section]
    return "\n\n".join([*told, MESSAGE]) if told else ""


def _section(title: str, messages: Sequence[Plain], characters: int) -> str:
    """The latest messages that fit, each quoted as JSON: none of them can pose as something else."""
    lines: list[str] = []
    for message in reversed(messages):
        line = _line(message)
        characters -= len(line)
        if characters < 0:
            lines.append(f"({len(messages) - len(lines)} earlier ones left out)")
            break
        lines.append(line)
    return "\n".join([title, *reversed(lines)]) if lines else ""


def _line(message: Plain) -> str:
    heard = as_heard(message)
    most = MAX_RESULT_CHARACTERS if message.get("role") == Role.TOOL else MAX_MESSAGE_CHARACTERS
    told: Plain = {"role": heard.get("role"), "text": _cut(text_of(heard), most)}
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        told["calls"] = [_cut(_call(call), MAX_RESULT_CHARACTERS) for call in calls]
    return msgspec.json.encode(told).decode()


def _call(call: object) -> str:
    function = fields(fields(call).get("function"))
    return f"{function.get('name')} {function.get('arguments')}" if function else "?"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


def blocks(message: Mapping[str, Any], accepted: Mapping[str, Any]) -> list[Block]:
    """The message in ACP's form; what the agent does not accept is named instead."""
    content = message.get("content")
    if not isinstance(content, list):
        return [text_block(text_of(message))]
    return [_block(part, accepted) for part in content]


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def _block(part: Any, accepted: Mapping[str, Any]) -> Block:
    given = fields(part)
    kind, text = given.get("type"), given.get("text")
    if kind == "image_url" and (image := fields(given.get(kind))):
        return _image(str(image.get("url")), accepted)
    if kind == "input_audio" and (audio := fields(given.get(kind))) and accepted.get("audio"):
        return {"type": "audio", "data": str(audio.get("data")), "mimeType": f"audio/{audio.get('format')}"}
    return text_block(text if isinstance(text, str) else f"[{kind or 'unknown'}: it cannot be shown here]")


def _image(url: str, accepted: Mapping[str, Any]) -> Block:
    if not url.startswith("data:"):
        return {"type": "resource_link", "uri": url, "name": "image"}
    head, _, data = url.removeprefix("data:").partition(";base64,")
    if not accepted.get("image"):
        return text_block("[image: it cannot be shown here]")
    return {"type": "image", "data": data, "mimeType": head}
