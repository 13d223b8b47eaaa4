"""What is asked about the audit log: what happened, and whether nobody has changed that since."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, TypedDict

import msgspec

from frontdesk.app import auditlog
from frontdesk.app.auditlog import AuditLog, ExportedRow
from frontdesk.app.office.counters import LIST_LIMIT, Counter
from frontdesk.app.office.plain import among, chosen, picked, plain
from frontdesk.flow import audits
from frontdesk.flow.audits import AuditFilter, Verified
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model import pages
from frontdesk.model.audit import AuditKind, Row
from frontdesk.model.confirmations import Settings

TOLD_SECONDS = 0.5
"""So often somebody who waits for the verification is told how far it is."""


class AuditLine(TypedDict):
    """A row of the log. One that cannot be read was changed by somebody: of it only the number is known."""

    number: int
    hash: str
    readable: bool
    kind: str | None
    at: str | None
    actor: str | None
    confirmation_id: str | None
    digest: str | None
    facts: dict[str, Any]


class AuditPage(TypedDict):
    items: list[AuditLine]
    next: str | None
    """Where to go on; there may be fewer rows than were asked for where many had to be looked at."""


class AuditFault(TypedDict):
    number: int
    change: str
    why: str


class AuditContradiction(TypedDict):
    id: str
    why: str


class AuditVerdict(TypedDict):
    """How far a verification is, and at its end what it found."""

    rows: int
    of: int
    done: bool
    whole: bool
    """Nothing was found to be wrong so far."""
    fault: AuditFault | None
    contradictions: list[AuditContradiction]
    anchor: str | None
    """The newest row, to be kept where nobody can change it together with the log."""


class AuditCounter(Counter):
    async def list_audit(
        self,
        kind: Annotated[str, among(AuditKind)] | None = None,
        person: str | None = None,
        request: str | None = None,
        after: str | None = None,
        limit: int = LIST_LIMIT,
    ) -> AuditPage:
        """What was asked, decided and carried out, newest first: of one kind, by a part of who it was, by the
        beginning of a request's id."""
        wanted = AuditFilter(
            kind=None if kind is None else chosen("kind", AuditKind, kind),
            actor=person or "",
            request=request or "",
        )
        before, _ = pages.read_place(after, auditlog.LAST_PLACE)
        found, then = await audits.search(
            self._store.confirmations.audit_before, wanted, before, pages.check_items(limit)
        )
        return {
            "items": [_line(row) for row in found],
            "next": None if then is None else pages.place(then),
        }

    async def verify_audit(self) -> AsyncGenerator[AuditVerdict, None]:
        """Whether every row follows the one before it and can be true after it, and the requests and rules in
        the store are as the log says: how far that is, line by line, and last what was found."""
        log, seen = self._audit_log, _Progress()
        last = await log.newest()
        checking = asyncio.create_task(self._verify(log, seen))
        try:
            while not checking.done():
                yield _verdict(Verified(rows=seen.rows), last, done=False)
                await asyncio.wait({checking}, timeout=TOLD_SECONDS)
            found = checking.result()
            yield _verdict(found, max(last, found.rows), done=True)
        finally:
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)

    async def _verify(self, log: AuditLog, seen: "_Progress") -> Verified:
        async with self._verifying:
            return await auditlog.verify_all(log, None, seen.counted)

    async def export_audit(self) -> AsyncGenerator[ExportedRow, None]:
        """The whole log, a row in each line, as `frontdesk audit verify --from` reads it."""
        async with aclosing(self._audit_log.pages()) as batches:
            async for batch in batches:
                for row in batch:
                    yield auditlog.exported(row)

    @property
    def _audit_log(self) -> AuditLog:
        if self._gateway:
            return _BusyAuditLog(self._gateway.parts.confirmations)
        return _BusyAuditLog(ConfirmationService(self._store, Settings(), clock=self._clock))


class _BusyAuditLog(AuditLog):
    """One in a process that has other things to do meanwhile."""

    at_once = 200


class _Progress:
    def __init__(self) -> None:
        self.rows = 0

    async def counted(self, batches: AsyncIterator[Sequence[Row]]) -> AsyncIterator[Sequence[Row]]:
        async for batch in batches:
            yield batch
            self.rows += len(batch)


def _verdict(found: Verified, last: int, *, done: bool) -> AuditVerdict:
    return {
        "rows": found.rows,
        "of": last,
        "done": done,
        "whole": found.whole,
        "fault": msgspec.to_builtins(found.fault),
        "contradictions": msgspec.to_builtins(list(found.contradictions)),
        "anchor": found.anchor.line if found.anchor else None,
    }


def _line(row: Row) -> AuditLine:
    entry = row.readable
    if entry is None:
        known = dict.fromkeys(("kind", "at", "actor", "confirmation_id", "digest"))
        return {"number": row.number, "hash": row.hash, "readable": False, "facts": {}, **known}  # type: ignore[typeddict-item]
    told = picked(entry, "at", "actor", "confirmation_id", "digest") | {"kind": str(entry.kind)}
    facts = plain(dict(entry.facts))
    return {"number": row.number, "hash": row.hash, "readable": True, "facts": facts, **told}  # type: ignore[typeddict-item]
