"""Texts as the platform writes them: names and links in angle brackets, three characters escaped, signs by
name."""

import re
from collections.abc import Mapping
from typing import Any

from frontdesk.model.sources import readable

MOST_TEXT_CHARACTERS = 100_000
MOST_PARTS = 200
MOST_DEPTH = 12
ATTACHED = "(Attached: {text})"
MARKED = re.compile(r"<([^<>\n]{1,4000})>")
ESCAPED = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
ESCAPE = re.compile("&(?:lt|gt|amp);")
SIGNS = {
    "+1": "👍",
    "thumbsup": "👍",
    "-1": "👎",
    "thumbsdown": "👎",
    "white_check_mark": "✅",
    "heavy_check_mark": "✔️",
    "x": "❌",
    "no_entry": "⛔",
    "eyes": "👀",
    "heart": "❤️",
    "tada": "🎉",
    "rocket": "🚀",
    "fire": "🔥",
    "pray": "🙏",
    "clap": "👏",
    "wave": "👋",
    "ok_hand": "👌",
    "raised_hands": "🙌",
    "joy": "😂",
    "smile": "😄",
    "slightly_smiling_face": "🙂",
    "thinking_face": "🤔",
    "cry": "😢",
    "100": "💯",
    "question": "❓",
    "warning": "⚠️",
    "hourglass_flowing_sand": "⏳",
    "one": "1️⃣",
    "two": "2️⃣",
    "three": "3️⃣",
    "four": "4️⃣",
    "five": "5️⃣",
}
"""The signs that are put most, by their names there."""


def shown(text: str) -> str:
    """A text as people see it."""
    return readable(_unescaped(MARKED.sub(_named, text[:MOST_TEXT_CHARACTERS])))


def escaped(text: str) -> str:
    """A text that the platform shows as it is: nobody is called, nothing is a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sign(name: str) -> str:
    plain = name.partition("::")[0]
    return SIGNS.get(plain) or f":{readable(plain)[:100]}:"


def mention(user: str) -> str:
    return f"<@{user}>"


def mentions(message: Mapping[str, Any], user: str) -> bool:
    """Whether somebody is named in the text, or in the blocks under it."""
    text = message.get("text")
    found = isinstance(text, str) and re.search(rf"<@{re.escape(user)}(\|[^<>]*)?>", text) is not None
    return found or any(each.get("user_id") == user for each in _tables(message.get("blocks")))


def without_mention(text: str, user: str) -> str:
    """The text behind a mention at its beginning, unless that is all of it."""
    rest = re.sub(rf"\A\s*<@{re.escape(user)}(\|[^<>]*)?>[\s:,]*", "", text)
    return rest if rest.strip() else text


def told(message: Mapping[str, Any]) -> str:
    """What a message says: its text; of one without, what its blocks say; and what is attached to it, which
    somebody else has written, and which is no command."""
    text = message.get("text")
    parts = [text] if isinstance(text, str) and text.strip() else _blocks(message.get("blocks"))
    attached = message.get("attachments")
    for each in attached[:10] if isinstance(attached, list) else ():
        if isinstance(each, dict) and (said := _attached(each)):
            parts.append(ATTACHED.format(text="\n".join(said)))
    return "\n".join(parts)[:MOST_TEXT_CHARACTERS]


def _attached(part: Mapping[str, Any]) -> list[str]:
    named = [part.get(name) for name in ("pretext", "author_name", "title", "text")]
    said = [each for each in named if isinstance(each, str) and each]
    fallback = part.get("fallback")
    return said or ([fallback] if isinstance(fallback, str) and fallback else [])


def _blocks(blocks: object) -> list[str]:
    found = (each.get("text") for each in _tables(blocks))
    return [text for text in found if isinstance(text, str) and text]


def _tables(value: object) -> list[dict[str, Any]]:
    """The tables within blocks, in the order of reading; bounded, whatever is nested in them."""
    found: list[dict[str, Any]] = []
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting and len(found) < MOST_PARTS:
        each, depth = waiting.pop()
        if isinstance(each, dict):
            found.append(each)
        inner = list(each.values()) if isinstance(each, dict) else each
        if isinstance(inner, list) and depth < MOST_DEPTH:
            waiting += [
                (one, depth + 1) for one in reversed(inner[:MOST_PARTS]) if isinstance(one, dict | list)
            ]
    return found


def _named(found: re.Match[str]) -> str:
    """What stands in angle brackets: somebody, a channel, a call to all, or a link."""
    inner, _, label = found[1].partition("|")
    if inner[:1] in ("@", "#"):
        return f"{inner[0]}{label.lstrip(inner[0]) or inner[1:]}"
    if inner[:1] == "!":
        return label or f"@{inner[1:].partition('^')[0]}"
    if not label or label in inner:
        return inner.removeprefix("mailto:")
    return f"{label} ({inner})"


def _unescaped(text: str) -> str:
    return ESCAPE.sub(lambda found: ESCAPED[found[0]], text)
