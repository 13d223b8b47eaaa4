"""Writings in a text that people decide on: what passes for something else is marked, and stays readable."""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from frontdesk.model import lookalikes
from frontdesk.model.lookalikes import COMMON, LATIN

OPEN, CLOSE = "⟦", "⟧"
"""Around words in another writing that could be read as Latin ones. No text has them: see ``actions``."""
SEVERAL = "several writings"
TURNED = "right to left"
MOST_TOLD = 3
SIGNS = "Signs that may pass for others:"
CACHED_SIGNS = 8192

_SHARED = frozenset({COMMON, "Inherited"})
_LIVING = frozenset("\u0131\u02bb\u02bc")
"""Letters of languages in Latin writing that look like something in ASCII: they are marked, no escapes."""
_WITHIN_WORDS = frozenset("\u2018\u2019")
_QUOTES = frozenset("\u201c\u201d\u201e")
"""They pass for a quotation mark of ASCII, which is shown as an escape itself."""
_BETWEEN_WORDS = frozenset("\u2013\u2026\u00d7")
_LONG_VOWEL = "\u30fc"
_USUAL = _SHARED | {LATIN, "Hiragana"}
"""Writings of which one letter among others is nothing unusual."""
_OVERLAY = 1
"""Unicode's class of accents that stand upon the letter itself."""
_TURNED = {"R": "r", "AL": "r", "AN": "n"}
_TURNED_RUN = re.compile(r"r\^*(?: ?r\^*)*|n\^*(?:n\^*)*")
# Halves of characters, which no text has, stand for the marks until everything else is spelled.
_FIRST_MARK, _LAST_MARK, _END = 0xD900, 0xDBFF, "\ud8ff"
_MARKS = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}{_END}]")
_MARKED = re.compile(f"{OPEN}([^:{CLOSE}]+): ([^{CLOSE}]+){CLOSE}")


class Word(NamedTuple):
    """A word, and what it is in: nothing but digits and the like is in nothing."""

    start: int
    end: int
    writing: str
    evident: bool
    """It could not be read as one in Latin letters."""


def hold_place(sign: str) -> bool:
    """Whether it stands for a mark."""
    return bool(_MARKS.match(sign))


def with_places(line: str) -> tuple[str, list[str]]:
    """The line with the places of its marks, and what they say: fewer things than there are places for."""
    said: list[str] = []
    pieces: list[str] = []
    done = 0
    for run in _marked(line):
        if run.writing not in said:
            said.append(run.writing)
        mark = chr(_FIRST_MARK + said.index(run.writing))
        pieces += line[done : run.start], mark, line[run.start : run.end], _END
        done = run.end
    return "".join((*pieces, line[done:])), said


def with_marks(line: str, said: list[str]) -> str:
    """The line with its marks in their places."""
    if not said:
        return line
    return _MARKS.sub(
        lambda place: CLOSE if place[0] == _END else f"{OPEN}{said[ord(place[0]) - _FIRST_MARK]}: ", line
    )


def is_turned(sign: str) -> bool:
    """Whether it is written from right to left, or has what is around it written so."""
    return unicodedata.bidirectional(sign) in _TURNED


def may_carry(letter: str, mark: str) -> bool:
    """Whether an accent can be seen on a letter, and the letter below it. One of another writing may have no
    shape there."""
    if unicodedata.category(mark) == "Me" or unicodedata.combining(mark) == _OVERLAY:
        return False
    writing = lookalikes.script_of(mark)
    return writing in _SHARED or writing == lookalikes.script_of(letter)


def in_order(line: str) -> str:
    """A line of somebody's words so that it begins at the left, whatever is written in it."""
    return f"{OPEN}{TURNED}: {line}{CLOSE}" if any(map(is_turned, line)) else line


def doubtful_letters(line: str) -> frozenset[int]:
    """Where a letter passes for one of another writing that its word is in, too."""
    found: list[int] = []
    for start, end in _places(line):
        word = line[start:end]
        latin = LATIN in map(lookalikes.script_of, word)
        found += (start + place for place in range(len(word)) if _is_doubtful(word, place, latin))
    return frozenset(found)


def is_doubtful_sign(line: str, place: int) -> bool:
    """Whether a sign passes for one of ASCII where that could be meant."""
    sign = line[place]
    passes_for = lookalikes.passes_for(sign)
    if passes_for is None or sign in _QUOTES:
        return False
    before, after = line[place - 1 : place] or " ", line[place + 1 : place + 2] or " "
    if _is_foreign(before) or _is_foreign(after):
        return False
    if sign in _WITHIN_WORDS:
        return not (before.isalpha() and after.isalpha())
    if sign in _BETWEEN_WORDS:
        return not (after == " " and (before == " " or sign == "\u2026"))
    return True


def told(lines: Iterable[str]) -> tuple[str, ...]:
    """What is to be said of lines as they are shown: which words and signs may pass for others, and what else
    is not in Latin letters."""
    text = "\n".join(lines)
    if text.isascii():
        return ()
    marked = [each for each in dict.fromkeys(_MARKED.findall(text)) if _passes(each[1])]
    sentences = [
        f'"{word}" is {_kind(writing)} and may pass for "{_read(word)}".'
        for writing, word in marked[:MOST_TOLD]
    ]
    if len(marked) > MOST_TOLD:
        sentences.append(f"{len(marked) - MOST_TOLD} more are marked like that: {OPEN}…{CLOSE}.")
    rest = _MARKED.sub(lambda each: "" if _passes(each[2]) else each[2], text)
    others = {*rest}
    if writings := {*map(lookalikes.script_of, others)} - _SHARED - {LATIN}:
        sentences.append(f"Some of it is not in Latin letters: {', '.join(sorted(writings))}.")
    signs = {sign for sign in others if lookalikes.passes_for(sign) and not sign.isalnum()}
    if signs := signs | {*_strays(rest)}:
        sentences.append(f"{SIGNS} {' '.join(sorted(signs))}")
    return tuple(sentences)


