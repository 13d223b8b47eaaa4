"""Verifying the audit log: whether every row follows the one before it, and one that was kept elsewhere."""

import asyncio
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Self

import msgspec

from frontdesk import errors
from frontdesk.flow.chronicles import Chronicle, Contradiction
from frontdesk.model.audit import GENESIS, AuditEntry, AuditKind, Row, chain_hash

ROWS_AT_ONCE = 2_000
SEARCHED_AT_ONCE = 500
MOST_SEARCHED = 10_000
"""So many rows one search looks at; it says where the next one goes on."""
LINE = re.compile(r"(?P<number>0|[1-9][0-9]{0,17}) (?P<hash>[0-9a-f]{64}) (?P<at>[0-9T:.+-]+Z?)", re.ASCII)


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """A row as it was known at some time, kept where nobody who can change the log can change it. Row 0 is
    what stands before the first one."""

    number: int
    hash: str
    at: datetime

    @property
    def line(self) -> str:
        return f"{self.number} {self.hash} {self.at.isoformat()}"

    @classmethod
    def read(cls, line: str) -> Self:
        """An anchor as it was written down. InvalidInput when it is none."""
        found = LINE.fullmatch(line.strip())
        try:
            at = datetime.fromisoformat(found["at"]) if found else None
        except ValueError:
            at = None
        if found is None or at is None:
            raise errors.InvalidInput(what="The anchor", why="use NUMBER HASH TIME as it was written down")
        return cls(number=int(found["number"]), hash=found["hash"], at=at)


class Tampering(StrEnum):
    """How a log was tampered with."""

    EDITED = "edited"
    MISSING = "missing"
    SWAPPED = "swapped"
    TRUNCATED = "truncated"
    FORGED = "forged"
    """It follows the others, and cannot be true after them."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The first row that does not hold."""

    number: int
    change: Tampering
    why: str


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows are wanted."""

    kind: AuditKind | None = None
    actor: str = ""
    """A part of who it was, in capitals or not."""
    request: str = ""
    """The beginning of a request's id."""

    @property
    def is_empty(self) -> bool:
        return self == AuditFilter()

    def takes(self, row: Row) -> bool:
        """What cannot be read is everybody's to see, unless something certain is wanted."""
        entry = row.readable
        return self.is_empty if entry is None else self._takes(entry)

    def _takes(self, entry: AuditEntry) -> bool:
        return (
            self.kind in (None, entry.kind)
            and self.actor.casefold() in entry.actor.casefold()
            and (entry.confirmation_id or "").startswith(self.request)
        )


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    rows: int
    """How many rows hold, from the first one on."""
    anchor: Anchor | None = None
    """The last of them, to be kept outside."""
    fault: Fault | None = None
    contradictions: tuple[Contradiction, ...] = ()
    """What is not in the store as the log has it."""

    @property
    def whole(self) -> bool:
        return self.fault is None and not self.contradictions


def anchor_of(rows: Sequence[Row]) -> Anchor | None:
    """The newest of some rows, as an anchor; None when there is none that can be read."""
    newest = max(rows, key=lambda row: row.number, default=None)
    if newest is None:
        return None
    try:
        return Anchor(number=newest.number, hash=newest.hash, at=newest.entry.at)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


async def verify(
    batches: AsyncIterable[Sequence[Row]], anchor: Anchor | None = None, chronicle: Chronicle | None = None
) -> Verified:
    """Whether each row is the one that was written, in its place, and can be true after those before it:
    ``chronicle`` takes them in. Without an anchor nobody can tell that the last rows were taken away, or that
    all rows from some place on were written anew."""
    told = chronicle or Chronicle()
    last: Row | None = None
    rows = batches.__aiter__()
    async for batch in rows:
        before = last
        broken, last = _follow(batch, last, anchor)
        for row in batch[:broken]:
            if why := told.add(row):
                change = Tampering.FORGED if row.readable else Tampering.EDITED
                return _verified(before, Fault(number=row.number, change=change, why=why))
            before = row
        if broken is not None:
            later = [row.number for row in batch[broken + 1 :]]
            later += [row.number async for more in rows for row in more]
            # Where the row was before is looked for in the whole log.
            return _verified(last, await asyncio.to_thread(_fault, batch[broken], last, later))
    return _verified(last, cut_off(last.number if last else 0, anchor))


