"""Texts in pieces: as many as a platform takes, and where they begin and end."""

from collections.abc import Iterable

Interval = tuple[int, int]


def split_text(text: str, limit: int | None) -> list[str]:
    """Pieces of at most ``limit`` characters, parted at the best place there is; only white space between two
    pieces is lost."""
    if limit is None or len(text) <= limit:
        return [text]
    pieces = []
    while len(text) > limit:
        end = _best_end(text, limit)
        pieces.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return [piece for piece in (*pieces, text) if piece]


def _best_end(text: str, limit: int) -> int:
    """A paragraph's end, else a line's, else a word's, not too early; else wherever the room ends."""
    for separator in ("\n\n", "\n", " "):
        found = text.rfind(separator, limit // 2, limit)
        if found > 0:
            return found
    return limit


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """In order, those that touch as one."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
