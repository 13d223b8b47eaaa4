"""Long lists, a page at a time: where one ends is where the next begins, whatever was added before it."""

import re
from typing import Generic, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.model import inputs

Item = TypeVar("Item")

PAGE_ITEMS = 50
MOST_ITEMS = 200
PLACE = re.compile(r"(-?\d{1,18})(?:~([^\x00-\x20\x7f]{1,200}))?")


class ListPage(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """Some items of a list, in its order."""

    items: list[Item]
    next: str | None = None
    """Where the list goes on; None when this is its end."""


def check_items(limit: int) -> int:
    """How many items a page has at most."""
    return max(1, min(inputs.check_limit(limit), MOST_ITEMS))


def place(number: int, name: str = "") -> str:
    """Where a page ends: a number that orders the list, and a name among those that have the same."""
    return f"{number}~{name}" if name else str(number)


def read_place(written: str | None, otherwise: int) -> tuple[int, str]:
    """What `place` wrote; InvalidInput for anything else."""
    if written is None:
        return otherwise, ""
    inputs.check_kind("cursor", written, str)
    found = PLACE.fullmatch(written)
    if found is None:
        raise no_place(written)
    return int(found[1]), found[2] or ""


def no_place(written: str) -> errors.InvalidInput:
    """Says of a cursor that no page gave it."""
    return errors.InvalidInput(what=f"the cursor {written[:40]!r}", why="use one that a page gave")


def cut(found: list[Item], limit: int) -> tuple[list[Item], bool]:
    """The items of a page, of which one more was asked for, and whether the list goes on."""
    return found[:limit], len(found) > limit
