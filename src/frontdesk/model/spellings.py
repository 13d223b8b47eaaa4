"""Spellings: what a name reads like, whichever characters it is written with."""

import re
import unicodedata
from functools import lru_cache

_CYRILLIC = "аАвВгеЕіІјЈкКмМнНоОпрРсСтТуУхХѕЅԁԛԝһҺѵѴӏӀьЬ", "aAbBreEiIjJkKmMhHoOnpPcCtTyYxXsSdqwhHvVlIbB"
_GREEK = "αΑβΒγεΕζΖηΗιΙκΚμΜνΝοΟρΡσςτΤυΥχΧω", "aAbByeEzZnHiIkKuMvNoOpPsstTuYxXw"
_ALIKE = str.maketrans("".join((_CYRILLIC[0], _GREEK[0])), "".join((_CYRILLIC[1], _GREEK[1])))
_NOT_SEEN = frozenset({"Cf", "Cc", "Cn", "Mn", "Me"})
_FILLERS = frozenset("\u115f\u1160")
"""Letters that have no shape."""
_ONE_SHAPE = str.maketrans("i1|0", "lllo")
_COLONS = frozenset(":\u02d0\u02f8\u0589\u05c3\u0703\u0704\u16ec\u205a\u2236\u2982\ua789")
"""Signs that are read as one, besides those that are made one by NFKC."""
_LATIN = re.compile(
    r"LATIN (?:(?:SMALL|CAPITAL) LETTER|LETTER SMALL CAPITAL)(?: [A-Z]+)? ([A-Z])(?: WITH .*)?"
)


def plain(name: str) -> str:
    """What it reads like: without case, accents and what cannot be seen, look-alikes as the Latin letter.

    Signs stay what they are, so that a pattern stays one.
    """
    parts = unicodedata.normalize("NFKD", name)
    return unicodedata.normalize("NFKC", "".join(map(_seen, parts))).casefold().strip()


def skeleton(name: str) -> str:
    """Equal for names that a reader, or a program that is not strict, takes for the same: only letters and
    digits count, and those that share a shape (``l``, ``i`` and ``1``) are one."""
    shapes = plain(name).translate(_ONE_SHAPE)
    return "".join(character for character in shapes if character.isalnum())


def holds_colon(name: str) -> bool:
    """Whether a reader sees a colon in it."""
    return not _COLONS.isdisjoint(unicodedata.normalize("NFKC", name))


@lru_cache(maxsize=4096)
def _seen(character: str) -> str:
    if character.isascii() and (character.isprintable() or character.isspace()):
        return character
    if unicodedata.category(character) in _NOT_SEEN or character in _FILLERS:
        return " " if character.isspace() else ""
    latin = _LATIN.fullmatch(unicodedata.name(character, ""))
    return latin[1] if latin else character.translate(_ALIKE)
