"""Items of the responses API as messages in the chat-completions form."""

from collections.abc import Sequence
from typing import Any

from frontdesk.channels.api_server.inbound import check_pieces, invalid, plain
from frontdesk.model.messages import Plain

TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Parts that are texts, and where theirs stands."""
PASSED_OVER = frozenset({"reasoning"})
NOT_KEPT = "there are no uploaded files here; bring it along"


def read_items(given: str | Sequence[Plain]) -> list[Plain]:
    """The messages that the input of a request holds. InvalidInput names the item that is none."""
    if isinstance(given, str):
        return [plain("input", {"role": "user", "content": given})]
    check_pieces("input", given)
    messages: list[Plain] = []
    for number, item in enumerate(given):
        where = f"input[{number}]"
        kind = item.get("type", "message")
        match kind:
            case "message":
                message = {"role": item.get("role"), "content": _content(where, item.get("content"))}
            case "function_call":
                message = {"role": "assistant", "tool_calls": [_call(where, item)]}
                if messages and messages[-1].get("tool_calls"):
                    message["tool_calls"] = messages.pop()["tool_calls"] + message["tool_calls"]
            case "function_call_output":
                message = {"role": "tool", "tool_call_id": _text_in(where, item, "call_id")}
                message["content"] = _content(where, item.get("output"))
            case str() if kind in PASSED_OVER:
                continue
            case _:
                raise invalid(f"{where}.type", "use message, function_call, function_call_output, reasoning")
        messages.append(plain(where, message))
    return messages


def _content(where: str, content: object) -> str | list[Plain]:
    """A text, where there are only texts, so that a command is one however it comes."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(where, "it has neither a text nor a list of parts")
    parts = [_part(f"{where}.content[{number}]", part) for number, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(where: str, part: object) -> Plain:
    if not isinstance(part, dict):
        raise invalid(where, "each part is an object with a type")
    kind = part.get("type")
    if isinstance(kind, str) and kind in TEXTS:
        return {"type": "text", "text": _text_in(where, part, TEXTS[kind])}
    match kind:
        case "input_image":
            if part.get("image_url") is None:
                raise invalid(where, f"an image has an image_url: {NOT_KEPT}")
            shown = {"url": _text_in(where, part, "image_url")}
            if isinstance(part.get("detail"), str):
                shown["detail"] = part["detail"]
            return {"type": "image_url", "image_url": shown}
        case "input_file":
            if part.get("file_data") is None:
                raise invalid(where, f"a file has file_data: {NOT_KEPT}")
            file = {"file_data": _text_in(where, part, "file_data")}
            if part.get("filename") is not None:
                file["filename"] = _text_in(where, part, "filename")
            return {"type": "file", "file": file}
        case "input_audio" if isinstance(part.get("input_audio"), dict):
            return {"type": "input_audio", "input_audio": part["input_audio"]}
    raise invalid(f"{where}.type", "use input_text, input_image, input_file or input_audio")


def _call(where: str, item: Plain) -> dict[str, Any]:
    function = {name: _text_in(where, item, name) for name in ("name", "arguments")}
    return {"id": _text_in(where, item, "call_id"), "type": "function", "function": function}


def _text_in(where: str, item: Plain, name: str) -> str:
    text = item.get(name)
    if not isinstance(text, str):
        raise invalid(f"{where}.{name}", "it is to be a text")
    return text


def merged(messages: Sequence[Plain]) -> str | list[Plain]:
    """The content of several messages as that of one."""
    contents = [message["content"] for message in messages]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents)
    parts: list[Plain] = []
    for content in contents:
        parts += content if isinstance(content, list) else [{"type": "text", "text": content}]
    return parts
