"""Snippets: the part of a message in which something was found."""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from frontdesk.formats.words import Interval, Span, is_pair, merge, spans
from frontdesk.model.searches import Term

OPEN, CLOSE, CUT = "«", "»", "…"
WIDTH_CHARACTERS = 160
BEFORE_CHARACTERS = 50
WORD_CHARACTERS = 20
"""How far a cut may move to fall between words."""
READ_CHARACTERS = 20_000
"""How far a match is looked for that is not written as it was asked for."""


def snippet(text: str, terms: Sequence[Term]) -> str:
    """The text around the first match, with the matches in it marked; its beginning if nothing matches."""
    text = unicodedata.normalize("NFC", text)
    low, high = _window(text, _first_match(text, terms))
    part = " ".join(text[low:high].split())
    marked = _mark(part, find_matches(part, terms))
    return f"{CUT if low else ''}{marked}{CUT if high < len(text) else ''}"


def find_matches(text: str, terms: Sequence[Term]) -> list[Interval]:
    """Where the terms stand in a text in form NFC, in order, those that touch each other as one."""
    simple = [term for term in terms if len(term.words) == 1] if text.isascii() else []
    matches = [match for term in simple for match in _scan(text.lower(), term)]
    if len(simple) < len(terms):
        placed = spans(text)
        matches += [match for term in terms if term not in simple for match in _matches(placed, term)]
    return merge(matches)


def _scan(text: str, term: Term) -> Iterator[Interval]:
    """The places of a single word in an ASCII text in lower case: the same as by its spans, but sooner."""
    (word,) = term.words
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if _stands_alone(text, at, end, term.prefix):
            while end < len(text) and text[end].isalnum():
                end += 1
            yield at, end
        at = text.find(word, end)


def _matches(found: list[Span], term: Term) -> Iterator[Interval]:
    head, last = term.words[:-1], term.words[-1]
    for at, (word, _, end) in enumerate(found[len(head) :]):
        if word != last and not (term.prefix and word.startswith(last)):
            continue
        if head and [span.word for span in found[at : at + len(head)]] != list(head):
            continue
        yield found[at].start, end if word.isascii() or word == last else _end_of(last, found, at + len(head))


def _end_of(beginning: str, found: list[Span], at: int) -> int:
    """Where a match ends that is only the beginning of a word: with the word, but inside a pair."""
    return found[at + 1].start if is_pair(found[at].word) and len(beginning) == 1 else found[at].end


def _first_match(text: str, terms: Sequence[Term]) -> int:
    small = text.lower()
    if len(small) == len(text):
        guesses = [at for term in terms if (at := _find(small, term)) >= 0]
        if guesses:
            return min(guesses)
    matches = find_matches(text[:READ_CHARACTERS], terms)
    return matches[0][0] if matches else 0


def _find(text: str, term: Term) -> int:
    """Where the term stands in a text as it is usually written, -1 when it may be written otherwise."""
    needle = _written(term.words)
    at = text.find(needle)
    while at >= 0 and not _stands_alone(text, at, at + len(needle), term.prefix):
        at = text.find(needle, at + 1)
    return at


@lru_cache
def _written(words: tuple[str, ...]) -> str:
    written = words[0]
    for before, word in pairwise(words):
        written += word[1:] if is_pair(before) and before[1] == word[0] else f" {word}"
    return written


def _stands_alone(text: str, start: int, end: int, prefix: bool) -> bool:
    """Whether a word of ASCII letters ends where the match does."""
    before = start > 0 and text[start].isascii() and text[start - 1].isalnum()
    after = not prefix and end < len(text) and text[end - 1].isascii() and text[end].isalnum()
    return not before and not after


def _window(text: str, match: int) -> Interval:
    low = max(0, match - BEFORE_CHARACTERS)
    high = low + WIDTH_CHARACTERS
    if low:
        low = _word_start(text, low, match)
    return low, _word_end(text, high) if high < len(text) else len(text)


def _word_start(text: str, low: int, match: int) -> int:
    space = text.find(" ", low - 1, min(low + WORD_CHARACTERS, match))
    if space >= 0:
        return space + 1
    while low < match and unicodedata.combining(text[low]):
        low += 1
    return low


def _word_end(text: str, high: int) -> int:
    space = text.rfind(" ", high - WORD_CHARACTERS, high + 1)
    if space >= 0:
        return space
    while high < len(text) and unicodedata.combining(text[high]):
        high += 1
    return high


def _mark(text: str, matches: list[Interval]) -> str:
    pieces, done = [], 0
    for start, end in matches:
        pieces += [text[done:start], OPEN, text[start:end], CLOSE]
        done = end
    return "".join([*pieces, text[done:]])
