"""Markdown from people and agents, as pages show it."""

import re
import sys
from collections import OrderedDict
from threading import Lock

import msgspec

from frontdesk.web.pages import rendering

MOST_CHARACTERS = 10_000
"""Of one text; a longer one is cut, and the page says so."""
MOST_BRACKETS = 300
"""The parser looks for the other end of each: what has more of them is shown as it was written."""
MOST_ELEMENTS, PAGE_ELEMENTS = 1_500, 6_000
"""Of one text, and of all on a page. What would have more is shown as it was written."""
MOST_MARKUP, PAGE_MARKUP = 200_000, 600_000
"""Characters that are made of a text, and of all on a page; from where on they are shown as written."""
KEPT_BYTES = 4_000_000
"""A page is made anew with each change, and most of its texts are the same: what was made of the last ones
is kept, in no more memory than this."""
ONE_LINE = re.compile(r"[^\W\d_][^\\`*_~\[\]<>|#&!\r\n\t=]*")
"""What means nothing else in Markdown than what it says."""


class MadeText(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of a text, and what it takes of a page's room."""

    markup: str
    elements: int = 1


class KeptTexts:
    """The texts that were last made or asked for, for whichever thread."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = Lock()
        self._made: OrderedDict[str, MadeText] = OrderedDict()
        self.size = 0

    def take(self, text: str) -> MadeText | None:
        with self._lock:
            if text in self._made:
                self._made.move_to_end(text)
            return self._made.get(text)

    def keep(self, text: str, made: MadeText) -> None:
        with self._lock:
            if text in self._made:
                return
            self._made[text] = made
            self.size += _bytes(text, made)
            while self.size > self._most:
                self.size -= _bytes(*self._made.popitem(last=False))


def _bytes(text: str, made: MadeText) -> int:
    return sys.getsizeof(text) + sys.getsizeof(made.markup)


class PageRoom:
    """How much a page may yet have formatted; the same texts in the same order are always shown alike."""

    def __init__(self) -> None:
        self._elements, self._markup = PAGE_ELEMENTS, PAGE_MARKUP

    def render(self, text: str) -> str:
        """The text, formatted while there is room for it."""
        if self._elements > 0 and self._markup > 0:
            made = _kept(text)
            self._elements -= made.elements
            self._markup -= len(made.markup)
            if self._elements >= 0 and self._markup >= 0:
                return made.markup
        return _too_much(text[:MOST_CHARACTERS])


def render_prose(text: str) -> str:
    """The text in a few tags, none of which loads or does anything."""
    return _kept(text).markup


def render_growing(text: str) -> str:
    """A text that will be another one in a moment."""
    return _make(text[:MOST_CHARACTERS]).markup


def _kept(text: str) -> MadeText:
    text = text[:MOST_CHARACTERS]
    made = KEPT.take(text)
    if made is None:
        made = _make(text)
        KEPT.keep(text, made)
    return made


def _make(text: str) -> MadeText:
    text = text.encode(errors="replace").decode()
    if ONE_LINE.fullmatch(text):
        return MadeText(markup=_piece("as_written", text))
    if text.count("[") > MOST_BRACKETS or text.count("\n") > MOST_ELEMENTS:
        return MadeText(markup=_too_much(text))
    from frontdesk.formats.markdown import elements  # noqa: PLC0415 - the parser is of use only for pages

    tree, count = elements.parse_within(text, MOST_ELEMENTS)
    if tree is not None and len(markup := _piece("blocks", tree.children)) <= MOST_MARKUP:
        return MadeText(markup=markup, elements=count)
    return MadeText(markup=_too_much(text), elements=MOST_ELEMENTS)


def _too_much(text: str) -> str:
    return _piece("too_much", text.encode(errors="replace").decode())


def _piece(macro: str, value: object) -> str:
    return rendering.render_piece(__package__, "prose.html", macro, value)


KEPT = KeptTexts(KEPT_BYTES)
