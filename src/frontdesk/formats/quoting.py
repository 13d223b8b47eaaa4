"""Text from strangers, made safe to show to a language model."""

import json
import re
import unicodedata

from frontdesk.model.lookalikes import UNSEEN

MAX_CHARACTERS = 240
ELLIPSIS = "..."
MOST_ACCENTS = 4
"""In a row: no language has more."""

_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
# Besides the ASCII and C1 controls: what turns writing around, cannot be seen, or is half a character.
# The zero-width joiners stay: names and emoji are written with them.
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)

_UNWRITTEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, invisible formatting, half characters and ends of lines."""


def clean_text(text: str, most: int = MAX_CHARACTERS) -> str:
    """The text with ``\\n`` as its only control character and few accents on a letter, trimmed, and cut when
    it is long."""
    cleaned = _flat(_CONTROLS.sub(" ", _LINE_ENDS.sub("\n", text))).strip()
    return cleaned if len(cleaned) <= most else cleaned[: most - len(ELLIPSIS)] + ELLIPSIS


def _flat(text: str) -> str:
    """Without the accents that would cover the lines above and below."""
    if text.isascii():
        return text
    kept: list[str] = []
    accents = 0
    for sign in text:
        accents = accents + 1 if unicodedata.category(sign).startswith("M") else 0
        if accents <= MOST_ACCENTS:
            kept.append(sign)
    return "".join(kept)


def one_line(text: str, most: int | None = None) -> str:
    """The cleaned text on one line, single spaces between its words; whole, or in so many characters."""
    line = " ".join(clean_text(text, max(len(text), len(ELLIPSIS))).split())
    return line if most is None or len(line) <= most else line[: most - len(ELLIPSIS)] + ELLIPSIS


def visible(text: str) -> str:
    """The text with whatever cannot be seen in it, or turns writing around, spelled out; tabs stay."""
    return "".join(
        f"⟨U+{ord(sign):04X}⟩" if sign != "\t" and unicodedata.category(sign) in _UNWRITTEN else sign
        for sign in text
    )


def visible_lines(text: str) -> str:
    """A text of several lines with whatever turns writing around or hides in it spelled out; ends of lines,
    tabs and what joins letters stay."""
    return text if text.isprintable() else _CONTROLS.sub(_spelled_out, text)


def _spelled_out(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\t\r" else f"⟨U+{ord(found[0]):04X}⟩"


def is_one_line(text: str) -> bool:
    """Whether nothing in it ends a line, commands a terminal, turns writing around or is invisible format."""
    return not any(unicodedata.category(sign) in _UNWRITTEN for sign in text)


def quote(text: str) -> str:
    """The cleaned text as a JSON string: one line, and nothing in it can close the quotes."""
    return json.dumps(clean_text(text), ensure_ascii=False)


def quote_within(text: str, most: int) -> str:
    """The text quoted in so many characters at most, eight or more, the quotes and escapes included."""
    room = most - len('""')
    quoted = json.dumps(clean_text(text, room), ensure_ascii=False)
    while len(quoted) > most and room > len(ELLIPSIS):
        room = max(len(ELLIPSIS), room * most // len(quoted) - 1)
        quoted = json.dumps(clean_text(text, room), ensure_ascii=False)
    return quoted


def quote_name(name: str, most: int) -> str:
    """What somebody calls themselves, quoted, without what has no shape. Where others decide by it, who they
    are stands beside it."""
    return quote_within(UNSEEN.sub("", name), most)


def shown_id(known: str, most: int) -> str:
    """Who somebody is, as a platform says: two of them never look the same for what cannot be seen."""
    return one_line(UNSEEN.sub(_spelled_out, visible(known)), most)


def quote_any(text: str | None) -> str | None:
    """The quoted text, or None when there is nothing in it to read."""
    return quote(text) if text and clean_text(text) else None


def unquote(text: str) -> str:
    """What was quoted like this; the text as it is when it is not quoted."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text
