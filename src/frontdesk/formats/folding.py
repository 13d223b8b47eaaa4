"""Lines that repeat, and spaces in a row, folded: how many there are is said, so that no two texts are folded
alike."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from frontdesk.formats.actions import INDENT

FEWEST_FOLDED = 4
EMPTY_LINE = '"\\n"'
"""A line of a text with nothing in it, as it is shown."""
EMPTY_LINES = "[{count:,} empty lines]"
SAME_SIGN = "{sign}⟦{count:,} times⟧"
"""No text has these brackets."""
SAME_LINE = "[the line above stands here {count:,} times]"

# Spaces, and what cannot be seen, push the rest of a line out of sight.
_REPEATED = re.compile(r"(␣|\\u\{[0-9a-f]+\})\1{19,}")


class CardLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the arguments; however narrow the screen is, the rest of it stands under its text."""

    depth: int
    text: str
    is_ours: bool = False
    """Whether we say it of lines that are folded; no line of an action begins as these do."""

    def __str__(self) -> str:
        return INDENT * self.depth + self.text


def fold(lines: Iterable[str]) -> Iterator[CardLine]:
    for line, same in groupby(lines):
        count = sum(1 for _ in same)
        body = line.lstrip(" ")
        depth = (len(line) - len(body)) // len(INDENT)
        text = _REPEATED.sub(_said, body)
        if count < FEWEST_FOLDED:
            yield from (CardLine(depth=depth, text=text) for _ in range(count))
        elif text == EMPTY_LINE:
            yield CardLine(depth=depth, text=EMPTY_LINES.format(count=count), is_ours=True)
        else:
            yield CardLine(depth=depth, text=text)
            yield CardLine(depth=depth, text=SAME_LINE.format(count=count), is_ours=True)


def _said(found: re.Match[str]) -> str:
    sign = found[1]
    return SAME_SIGN.format(sign=sign, count=len(found[0]) // len(sign))
