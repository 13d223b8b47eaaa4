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
    start, following = 0, prefix + INDENT + CONTINUED
    while (end := _end_of(body, start, columns - columns_of(prefix))) < len(body):
        yield prefix + body[start:end]
        start, prefix = end, following
    yield prefix + body[start:]


def _end_of(body: str, start: int, columns: int) -> int:
    """Where the line ends that begins there: behind the characters that fit, at the end of a word where one
    ends in the second half, and before a mark that could stand whole in the next. A space is always in the
    next line, where it can be seen."""
    end, used = start, 0
    while end < len(body) and (used := used + columns_of(body[end])) <= columns:
        end += 1
    if end == len(body):
        return end
    mark = body.rfind(OPEN, start, end)
    if mark >= 0 and body.find(CLOSE, mark, end) < 0 and (before := len(body[start:mark].rstrip(" "))):
        return start + before
    space = body.rfind(" ", start, end + 1)
    return max(space if space - start > (end - start) // 2 else end, start + 1)