def _strays(text: str) -> Iterator[str]:
    """Letters alone among those of another writing, which could be read as one of these, or as a sign."""
    for before, sign, after in zip(text, text[1:], text[2:], strict=False):
        if sign.isascii() or not sign.isalpha():
            continue
        own, around = lookalikes.script_of(sign), {*map(lookalikes.script_of, before + after)} - _SHARED
        if own in around or own in _USUAL or _LONG_VOWEL in (before, after):
            continue
        sign_too = lookalikes.passes_for(sign) is not None and bool(around - {LATIN})
        if sign_too or not around.isdisjoint(lookalikes.writings_like(sign)):
            yield sign


def _kind(writing: str) -> str:
    if writing == SEVERAL:
        return f"in {SEVERAL}"
    return f"written {writing}" if writing.startswith("with ") else f"in {writing} letters"


def _passes(word: str) -> bool:
    """Whether it could be read as one in Latin letters."""
    return not word.isascii() and _read(word).isascii()


def _read(word: str) -> str:
    return "".join(lookalikes.passes_for(sign) or sign for sign in word)


def _marked(line: str) -> Iterator[Word]:
    """What is marked: words that could be read as Latin ones; and, since screens turn around what stands
    between digits and words that are written from right to left, each run of such words or digits."""
    done = 0
    for turned in (*_turned_runs(line), Word(len(line), len(line), "", True)):
        for run in _runs(line[done : turned.start]):
            if not run.evident:
                yield run._replace(start=run.start + done, end=run.end + done)
        if turned.writing:
            yield turned
        done = turned.end


def _turned_runs(line: str) -> Iterator[Word]:
    if line.isascii():
        return
    for found in _TURNED_RUN.finditer("".join(map(_direction, line))):
        text = line[found.start() : found.end()]
        writings = {*map(lookalikes.script_of, text)} - _SHARED
        yield Word(*found.span(), writings.pop() if len(writings) == 1 else TURNED, False)


@functools.lru_cache(CACHED_SIGNS)
def _direction(sign: str) -> str:
    """A sign for what it does to the writing: _TURNED_RUN reads them."""
    if sign == " ":
        return sign
    if lookalikes.is_accent(sign):
        return "^"
    return _TURNED.get(unicodedata.bidirectional(sign), ".")


def _runs(line: str) -> Iterator[Word]:
    """Words in one writing other than Latin, as far as no word in another one is between them."""
    run: Word | None = None
    for word in _words(line):
        if not word.writing:
            continue
        if run and run.writing == word.writing:
            run = Word(run.start, word.end, run.writing, run.evident and word.evident)
            continue
        if run:
            yield run
        run = word
    if run:
        yield run


def _words(line: str) -> Iterator[Word]:
    return (_word(line[start:end], start, end) for start, end in _places(line))


def _places(line: str) -> Iterator[tuple[int, int]]:
    """Where words begin and end, their accents among them."""
    start = None
    for place, sign in enumerate((*line, " ")):
        if _is_in_word(sign):
            start = place if start is None else start
        elif start is not None:
            yield start, place
            start = None


def _word(text: str, start: int, end: int) -> Word:
    writings = {*map(lookalikes.script_of, text)} - _SHARED
    living = [*dict.fromkeys(sign for sign in text if sign in _LIVING)]
    if writings <= {LATIN}:
        writing = f"with {' and '.join(living)}" if living else LATIN if writings else ""
        return Word(start, end, writing, not living)
    if LATIN in writings:
        return Word(start, end, LATIN, True)
    letters = (sign for sign in text if not sign.isascii() and not lookalikes.is_accent(sign))
    evident = any(lookalikes.passes_for(letter) is None for letter in letters)
    return Word(start, end, writings.pop() if len(writings) == 1 else SEVERAL, evident)


def _is_doubtful(word: str, place: int, latin: bool) -> bool:
    letter = word[place]
    if letter.isascii() or letter in _LIVING:
        return False
    passes_for, writing = lookalikes.passes_for(letter), lookalikes.script_of(letter)
    if writing == LATIN or writing in _SHARED:
        return passes_for is not None
    if not latin:
        return False
    if passes_for and not passes_for.isalnum():
        around = word[max(place - 1, 0) : place] + word[place + 1 : place + 2]
        return not any(_is_foreign(each) for each in around)
    return passes_for is not None or lookalikes.has_latin_shapes(writing)


@functools.lru_cache(CACHED_SIGNS)
def _is_in_word(sign: str) -> bool:
    return sign == "_" or sign.isalnum() or lookalikes.is_accent(sign)


@functools.lru_cache(CACHED_SIGNS)
def _is_foreign(sign: str) -> bool:
    """Whether it is a letter that is not Latin, and looks like nothing in ASCII."""
    if sign.isascii() or not _is_in_word(sign):
        return False
    writing = lookalikes.script_of(sign)
    shared = writing == LATIN or (lookalikes.is_accent(sign) and writing in _SHARED)
    return not shared and lookalikes.passes_for(sign) is None
