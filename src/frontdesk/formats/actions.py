"""An action as people see it before they decide: all of it, from the bytes that would be executed."""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from frontdesk.formats import canonical, masking, scripts
from frontdesk.model.lookalikes import is_accent

INDENT = "  "
SPACE = "␣"
"""Stands for a space that would not be seen: at either end of a line, or beside another one."""
MOST_MARKS = 2
"""So many accents in a row stay; more would cover what is around them."""
CACHED_SIGNS = 4096

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NAME = re.compile(rf'{_PLAIN_NAME.pattern}|"(?:[^"\\]|\\.)*"|{re.escape(masking.MARK)}')
_PLAIN_LINE = re.compile(r"(?:[!#-\[\]-~]++[ ]?)*+(?<! )")
_SPACES = r"(?P<spaces>[ ]{2,}|\A[ ]|[ ]\Z)"
_ASCII_PIECES = re.compile(rf'{_SPACES}|(?P<sign>["\\\x00-\x1f\x7f])')
_PIECES = re.compile(rf"{_SPACES}|(?P<bullets>•{{2,}}|[∙●⦁⬤⚫⋅]{{3,}})|(?P<word>\w+)|(?P<sign>\W)")
# Half a character, which no payload has, stands for what is hidden.
_HIDDEN = "\ud800"
_ESCAPED = re.compile(r"\\.")
_SPELLED = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\r": "\\r", _HIDDEN: masking.MARK}
# What cannot be seen, though Unicode does not count it among the controls; signs that pass for those of
# ASCII; the signs of our own marks, and what passes for them; second forms of letters that nobody types.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U00016fe4\U0001d159"
    "\U000e0100-\U000e01ef"
    "\u02d0\u02d7\u037e\u0387\u2010\u2011\u2024\u2044\u2212\u2215-\u2217\u2223\u2236\u29f5\u29f8\u29f9\ua789"
    "\ufe52\ufe55\ufe58\ufe68\u2423\u23b5\u27e6\u27e7\u301a\u301b\U00013441\U00013442"
    "\u2135-\u2138\u2e80-\u2fd5\ufb20-\ufb28\ufb50-\ufdef\ufe70-\ufefc\U0001d400-\U0001d7ff\U0001ee00-\U0001eeff]"
)
_JAMO = re.compile("[\u1161-\u1175\u11a8-\u11c2]")


Name = Callable[[str], str]
"""How the name of an argument is written."""


def lines_of(value: Any, *, reveal: bool = False) -> list[str]:
    """A value of JSON, perhaps with secrets covered, as it is shown; names that hold a secret are masked,
    too, unless revealed."""
    return [*_lines(value, spelled_name if reveal else masked_name)]


def in_line(value: Any) -> str:
    """A value of JSON in one line, as it is shown."""
    if isinstance(value, list) and not any(isinstance(each, dict | list) for each in value):
        return f"[{', '.join(' '.join(lines_of(each)) for each in value)}]"
    return " ".join(line.strip() for line in lines_of(value))


def spelled(text: str | masking.Partly) -> str:
    """A text in quotes, all of it in one line."""
    return " ".join(_text(text))


def unquoted(text: str) -> str:
    """A text in one line, without quotes around it: where it stands alone, those in it need no sign."""
    lines = "\\n".join(map(_spelled, text.split("\n")))
    return _ESCAPED.sub(lambda found: found[0].removeprefix("\\") if found[0] == '\\"' else found[0], lines)


