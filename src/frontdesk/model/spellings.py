"""Spellings: what a name reads like, whichever characters it is written with."""

import fnmatch
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from frontdesk.model import lookalikes

CACHED = 8192
CACHED_CHARACTERS = 64
"""Of a name that is read again and again."""
_NOT_SEEN = frozenset({"Cf", "Cc", "Mn", "Me"})
_NOT_KNOWN = frozenset({"Cn", "Co", "Cs"})
"""How these look is known to newer tables of Unicode, or to a font."""
_ANYTHING = "\0"
"""In place of what a character may be read as, when nobody knows."""
_COLONS = frozenset(":\u02d0\u02f8\u0589\u05c3\u0703\u0704\u16ec\u205a\u2236\u2982\ua789")
"""Signs that are read as one, besides those that are made one by NFKC."""
BETWEEN = frozenset("_-.:/ ")
"""Signs between the words of a name; each may stand for any other."""
_TOKENS = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
_ONE_SHAPE = str.maketrans("i1|0", "lllo")


def plain(text: str) -> str:
    """What it reads like, in one way: without case, accents and what cannot be seen, look-alikes as the Latin
    letter. Signs of a pattern stay what they are."""
    letters = "".join(map(_letter, unicodedata.normalize("NFKD", text)))
    return unicodedata.normalize("NFKC", letters).casefold()


def skeleton(name: str) -> str:
    """Equal for names that a reader, or a program that is not strict, takes for the same: only letters and
    digits count, and those that share a shape (``l``, ``i`` and ``1``) are one."""
    return _known_skeleton(name) if len(name) <= CACHED_CHARACTERS else _skeleton(name)


def _skeleton(name: str) -> str:
    shapes = plain(name).translate(_ONE_SHAPE)
    for pair, letter in lookalikes.PAIRS.items():
        shapes = shapes.replace(pair, letter)
    return "".join(character for character in shapes if character.isalnum())


_known_skeleton = lru_cache(CACHED)(_skeleton)


def reads_as(name: str, word: str) -> bool:
    """Whether a reader may take a name for this word of small Latin letters, by anything that each of its
    characters may be read as. Signs do not count."""
    letters = [letter for letter in word if letter.isalnum()]
    return _matches(name, letters, lambda character: not character.isalnum() or _is_unseen(character))


def fits(name: str, pattern: str, between: frozenset[str] = BETWEEN) -> bool:
    """Whether a name fits a pattern with ``*``, ``?`` and ``[..]``, by anything that it may be read as; signs
    in ``between`` may stand for each other."""
    tokens = _TOKENS.findall(unicodedata.normalize("NFKC", pattern.strip()).casefold())
    return _matches(name, tokens, lambda character: _is_unseen(character) or character.isspace(), between)


def holds_colon(name: str) -> bool:
    """Whether a reader sees a colon in it."""
    return not _COLONS.isdisjoint(unicodedata.normalize("NFKC", name))


def _matches(
    name: str,
    tokens: Sequence[str],
    may_skip: Callable[[str], bool],
    between: frozenset[str] = frozenset(),
) -> bool:
    """``reached`` has, for each place in the name, how many tokens may be used up there."""
    reached = [_past_stars({0}, tokens), *(set[int]() for _ in range(len(name) + 1))]
    for place, character in enumerate(name):
        here = reached[place]
        if may_skip(character):
            reached[place + 1] |= here
        for reading in _readings(character):
            reached[place + 1] |= _after(here, tokens, reading, between)
        for reading in _readings_of_pair(name[place : place + 2]):
            reached[place + 2] |= _after(here, tokens, reading, between)
    return len(tokens) in reached[len(name)]


def _after(places: set[int], tokens: Sequence[str], reading: str, between: frozenset[str]) -> set[int]:
    for sign in reading:
        used = {place for place in places if place < len(tokens) and _is_token(sign, tokens[place], between)}
        places = _past_stars({place + (tokens[place] != "*") for place in used}, tokens)
    return places


def _past_stars(places: set[int], tokens: Sequence[str]) -> set[int]:
    """A star may stand for nothing."""
    found = set(places)
    for place in places:
        end = place
        while end < len(tokens) and tokens[end] == "*":
            end += 1
            found.add(end)
    return found


def _is_token(sign: str, token: str, between: frozenset[str]) -> bool:
    if sign == _ANYTHING or token in ("*", "?"):
        return True
    if len(token) > 1:
        return fnmatch.fnmatchcase(sign, token)
    return sign in lookalikes.readings(token) or (sign in between and token in between)


@lru_cache(CACHED)
def _readings(character: str) -> frozenset[str]:
    if unicodedata.category(character) in _NOT_KNOWN:
        return frozenset(_ANYTHING)
    found = lookalikes.readings(character) - {_ANYTHING}
    return found | {pair for pair, letter in lookalikes.PAIRS.items() if letter in found}


def _readings_of_pair(characters: str) -> list[str]:
    if len(characters) == 1:
        return []
    first, second = map(_readings, characters)
    return [letter for pair, letter in lookalikes.PAIRS.items() if pair[0] in first and pair[1] in second]


@lru_cache(CACHED)
def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _NOT_SEEN | _NOT_KNOWN or bool(
        lookalikes.UNSEEN.match(character)
    )


@lru_cache(CACHED)
def _letter(character: str) -> str:
    if character.isascii() and (character.isprintable() or character.isspace()):
        return character
    return "" if _is_unseen(character) else lookalikes.letter_of(character)
