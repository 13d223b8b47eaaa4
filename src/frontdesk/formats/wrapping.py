"""Lines in so many columns: what goes on in the next line keeps its indent, and never begins where lines of
ours do."""

import unicodedata
from collections.abc import Iterator

from frontdesk.formats.actions import INDENT
from frontdesk.formats.scripts import CLOSE, OPEN

CONTINUED = "…"
"""What the rest of a line begins with, right before its next character, be it a space. No line that is shown
of an action begins so."""
FEWEST_COLUMNS = 20
"""So many are used, however few there are."""


def columns_of(text: str) -> int:
    """How many columns it takes at most: where terminals do not agree, the larger number."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WFA" else 1 for sign in text)


def hang(text: str, columns: int) -> str:
    """The text with no line wider than that; the rest of a line stands under it, deeper and marked."""
    used = max(columns, FEWEST_COLUMNS)
    return "\n".join(each for line in text.split("\n") for each in _hung(line, used))


def _hung(line: str, columns: int) -> Iterator[str]:
    body = line.lstrip(" ")
    prefix = line[: len(line) - len(body)]
    if len(prefix) > columns // 2:
        # So deep that there would be no room: the depth is said.
        prefix, body = INDENT, f"[level {len(prefix) // len(INDENT)}] {body}"
    following = prefix + INDENT + CONTINUED
    while columns_of(body) > (room := columns - columns_of(prefix)):
        end = _end_of(body, room)
        yield prefix + body[:end]
        body, prefix = body[end:], following
    yield prefix + body


def _end_of(body: str, columns: int) -> int:
    """How many characters stand in this line: those that fit, to the end of a word where one ends in the
    second half, and no part of a mark that could stand whole in the next. A space is always in the next line,
    where it can be seen."""
    end = used = 0
    while end < len(body) and (used := used + columns_of(body[end])) <= columns:
        end += 1
    mark = body.rfind(OPEN, 0, end)
    if body.find(CLOSE, mark, end) < 0 and (before := len(body[: max(mark, 0)].rstrip(" "))):
        return before
    space = body.rfind(" ", 0, end + 1)
    return max(space if space > end // 2 else end, 1)
