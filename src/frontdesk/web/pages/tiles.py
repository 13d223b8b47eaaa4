"""Platforms in two letters, each in others."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from string import ascii_lowercase, digits

from frontdesk.model.platforms import Platform

LETTERS = ascii_lowercase + digits
BUILT_IN = frozenset(name.lower() for name in Platform.__annotations__ if name.isupper())
"""Their letters are the same whatever plug-ins there are."""


def tile(platform: str) -> str:
    """The letters of a platform; a question mark for none."""
    return _tiles(frozenset(Platform.known()) | {platform})[platform] if platform else "?"


@lru_cache(maxsize=16)
def _tiles(platforms: frozenset[str]) -> dict[str, str]:
    """Whoever comes first has the letters that everybody would choose: ours before others, short names before
    long ones."""
    given: dict[str, str] = {}
    for name in sorted(platforms, key=lambda each: (each not in BUILT_IN, len(each), each)):
        taken = set(given.values())
        given[name] = next((each for each in _choices(name) if each not in taken), name)
    return given


def _choices(name: str) -> Iterator[str]:
    """Its first letters, its first and one of the others, its first and any, any two."""
    yield name[:2]
    plain = [each for each in name if each in LETTERS]
    yield from (name[0] + each for each in (*plain[1:], *LETTERS))
    yield from map("".join, product(LETTERS, repeat=2))
