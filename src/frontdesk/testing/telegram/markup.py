"""Texts as the Bot API takes them: HTML that parses, lengths in UTF-16 units, buttons of a certain size."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec

from frontdesk.model.chats import TextUnit

TEXT_UNITS = 4096
CAPTION_UNITS = 1024
BUTTON_BYTES = 64
BUTTONS_IN_A_ROW = 8
MOST_BUTTONS = 100
TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
LINK = re.compile(r"(https?|tg|mailto|tel)://?\S+|mailto:\S+", re.IGNORECASE)


class ApiRefusal(Exception):
    """The Bot API says no."""

    def __init__(self, code: int, description: str, parameters: dict[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


def bad(why: str) -> ApiRefusal:
    return ApiRefusal(400, f"Bad Request: {why}")


class Shown(msgspec.Struct, frozen=True):
    """A text as people see it."""

    text: str
    entities: list[dict[str, Any]] = []


class _MarkupReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.text = ""
        self.entities: list[dict[str, Any]] = []
        self._open: list[tuple[str, int, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            raise bad(f'can\'t parse entities: Unsupported start tag "{tag}"')
        given = dict(attrs)
        if tag == "span" and given.get("class") != "tg-spoiler":
            raise bad('can\'t parse entities: Tag "span" must have class "tg-spoiler"')
        self._open.append((tag, TextUnit.UTF16.length(self.text), given))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            raise bad(f'can\'t parse entities: Unmatched end tag "{tag}"')
        name, begins, given = self._open.pop()
        length = TextUnit.UTF16.length(self.text) - begins
        href = given.get("href")
        if not length or (name == "a" and not (href and LINK.match(href))):
            return
        entity: dict[str, Any] = {"type": TAGS[name], "offset": begins, "length": length}
        if name == "a":
            entity["url"] = href
        self.entities.append(entity)

    def handle_data(self, data: str) -> None:
        if "<" in data:
            raise bad("can't parse entities: Unsupported start tag")
        self.text += data

    def handle_entityref(self, name: str) -> None:
        self.text += NAMED.get(name, f"&{name};")

    def handle_charref(self, name: str) -> None:
        number = int(name[1:], 16) if name[:1] in "xX" else int(name)
        self.text += chr(number)

    def handle_comment(self, _: str) -> None:
        raise bad("can't parse entities: Unsupported start tag")

    def handle_decl(self, _: str) -> None:
        raise bad("can't parse entities: Unsupported start tag")

    def close(self) -> None:
        super().close()
        if self._open:
            raise bad(
                f"can't parse entities: Can't find end tag corresponding to start tag \"{self._open[-1][0]}\""
            )


def read_text(fields: dict[str, str], name: str = "text") -> Shown:
    """The text of a message, or a caption, as it would be shown; ApiRefusal where the Bot API refuses it."""
    written = fields.get(name, "")
    shown = Shown(written)
    mode = fields.get("parse_mode")
    if mode not in (None, "", "HTML"):
        raise bad("unsupported parse_mode")
    if mode == "HTML":
        reader = _MarkupReader()
        reader.feed(written)
        reader.close()
        shown = Shown(reader.text, reader.entities)
    units = TextUnit.UTF16.length(shown.text)
    if name == "text" and not shown.text.strip():
        raise bad("message text is empty")
    if units > (TEXT_UNITS if name == "text" else CAPTION_UNITS):
        raise bad("message is too long" if name == "text" else "message caption is too long")
    return Shown(shown.text.strip(), shown.entities)


def read_buttons(fields: dict[str, str]) -> list[dict[str, str]]:
    """The buttons under a message, row by row."""
    if not fields.get("reply_markup"):
        return []
    try:
        rows = json.loads(fields["reply_markup"]).get("inline_keyboard", [])
    except (ValueError, AttributeError):
        raise bad("can't parse reply keyboard markup JSON object") from None
    for row in rows:
        if len(row) > BUTTONS_IN_A_ROW:
            raise bad("BUTTONS_TOO_MUCH")
        for each in row:
            if not each.get("text", "").strip():
                raise bad("Text buttons must be non-empty")
            data = each.get("callback_data")
            if "url" not in each and not (data and len(data.encode()) <= BUTTON_BYTES):
                raise bad("BUTTON_DATA_INVALID")
    if sum(len(row) for row in rows) > MOST_BUTTONS:
        raise bad("BUTTONS_TOO_MUCH")
    return [each for row in rows for each in row]
