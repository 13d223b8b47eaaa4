"""Look-alikes: which characters pass for others, by the confusables of Unicode (UTS 39).

The tables are those of the package ``confusable-homoglyphs``. They are read when the first character is asked
about that is not ASCII."""

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

import msgspec

CACHED = 8192
LATIN, FULL_WIDTH, COMMON = "Latin", "Full-width", "Common"
"""Names of writings. Letters and digits as wide as Chinese ones are one; what belongs to all is common."""
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufffc\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
"""What has no shape, whatever Unicode counts it among."""
PAIRS: Mapping[str, str] = {"rn": "m", "vv": "w", "cl": "d"}
"""Two letters that pass for one."""

_LIKE_LATIN = frozenset({"Greek", "Cyrillic", "Armenian", "Cherokee", "Coptic", "Lisu", FULL_WIDTH})
_PACKAGE = "confusable_homoglyphs"
_FORM_OF_LATIN = re.compile(
    r".*?\b(?:LATIN|REGIONAL INDICATOR SYMBOL)\b.*?\bLETTER\b.*? ([A-Z])(?: WITH .*)?"
)
"""The name of a letter that is a Latin one in some form."""
_SQUARED = re.compile(r"(?:NEGATIVE )?SQUARED ([A-Z]{2,4})")
"""Of a word in one character."""
_ALSO: Mapping[str, str] = {
    "a": "4@",
    "b": "68\u0432\u00df\u0431",
    "c": "(\u00a2",
    "e": "3\u20ac\u0454\u044d\u03b5",
    "g": "69",
    "h": "\u043d\u03b7",
    "i": "1l|!\u03b9",
    "k": "\u043a\u03ba",
    "l": "1i|!\u00a3",
    "m": "\u043c",
    "n": "\u043f\u03b7\u0438",
    "o": "0",
    "p": "\u00fe",
    "r": "\u0433\u044f",
    "s": "5$\u03c3\u03c2",
    "t": "7+\u0442\u03c4",
    "u": "\u03bc\u03c5\u0446",
    "w": "\u03c9\u0448",
    "x": "\u0436\u03c7",
    "y": "\u03b3\u0443\u00a5",
    "z": "2\u03b6",
}
"""Signs that are read as a letter, too, though Unicode does not say so."""
_FULL_WIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
_ANOTHER_STYLE = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f130-\U0001f149]")
"""The signs of ASCII in another width, in the letters of formulas, in squares."""
_MARKS = frozenset({"Mn", "Me", "Cf"})


@lru_cache(CACHED)
def passes_for(character: str) -> str | None:
    """The ASCII that a character looks like, one or several; none for ASCII itself."""
    if character.isascii():
        return None
    if _ANOTHER_STYLE.match(character) and (plain := unicodedata.normalize("NFKC", character)).isascii():
        return plain
    return _confusables().get(character)


@lru_cache(CACHED)
def readings(character: str) -> frozenset[str]:
    """All that one character may be read as, in small letters and without accents: itself, too."""
    found = {character.casefold(), *_also().get(character.casefold(), ())}
    if not character.isascii():
        found |= _readings_of_others(character)
    return frozenset(found | {letter for each in found for letter in _also().get(each, ()) if each.isascii()})


def writings_like(character: str) -> frozenset[str]:
    """Other writings than its own that have a letter which looks the same."""
    return _doubles().get(character, frozenset())


def letter_of(character: str) -> str:
    """The one reading that stands for all of them: the character itself where it has no other."""
    others = sorted(_readings_of_others(character) | _also().get(character.casefold(), frozenset()))
    return _nearly().get(character) or next((each for each in others if each.isascii()), character)


def _readings_of_others(character: str) -> set[str]:
    found = {_without_marks(unicodedata.normalize("NFKD", character))}
    for each in (character, character.casefold(), character.upper(), *found):
        found |= {_confusables().get(each, ""), _nearly().get(each, "")}
    name = unicodedata.name(character, "")
    if form := _FORM_OF_LATIN.fullmatch(name) or _SQUARED.fullmatch(name):
        found.add(form[1])
    return {each.casefold() for each in found if each}


