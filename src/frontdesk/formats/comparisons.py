"""What differs between two actions, in a few lines."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any

import msgspec

from frontdesk.formats import canonical
from frontdesk.formats.actions import masked_name

MOST_LINES = 12
LINE_CHARACTERS, BEFORE_CHARACTERS = 240, 80
CUT = "⟦…⟧"
MOST_COMPARED = 300
"""Where more lines than that differ, nobody looks which of them are the same."""
GONE, NEW, OURS = "\N{MINUS SIGN}", "+", ""
MORE = "[{lines:,} more lines differ]"
ABSENT = object()
HIDDEN_ALONE = "[Only what is hidden differs.]"


class ComparedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that only the earlier action has, or only this one."""

    sign: str
    """Empty when we say something of the others."""
    text: str

    def __str__(self) -> str:
        return f"{self.sign} {self.text}" if self.sign else self.text


def places(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, as short as it can be said."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            inside = f"{path}.{masked_name(name)}" if path else masked_name(name)
            yield from places(before.get(name, ABSENT), after.get(name, ABSENT), inside)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from places(one, other, f"{path}[{number}]")
    elif ABSENT in (before, after) or canonical.canonical(before) != canonical.canonical(after):
        yield path


def compare(before: Sequence[str], after: Sequence[str]) -> tuple[ComparedLine, ...]:
    """What went and what came, of two actions that are not the same, as they are shown."""
    differing = [*_differing(before, after)]
    if not differing:
        return (ComparedLine(sign=OURS, text=HIDDEN_ALONE),)
    if len(differing) <= MOST_LINES:
        return tuple(differing)
    more = ComparedLine(sign=OURS, text=MORE.format(lines=len(differing) - MOST_LINES))
    return (*_some(differing), more)


def _some(differing: Sequence[ComparedLine]) -> Iterator[ComparedLine]:
    """As many as there is room for, of what went and of what came."""
    gone = [line for line in differing if line.sign == GONE]
    new = [line for line in differing if line.sign == NEW]
    from_new = min(len(new), max(MOST_LINES // 2, MOST_LINES - len(gone)))
    kept = {*map(id, gone[: MOST_LINES - from_new]), *map(id, new[:from_new])}
    return (line for line in differing if id(line) in kept)


def _differing(before: Sequence[str], after: Sequence[str]) -> Iterator[ComparedLine]:
    start = _same_from(before, after)
    end = min(_same_from(before[::-1], after[::-1]), len(before) - start, len(after) - start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(old), len(new)) > MOST_COMPARED:
        spans = [(0, len(old), 0, len(new))]
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        spans = [(a, b, c, d) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"]
    for first, last, begin, stop in spans:
        gone, came = old[first:last], new[begin:stop]
        yield from _cut(GONE, gone, came)
        yield from _cut(NEW, came, gone)


def _cut(sign: str, lines: Sequence[str], others: Sequence[str]) -> Iterator[ComparedLine]:
    """Of long lines what is around the first difference from what stands in their place."""
    for line, other in zip_longest(lines, others[: len(lines)], fillvalue=""):
        start = max(_same_from(line, other) - BEFORE_CHARACTERS, 0) if len(line) > LINE_CHARACTERS else 0
        end = start + LINE_CHARACTERS
        before, after = (CUT if start else ""), (CUT if end < len(line) else "")
        yield ComparedLine(sign=sign, text=f"{before}{line[start:end]}{after}".strip())


def _same_from(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
