"""Titles: the names people give their conversations."""

import unicodedata

from frontdesk import errors

MAX_TITLE = 100
_QUOTES = frozenset("\"'`\u201a\u201e\u300c\u300d\u300e\u300f\u301d\u301e\u301f")
_SHAPELESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def clean_title(title: str) -> str:
    """The title with its white space unified and without what cannot be seen; refuse what cannot be one."""
    if not isinstance(title, str):
        raise errors.InvalidTitle(title=title, why="it must be a text")
    cleaned = " ".join("".join(char for char in title if not _is_invisible(char)).split())
    if not title_key(cleaned):
        raise errors.InvalidTitle(title=title, why="it is empty")
    if len(cleaned) > MAX_TITLE:
        raise errors.InvalidTitle(title=title, why=f"it is longer than {MAX_TITLE} characters")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in cleaned):
        raise errors.InvalidTitle(title=title, why="it holds control characters")
    return cleaned


def title_key(title: str) -> str:
    """What makes two titles the same: case, what cannot be seen and quotes around them do not count."""
    before, key = None, title
    while key != before:  # each of these can bring forth work for the others
        before = key
        seen = "".join(char for char in key if not _is_invisible(char))
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
        key = " ".join(folded.split())
        while len(key) > 1 and _is_quote(key[0]) and _is_quote(key[-1]):
            key = key[1:-1].strip()
    return key


def _is_quote(char: str) -> bool:
    return char in _QUOTES or unicodedata.category(char) in ("Pi", "Pf")


def _is_invisible(char: str) -> bool:
    if char.isascii():
        return False
    shapeless = char in _SHAPELESS or any(ord(char) in each for each in _SELECTORS)
    return shapeless or unicodedata.category(char) == "Cf"