def _lines(value: Any, name: Name) -> Iterator[str]:
    """A value that has lines of its own."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _entry(f"{name(key)}:", each, name)
    elif isinstance(value, list) and value:
        for each in value:
            yield from _entry("-", each, name)
    else:
        yield from _scalar(value)


def _entry(head: str, value: Any, name: Name) -> Iterator[str]:
    lines = [*_lines(value, name)]
    if len(lines) == 1 and not (isinstance(value, dict | list) and value):
        yield f"{head} {lines[0]}"
    else:
        yield head
        yield from (INDENT + line for line in lines)


def name_in(entry: str) -> str:
    """The name that an entry begins with, as it is shown."""
    found = _NAME.match(entry)
    return found[0] if found else entry


def masked_name(key: str) -> str:
    name = masking.cover(key)
    return spelled_name(name) if isinstance(name, str) else spelled(name)


def spelled_name(key: str) -> str:
    return key if _PLAIN_NAME.fullmatch(key) else spelled(key)


def _scalar(value: Any) -> list[str]:
    match value:
        case str() | masking.Partly():
            return _text(value)
        case None | True | False:
            return [str(canonical.canonical(value), "ascii")]
        case int() | float():
            return [canonical.number(value)]
        case _:
            return ["[]" if isinstance(value, list) else "{}"]


def _text(text: str | masking.Partly) -> list[str]:
    """A text in quotes, each of its lines in its own; a secret that is all of it has none."""
    parts = text.parts if isinstance(text, masking.Partly) else (text,)
    if isinstance(text, masking.Partly) and text.is_all_hidden:
        return [masking.MARK]
    shown = (_HIDDEN if isinstance(part, masking.Hidden) else part for part in parts)
    *broken, last = "".join(shown).split("\n")
    lines = [f'"{_spelled(line)}\\n"' for line in broken]
    return lines if lines and not last else [*lines, f'"{_spelled(last)}"']


def _spelled(line: str) -> str:
    """A line with everything in it that could not be seen, or passes for something else, as an escape.
    No two lines are spelled the same."""
    if _PLAIN_LINE.fullmatch(line):
        return line
    if line.isascii():
        return _ASCII_PIECES.sub(lambda piece: _piece(piece, True, frozenset()), line)
    composed = unicodedata.is_normalized("NFC", line)
    placed, said = scripts.with_places(line)
    doubtful = scripts.doubtful_letters(placed)
    return scripts.with_marks(_PIECES.sub(lambda piece: _piece(piece, composed, doubtful), placed), said)


def _piece(piece: re.Match[str], composed: bool, doubtful: frozenset[int]) -> str:
    text = piece[0]
    match piece.lastgroup:
        case "spaces":
            return SPACE * len(text)
        case "bullets":
            return "".join(map(_escape, text))
        case "word":
            return _word(piece, composed, doubtful)
        case _:
            return _SPELLED.get(text) or _sign(piece, composed, doubtful)


def _word(piece: re.Match[str], composed: bool, doubtful: frozenset[int]) -> str:
    word, places = piece[0], range(*piece.span())
    if composed and doubtful.isdisjoint(places) and word.isprintable() and not _UNSEEN.search(word):
        return word
    return "".join(
        _escape(letter) if place in doubtful or _is_lost(letter, composed) else letter
        for place, letter in zip(places, word, strict=True)
    )


def _is_lost(sign: str, composed: bool) -> bool:
    return _is_unseen(sign) or (not composed and _may_compose(sign))


def _sign(piece: re.Match[str], composed: bool, doubtful: frozenset[int]) -> str:
    sign = piece[0]
    if scripts.hold_place(sign):
        return sign
    unclear = scripts.is_doubtful_sign(piece.string, piece.start())
    if unclear or _is_lost(sign, composed) or (is_accent(sign) and not _is_readable(piece, doubtful)):
        return _escape(sign)
    return sign


def _is_readable(mark: re.Match[str], doubtful: frozenset[int]) -> bool:
    """Whether a mark is on something that is shown, and not on too many others."""
    if not doubtful.isdisjoint(range(mark.start() - MOST_MARKS, mark.start())):
        return False
    before = mark.string[max(mark.start() - MOST_MARKS, 0) : mark.start()]
    bases = [sign for sign in before if not is_accent(sign)]
    return bool(bases) and bases[-1].isalnum() and scripts.may_carry(bases[-1], mark[0])


@functools.lru_cache(CACHED_SIGNS)
def _is_unseen(sign: str) -> bool:
    return not sign.isprintable() or bool(_UNSEEN.match(sign))


@functools.lru_cache(CACHED_SIGNS)
def _may_compose(sign: str) -> bool:
    """Whether another spelling of the same may have something else in its place."""
    return is_accent(sign) or bool(_JAMO.match(sign)) or not unicodedata.is_normalized("NFC", sign)


def _escape(sign: str) -> str:
    return f"\\u{{{ord(sign):x}}}"
