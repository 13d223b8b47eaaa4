"""Transcripts of any length: read and decoded a slice at a time, so that between two slices goes on whatever
else there is to do."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

from frontdesk.contracts.store import Row, Work
from frontdesk.model.messages import Plain, Role
from frontdesk.stores.columns import read_bodies
from frontdesk.stores.work import EVER

T = TypeVar("T")

SLICE_ROWS = 500
SLICE_BYTES = 256 * 1024
"""A slice ends with the row that makes it so large."""
GIVEN_ROWS = 5_000
GIVEN_BYTES = 8 * 1024 * 1024
"""No model reads more at once than is in so many bytes of messages."""

BEGINNING = frozenset({Role.USER})
NO_RESULT = frozenset(Role) - {Role.TOOL}


def every_row(query: str, **values: object) -> Work[list[Row]]:
    """What a query gives of a transcript, whose positions stand first, a slice at a time."""
    found: list[Row] = []
    after = -1
    while True:
        rows = yield query, {**values, "after": after, "limit": SLICE_ROWS}
        found += rows
        if len(rows) < SLICE_ROWS:
            return found
        after = rows[-1][0]


def some_rows(session_id: str, after: int) -> Work[list[Row]]:
    """The rows of a transcript after a position, no more than are held at once, but for a single one."""
    values: dict[str, object] = {"session_id": session_id, "after": after}
    sizes = yield "live_sizes", {**values, "limit": SLICE_ROWS}
    fitting = _fitting([size for (size,) in sizes])
    return (yield "live_rows", {**values, "limit": fitting}) if fitting else []


def newest_rows(session_id: str) -> Work[tuple[list[Row], bool]]:
    """The newest rows of a transcript that are held at once, and whether that is all of it."""
    found = yield "newest_live_sizes", {"session_id": session_id, "limit": GIVEN_ROWS + 1}
    fitting = _fitting([size for _, size in found[:GIVEN_ROWS]])
    if not fitting:
        return [], True
    after = found[fitting - 1][0] - 1
    rows = yield "live_rows", {"session_id": session_id, "after": after, "limit": fitting}
    return rows, fitting == len(found)


def slices_of(sizes: Iterable[Row]) -> Iterator[list[int]]:
    """The numbers of rows that are read together, where beside each stands its size: no more bytes than are
    held at once, but for a single one."""
    part: list[int] = []
    held = 0
    for each, size in sizes:
        if part and held + size > GIVEN_BYTES:
            yield part
            part, held = [], 0
        part.append(each)
        held += size
    if part:
        yield part


def _fitting(sizes: Sequence[int]) -> int:
    """How many of them have no more bytes than are held at once; at least the first."""
    held = sum(total <= GIVEN_BYTES for total in accumulate(sizes))
    return max(held, 1) if sizes else 0


async def decode(bodies: Sequence[bytes], **where: object) -> list[Plain | None]:
    """The messages, None for one that cannot be read. Others have their turn after each slice."""
    found: list[Plain | None] = []
    for part in _slices(bodies):
        if found:
            await asyncio.sleep(0)
        found += read_bodies(part, **where)
    return found


async def giving_way(rows: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """The rows a few at a time; others have their turn in between."""
    for start in range(0, len(rows), SLICE_ROWS):
        if start:
            await asyncio.sleep(0)
        yield rows[start : start + SLICE_ROWS]


def _slices(bodies: Sequence[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for body in bodies:
        part.append(body)
        size += len(body)
        if len(part) == SLICE_ROWS or size >= SLICE_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def newest_bodies(session_id: str) -> Work[tuple[list[bytes], bool]]:
    """The newest rows of a transcript, as much of it as an agent is given; whether that is all."""
    found: list[Row] = []
    before, room = EVER, GIVEN_BYTES
    while room > 0 and len(found) < GIVEN_ROWS:
        asked = {"session_id": session_id, "before": before, "limit": SLICE_ROWS, "room": room}
        rows = yield "newest_rows", asked
        found += rows
        room -= sum(len(body) for _, _, body in rows)
        if len(rows) < SLICE_ROWS and room > 0:
            return _bodies(found), True
        before = rows[-1][0]
    rest = yield "live_tail", {"session_id": session_id, "before": before, "limit": 1}
    return _bodies(_from_a_turn(found) if rest else found), not rest


def _bodies(newest_first: list[Row]) -> list[bytes]:
    return [body for _, _, body in reversed(newest_first)]


def _from_a_turn(rows: list[Row]) -> list[Row]:
    """Of the newest rows, newest first, those from the beginning of a turn on. It stays the same one for as
    long as can be: what an agent was given is then the beginning of what it is given next."""
    first = roundest(rows[-1][0], rows[len(rows) // 2][0])
    kept = [row for row in rows if row[0] >= first]
    for roles in (BEGINNING, NO_RESULT):
        place = next((at for at in range(len(kept), 0, -1) if kept[at - 1][1] in roles), 0)
        if place:
            return kept[:place]
    return kept


def roundest(low: int, high: int) -> int:
    """The first number from ``low`` (1 or more) to ``high`` that is divided by the highest power of two."""
    step = 1
    while -(-low // (2 * step)) * 2 * step <= high:
        step *= 2
    return -(-low // step) * step
