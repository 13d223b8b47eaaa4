"""Text from strangers, made safe to show to a language model."""

import json
import re

MAX_CHARACTERS = 240
ELLIPSIS = "..."

_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
# Besides the ASCII and C1 controls: what turns writing around, cannot be seen, or is half a character.
# The zero-width joiners stay: names and emoji are written with them.
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    """The text with ``\\n`` as its only control character, trimmed, and cut when it is long."""
    cleaned = _CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text)).strip()
    if len(cleaned) <= MAX_CHARACTERS:
        return cleaned
    return cleaned[: MAX_CHARACTERS - len(ELLIPSIS)] + ELLIPSIS


def quote(text: str) -> str:
    """The cleaned text as a JSON string: one line, and nothing in it can close the quotes."""
    return json.dumps(clean_text(text), ensure_ascii=False)


def quote_any(text: str | None) -> str | None:
    """The quoted text, or None when there is nothing in it to read."""
    return quote(text) if text and clean_text(text) else None