def check_some(rows: Sequence[Row], anchor: Anchor | None = None) -> Fault | None:
    """What is wrong with some rows behind each other, whatever stands before them. With an anchor, they begin
    with the anchored row."""
    last: Row | None = None
    for row in rows:
        why = _misfit(row, last, anchor if last is None else None)
        if why is not None:
            return Fault(number=row.number, change=Tampering.EDITED, why=why)
        last = row
    return None


def _misfit(row: Row, last: Row | None, anchor: Anchor | None) -> str | None:
    if row.hash != chain_hash(row.number, row.previous, row.body):
        return "it does not fit its hash"
    if last and (row.number, row.previous) != (last.number + 1, last.hash):
        return f"it does not follow row {last.number}"
    if anchor and (row.number, row.hash) != (anchor.number, anchor.hash):
        return f"it differs from the anchor of row {anchor.number}"
    return None


def _follow(batch: Sequence[Row], last: Row | None, anchor: Anchor | None) -> tuple[int | None, Row | None]:
    """Where the first row stands that does not follow, and the last one that does."""
    number, previous = (last.number, last.hash) if last else (0, GENESIS)
    anchored = anchor.number if anchor else -1
    for index, row in enumerate(batch):
        number += 1
        if (
            row.number != number
            or row.previous != previous
            or row.hash != chain_hash(number, previous, row.body)
            or (number == anchored and anchor and row.hash != anchor.hash)
        ):
            return index, last
        last, previous = row, row.hash
    return None, last


def _verified(last: Row | None, fault: Fault | None) -> Verified:
    anchor = anchor_of([last]) if last else None
    return Verified(rows=last.number if last else 0, anchor=anchor, fault=fault)


def _fault(row: Row, last: Row | None, later: Sequence[int]) -> Fault:
    """What is wrong with the row that came after the last good one."""
    number = last.number + 1 if last else 1
    if row.number != number:
        return _out_of_place(row, number, later)
    if row.hash != chain_hash(number, row.previous, row.body):
        return _unlike_its_hash(row, number + len(later))
    if row.previous != (last.hash if last else GENESIS):
        why = f"it does not follow row {number - 1}: one of the two was written anew"
        return Fault(number=number, change=Tampering.EDITED, why=why)
    why = "it differs from the anchor: it or a row before it was written anew"
    return Fault(number=number, change=Tampering.EDITED, why=why)


def _out_of_place(row: Row, number: int, later: Sequence[int]) -> Fault:
    if row.number < number or number in later:
        return Fault(number=number, change=Tampering.SWAPPED, why=f"row {row.number} stands in its place")
    return Fault(number=number, change=Tampering.MISSING, why=f"row {row.number} comes next")


def _unlike_its_hash(row: Row, rows: int) -> Fault:
    """A row that is right in another place was moved: perhaps from behind the last one that is left."""
    for other in range(1, 2 * rows + 1):
        if chain_hash(other, row.previous, row.body) == row.hash:
            return Fault(number=row.number, change=Tampering.SWAPPED, why=f"it was row {other}")
    return Fault(number=row.number, change=Tampering.EDITED, why="it does not fit its hash")


def cut_off(number: int, anchor: Anchor | None) -> Fault | None:
    """What is wrong when the log ends with that row."""
    if anchor is None or number >= anchor.number:
        return None
    why = f"the anchor knows rows up to {anchor.number}"
    return Fault(number=number + 1, change=Tampering.TRUNCATED, why=why)


ReadBefore = Callable[[int, int], Awaitable[Sequence[Row]]]
"""The rows before one, newest first, so many at most."""


async def search(
    read: ReadBefore, wanted: AuditFilter, before: int, limit: int
) -> tuple[list[Row], int | None]:
    """Rows before that one, newest first, and before which one to go on; None at the beginning of the log.
    Fewer than there may be, where so many would have to be looked at that others would wait."""
    found: list[Row] = []
    for _ in range(0, MOST_SEARCHED, SEARCHED_AT_ONCE):
        rows = await read(before, SEARCHED_AT_ONCE)
        for row in rows:
            if wanted.takes(row):
                found.append(row)
                if len(found) == limit:
                    return found, row.number if row.number > 1 else None
        if len(rows) < SEARCHED_AT_ONCE:
            return found, None
        before = rows[-1].number
    return found, before
