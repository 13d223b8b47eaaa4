"""Content that nobody can read before they decide: known by its digest alone, encoded, or no text at all."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

BY_DIGEST = "its SHA-256 alone is here"
ENCODED = "it is encoded"
NO_TEXT = "it is no text"

LEAST_ENCODED_CHARACTERS = 256
"""Shorter pieces are keys, digests and signatures, which stand for something that has a name."""
MOST_CONTROLS = 8
ONE_CONTROL_OF = 20
"""More of a text than this cannot be seen: it is none."""

_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
# Lines of 60 characters and more, as encoders write them. Words, paths and addresses are shorter, or have
# other signs between.
_PIECE = re.compile(r"[A-Za-z0-9+/_-]{60,}={0,2}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")


class Unreadable(NamedTuple):
    """A part of an action that people cannot judge by looking at it."""

    path: tuple[str, ...]
    """The names and places that lead to it."""
    why: str


def unreadable_parts(value: Any, path: tuple[str, ...] = ()) -> Iterator[Unreadable]:
    """All such parts of a value of JSON."""
    if isinstance(value, Mapping):
        if _is_known_by_digest(value):
            yield Unreadable(path, BY_DIGEST)
        for name, each in value.items():
            yield from unreadable_parts(name, (*path, name))
            yield from unreadable_parts(each, (*path, name))
    elif isinstance(value, list | tuple):
        for place, each in enumerate(value, 1):
            yield from unreadable_parts(each, (*path, str(place)))
    elif isinstance(value, str) and (why := _why_unreadable(value)):
        yield Unreadable(path, why)


def is_readable(value: Any) -> bool:
    return next(unreadable_parts(value), None) is None


def _is_known_by_digest(value: Mapping[str, Any]) -> bool:
    """Content of some size whose text is not there; a file that is named by its path has none."""
    digest = value.get("sha256")
    named = isinstance(digest, str) and bool(_DIGEST.fullmatch(digest))
    return named and "size" in value and not isinstance(value.get("text"), str)


def _why_unreadable(text: str) -> str | None:
    if len(_CONTROL.findall(text)) > max(MOST_CONTROLS, len(text) // ONE_CONTROL_OF):
        return NO_TEXT
    if len(text) < LEAST_ENCODED_CHARACTERS:
        return None
    encoded = sum(len(piece) for piece in _PIECE.findall(text) if _looks_encoded(piece))
    return ENCODED if encoded >= LEAST_ENCODED_CHARACTERS else None


def _looks_encoded(piece: str) -> bool:
    """Letters and digits as chance has them; words have no digits, or no capitals, in so many letters."""
    if not _DIGIT.search(piece):
        return False
    return bool(_HEX.fullmatch(piece)) or bool(_LOWER.search(piece) and _UPPER.search(piece))
