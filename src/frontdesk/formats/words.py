"""Words: what a text is indexed and searched by.

A word is a run of letters and digits in lower case, without accents. Scripts that put no spaces between words
are cut into overlapping pairs of characters, and the last character of a run stands alone as well: any two
neighbours are found as a word, and a single character as the beginning of one. An emoji is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from frontdesk import errors
from frontdesk.model.searches import Term

MAX_QUERY_CHARACTERS = 2_000
MAX_QUERY_WORDS = 100
SHOWN_QUERY_CHARACTERS = 80
SHORT_RUN_CHARACTERS = 4
SHORT_RUNS_KEPT = 8_192
CHARACTERS_KEPT = 32_768

# Thai to Khmer; Han, kana, bopomofo, hangul and Yi. Their punctuation has become spaces before this is used.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u4dbf\u4e00-\ua4cf"
    "\uaa60-\uaa7f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# What people leave out when they write or search: accents, Hebrew and Arabic points, variants of a sign.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]"
)
_EMOJI = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0010ffff]")
_SILENT = re.compile("[\u0640\U0001f3fb-\U0001f3ff]")
_ZERO_WIDTH_SPACE = "\u200b"
_TRADE_MARK = "\u2122"

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_ASCII_WORD = re.compile(r"[0-9a-z]+")
_ANY_WORD = re.compile(r"[^\x00-/:-`{-\x7f]+")
# What follows a character without being one: accents, variants, sound marks, skin tones, joiners.
_TAIL = "[\u0300-\u036f\u200d\ufe00-\ufe0f\uff9e\uff9f\U0001f3fb-\U0001f3ff]*"
_ATOM = re.compile(rf"[0-9A-Za-z]+{_TAIL}|[\x00-/:-@\[-`{{-\x7f]+|[^\x00-\x7f]{_TAIL}")
_QUOTES = '"\u201c\u201d\u201e\u201f'
_TERM = re.compile(rf"[{_QUOTES}]([^{_QUOTES}]*)(?:[{_QUOTES}](\*?))?|([^\s{_QUOTES}]+)")


# What takes long to compile is compiled for the first text that needs it.
@cache
def _run() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]+")


@cache
def _run_or_word() -> re.Pattern[str]:
    return re.compile(rf"([{_UNSPACED}]+)|(?:[0-9a-z]|[^\x00-\x7f{_UNSPACED}])+")


def split(text: str) -> list[str]:
    """The words of a text, in order."""
    # The detour over bytes puts ASCII alone into lower case, as the SQLite tokenizer does.
    return _ANY_WORD.findall(spaced(text).encode().lower().decode())


def spaced(text: str) -> str:
    """The text in words that are parted by spaces or by any ASCII character but letters and digits.

    Its ASCII letters keep their case; no other character stands in it that is not part of a word.
    """
    plain = text.replace("\0", " ")
    return plain if plain.isascii() else _BEYOND_ASCII.sub(_spell_run, plain)


Interval = tuple[int, int]
"""Where something begins and ends in a text."""


class Span(NamedTuple):
    """A word and where it stands in the text."""

    word: str
    start: int
    end: int


def spans(text: str) -> list[Span]:
    """The words of a text in form NFC, in order, with their places."""
    if text.isascii():
        return [Span(found[0], *found.span()) for found in _ASCII_WORD.finditer(text.lower())]
    folded: list[str] = []
    places: list[tuple[int, int]] = []
    for atom in _ATOM.finditer(text):
        spelled = atom[0].lower() if atom[0].isascii() else _fold_short(atom[0])
        folded.append(spelled)
        places.extend([atom.span()] * len(spelled))
    return list(_place_words("".join(folded), places))


def _place_words(folded: str, places: list[tuple[int, int]]) -> Iterator[Span]:
    for found in _run_or_word().finditer(folded):
        start, end = found.span()
        if found[1] is None:
            yield Span(found[0], places[start][0], places[end - 1][1])
            continue
        for at in range(start, end):
            after = min(at + 2, end)
            yield Span(folded[at:after], places[at][0], places[after - 1][1])


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """In order, those that touch as one."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def parse(query: str) -> tuple[Term, ...]:
    """The terms of a query: words, "quoted phrases", beginn*.

    A query with nothing to look for, or with too much, raises InvalidQuery.
    """
    if len(query) > MAX_QUERY_CHARACTERS:
        raise _refused(query, f"it is longer than {MAX_QUERY_CHARACTERS} characters")
    terms = tuple(term for found in _TERM.finditer(query) if (term := _read_term(found)))
    if not terms:
        raise _refused(query, "there is no word in it")
    if sum(len(term.words) for term in terms) > MAX_QUERY_WORDS:
        raise _refused(query, f"it has more than {MAX_QUERY_WORDS} words")
    return terms


def _refused(query: str, why: str) -> errors.InvalidQuery:
    return errors.InvalidQuery(query=query[:SHOWN_QUERY_CHARACTERS], why=why)


def _read_term(found: re.Match[str]) -> Term | None:
    quoted, star, bare = found.groups()
    if bare is None:
        return _term(split(quoted), prefix=star == "*")
    return _term(split(bare), prefix=bare.endswith("*"))


def _term(words: list[str], prefix: bool) -> Term | None:
    """The words with the end left open where a run of an unspaced script ends: there it may go on."""
    if not words:
        return None
    if _run().fullmatch(words[-1]) and len(words[-1]) == 1:
        if len(words) > 1 and is_pair(words[-2]) and words[-2][1] == words[-1]:
            return Term(tuple(words[:-1]), prefix)
        return Term(tuple(words), prefix=True)
    return Term(tuple(words), prefix)


def is_pair(word: str) -> bool:
    """Whether a word is two neighbours of an unspaced script."""
    return len(word) == 2 and _run().fullmatch(word) is not None  # noqa: PLR2004 - a pair is two


def _spell_run(found: re.Match[str]) -> str:
    run = found[0]
    return _spell_short(run) if len(run) <= SHORT_RUN_CHARACTERS else _spell(run)


def _spell(run: str) -> str:
    return _run().sub(_cut_run, _fold(run))


_spell_short = lru_cache(maxsize=SHORT_RUNS_KEPT)(_spell)


def _cut_run(found: re.Match[str]) -> str:
    run = found[0]
    return f" {' '.join([run[at : at + 2] for at in range(len(run))])} "


def _fold(run: str) -> str:
    """Characters as they are searched by: compatible forms unified, small, without accents."""
    unified = unicodedata.normalize("NFKC", run.replace(_TRADE_MARK, " "))
    return unified.casefold().translate(_FOLDED)


_fold_short = lru_cache(maxsize=SHORT_RUNS_KEPT)(_fold)


class _Folding(dict[int, str]):
    """A translation table that fills itself, up to a bound."""

    def __missing__(self, code: int) -> str:
        folded = _fold_character(chr(code))
        if len(self) < CHARACTERS_KEPT:
            self[code] = folded
        return folded


_FOLDED = _Folding()


def _fold_character(char: str) -> str:
    category = unicodedata.category(char)
    if _SILENT.match(char) or (category == "Cf" and char != _ZERO_WIDTH_SPACE):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category[0] in "LMN":
        return _without_accents(char)
    return f" {char} " if category == "So" and _EMOJI.match(char) else " "


def _without_accents(char: str) -> str:
    parts = [part for part in unicodedata.normalize("NFD", char) if not _is_accent(part)]
    return char if len(parts) > 1 else "".join(parts)


def _is_accent(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Me") and _ACCENTS.match(char) is not None
