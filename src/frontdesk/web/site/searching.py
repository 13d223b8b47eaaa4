"""What people write into the search box of the sessions: words, and what they are to be filtered by."""

import re

import msgspec

from frontdesk.model.lists import ListedStates
from frontdesk.model.platforms import Platform

QUERY_CHARACTERS = 200
FILTERS = ("platform", "person", "state")
WORD = re.compile(r'(?:(\w+):)?("[^"]*"|\S+)')
STATES = tuple(map(str, ListedStates))


class SearchWish(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to see."""

    words: str = ""
    platform: str | None = None
    person: str | None = None
    state: str | None = None
    unclear: tuple[str, str] | None = None
    """A filter whose value means nothing, and that value; or what looks like a filter, and is none."""
    rest: str = ""
    """All of it but the state, which has a tab."""

    @property
    def is_misspelt(self) -> bool:
        """Whether a filter was given something that there is not: then nothing is like that."""
        return self.unclear is not None and self.unclear[0] in FILTERS


def read_wish(written: str) -> SearchWish:
    """Words as they stand; ``platform:``, ``person:`` and ``state:`` with a word, or several in quotes."""
    named: dict[str, str] = {}
    words, rest = [], []
    unclear = None
    for match in WORD.finditer(written[:QUERY_CHARACTERS]):
        whole, name, value = match[0], (match[1] or "").lower(), match[2].strip('"').strip()
        if name not in FILTERS or not value:
            words.append(whole)
            unclear = unclear or ((name, value) if name and not name.isdigit() else None)
        elif meant := _meant(name, value):
            named[name] = meant
        else:
            unclear = (name, value)
        if name != "state" or name not in named:
            rest.append(whole)
    return SearchWish(words=" ".join(words), unclear=unclear, rest=" ".join(rest), **named)


def _meant(name: str, value: str) -> str | None:
    """What a value stands for; None for one that there is not."""
    if name == "person":
        return value
    known = STATES if name == "state" else Platform.known()
    lowered = value.lower()
    return lowered if lowered in known else None


def choices(name: str) -> str:
    """Which values there are."""
    return ", ".join(STATES if name == "state" else sorted(Platform.known()))
