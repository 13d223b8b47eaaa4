"""Markdown from people and agents, as pages show it."""

import re
from functools import lru_cache

from frontdesk.web.pages import rendering

MOST_CHARACTERS = 10_000
"""Of one text; a longer one is cut, and the page says so."""
MOST_BRACKETS = 300
"""The parser looks for the other end of each: what has more of them is shown as it was written."""
KEPT_CHARACTERS = 4_000
TEXTS_KEPT = 3_000
"""A page is made anew with each change, and most of its texts are the same: so many as these are kept, of no
more characters than those."""
ONE_LINE = re.compile(r"[^\W\d_][^\\`*_~\[\]<>|#&!\r\n\t=]*")
"""What means nothing else in Markdown than what it says."""


def render_prose(text: str) -> str:
    """The text in a few tags, none of which loads or does anything."""
    return _kept(text) if len(text) <= KEPT_CHARACTERS else _render(text[:MOST_CHARACTERS])


def render_growing(text: str) -> str:
    """A text that will be another one in a moment."""
    return _render(text[:MOST_CHARACTERS])


def _render(text: str) -> str:
    text = text.encode(errors="replace").decode()
    if ONE_LINE.fullmatch(text) or text.count("[") > MOST_BRACKETS:
        return rendering.render_piece(__package__, "prose.html", "as_written", text)
    from frontdesk.formats.markdown import elements  # noqa: PLC0415 - the parser is of use only for pages

    return rendering.render_piece(__package__, "prose.html", "blocks", elements.parse(text).children)


_kept = lru_cache(maxsize=TEXTS_KEPT)(_render)
