"""The audit log: read, verified and exported."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing

import msgspec

from frontdesk import errors
from frontdesk.flow import audits
from frontdesk.flow.audits import Anchor, Fault, Verified
from frontdesk.flow.chronicles import Chronicle
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.audit import Row, Standings

LAST_PLACE = 2**63 - 1
"""No request stands after it."""

Counted = Callable[[AsyncIterator[Sequence[Row]]], AsyncIterator[Sequence[Row]]]
"""The same rows, seen by somebody on their way."""


class AuditLog:
    """The log in a store that we have opened."""

    at_once = audits.ROWS_AT_ONCE
    """So many rows are looked at while nothing else happens in this process."""

    def __init__(self, service: ConfirmationService) -> None:
        self._service = service

    async def newest(self) -> int:
        """The number of the newest row; 0 when there is none."""
        return max((row.number for row in await self._service.audit_newest(1)), default=0)

    async def rows(self, after: int, last: int | None = None) -> AsyncGenerator[Row, None]:
        """The rows after that one, up to the last; without one, also those to come."""
        if last is not None and after >= last:
            return
        async with aclosing(self._service.follow(after)) as following:
            async for row in following:
                yield row
                if last is not None and row.number >= last:
                    return

    async def pages(self) -> AsyncGenerator[Sequence[Row], None]:
        """The whole log, some rows at a time."""
        batch: list[Row] = []
        last = await self.newest()
        async with aclosing(self.rows(0, last)) as rows:
            async for row in rows:
                batch.append(row)
                if len(batch) == self.at_once or row.number >= last:
                    yield batch
                    batch = []

    async def standings(self) -> AsyncGenerator[Standings, None]:
        """What the store holds of all requests and rules, some at a time."""
        after = 0
        while True:
            page = await self.stands_after(after)
            yield page
            if not page.confirmations:
                return
            after = page.confirmations[-1].number

    async def stands_after(self, after: int) -> Standings:
        return await self._service.standings(after)


async def verify_all(
    log: AuditLog,
    anchor: Anchor | None = None,
    counted: Counted = lambda batches: batches,
) -> Verified:
    """Whether the log holds, and the requests and rules in the store are as it says. ``counted`` sees how far
    it is."""
    told = Chronicle()
    verified = await audits.verify(counted(log.pages()), anchor, told)
    if not verified.whole:
        return verified
    async for page in log.standings():
        told.compare(page)
    # Afterwards, so that the log has whatever the store had when it was read.
    moved = told.catch_up(await _read(log, verified.rows, await log.newest()))
    return msgspec.structs.replace(verified, contradictions=told.contradictions(moved))


async def glance(log: AuditLog, anchor: Anchor | None) -> tuple[int, Fault | None]:
    """The number of the newest row, and what is wrong with it or with the anchored one. The others are not
    looked at: ``audits.verify`` does that. AuditUnguarded when anybody can change the log."""
    newest = await log.newest()
    fault = audits.check_some(await _read(log, max(0, newest - 2), newest)) or audits.cut_off(newest, anchor)
    if fault is None and anchor and anchor.number:
        fault = audits.check_some(await _read(log, anchor.number - 1, anchor.number), anchor)
    if fault is None and (missing := (await log.stands_after(LAST_PLACE)).unguarded):
        raise errors.AuditUnguarded(path="the store", missing=", ".join(missing))
    return newest, fault


async def _read(log: AuditLog, after: int, last: int) -> list[Row]:
    async with aclosing(log.rows(after, last)) as rows:
        return [row async for row in rows]


class ExportedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row in a file, as `frontdesk audit verify --from` reads it; ``body`` is the entry, byte for byte as
    it was hashed."""

    number: int
    previous: str
    hash: str
    body: str


def exported(row: Row) -> ExportedRow:
    # What is no text was put there by somebody else, and fits its hash in no form.
    body = row.body.decode(errors="replace")
    return ExportedRow(number=row.number, previous=row.previous, hash=row.hash, body=body)