@lru_cache(CACHED)
def is_accent(character: str) -> bool:
    """Whether it is written upon the letter before it."""
    return unicodedata.category(character).startswith("M")


@lru_cache(CACHED)
def script_of(character: str) -> str:
    """The writing that a character belongs to, by its name in Unicode: Latin, Cyrillic, Han, ..."""
    if _FULL_WIDTH.match(character):
        return FULL_WIDTH
    starts, ranges, names = _scripts()
    first, last, name = ranges[max(bisect_right(starts, ord(character)) - 1, 0)]
    return names[name] if first <= ord(character) <= last else COMMON


def has_latin_shapes(script: str) -> bool:
    """Whether a writing is so near to Latin that a letter of it in a Latin word is read as some Latin one."""
    return script in _LIKE_LATIN


class _Alike(msgspec.Struct):
    c: str


class _Categories(msgspec.Struct):
    iso_15924_aliases: list[str]
    code_points_ranges: list[tuple[int, int, int, int]]


def _read(name: str) -> bytes:
    from importlib import resources  # noqa: PLC0415 - most texts are ASCII

    return resources.files(_PACKAGE).joinpath(name).read_bytes()


@cache
def _also() -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for letter, signs in _ALSO.items():
        for sign in signs:
            found[sign].add(letter)
    return {sign: frozenset(letters) for sign, letters in found.items()}


@cache
def _classes() -> list[frozenset[str]]:
    """Texts that look the same, together. Whether a text is one or stands for one is not in the table."""
    table = msgspec.json.decode(_read("confusables.json"), type=dict[str, list[_Alike]])
    near: defaultdict[str, set[str]] = defaultdict(set)
    for one, others in table.items():
        for each in others:
            # Marks that turn the writing around stand around what is written from right to left.
            left, right = one.strip("\u200e"), each.c.strip("\u200e")
            near[left].add(right)
            near[right].add(left)
    found, known = [], set[str]()
    for start in near:
        if start not in known:
            found.append(_reached(start, near))
            known |= found[-1]
    return found


def _reached(start: str, near: Mapping[str, set[str]]) -> frozenset[str]:
    reached, waiting = {start}, [start]
    while waiting:
        more = near[waiting.pop()] - reached
        reached |= more
        waiting.extend(more)
    return frozenset(reached)


@cache
def _doubles() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for each in _classes():
        letters = [text for text in each if len(text) == 1 and text.isalpha() and not text.isascii()]
        writings = frozenset(map(script_of, letters)) - {LATIN, COMMON}
        if len(writings) > 1:
            found.update({letter: writings - {script_of(letter)} for letter in letters})
    return found


@cache
def _confusables() -> Mapping[str, str]:
    """Characters that look exactly like something of ASCII."""
    return _table(lambda text: text)


@cache
def _nearly() -> Mapping[str, str]:
    """Those that do but for an accent or a stroke."""
    return _table(_without_marks)


def _table(form: Callable[[str], str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for each in _classes():
        if ascii_forms := [text for text in map(form, each) if text and text.isascii()]:
            best = min(ascii_forms, key=_rank)
            found.update({text: best for text in each if len(text) == 1 and not text.isascii()})
    return found


def _rank(text: str) -> tuple[object, ...]:
    """Of ``l``, ``I``, ``1`` and ``|`` the first: one character before two, letters before signs."""
    return len(text), not text.isalpha(), not text.islower(), text


def _without_marks(text: str) -> str:
    return "".join(each for each in text if unicodedata.category(each) not in _MARKS)


@cache
def _scripts() -> tuple[list[int], list[tuple[int, int, int]], list[str]]:
    table = msgspec.json.decode(_read("categories.json"), type=_Categories)
    ranges = sorted((first, last, name) for first, last, name, _ in table.code_points_ranges)
    names = [each.capitalize().replace("_", " ") for each in table.iso_15924_aliases]
    return [first for first, _, _ in ranges], ranges, names
