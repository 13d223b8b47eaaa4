"""Titles: the names people give their conversations."""

import unicodedata

from frontdesk import errors

MAX_TITLE = 100


def clean_title(title: str) -> str:
    """The title with its white space unified; refuse what cannot be one."""
    if not isinstance(title, str):
        raise errors.InvalidTitle(title=title, why="it must be a text")
    cleaned = " ".join(title.split())
    if not cleaned:
        raise errors.InvalidTitle(title=title, why="it is empty")
    if len(cleaned) > MAX_TITLE:
        raise errors.InvalidTitle(title=title, why=f"it is longer than {MAX_TITLE} characters")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in cleaned):
        raise errors.InvalidTitle(title=title, why="it holds control characters")
    return cleaned


def title_key(title: str) -> str:
    """What makes two titles the same."""
    folded = unicodedata.normalize("NFKC", title).casefold()  # which can undo the normal form
    return " ".join(unicodedata.normalize("NFKC", folded).split())
