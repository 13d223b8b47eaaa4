"""Reaching the audit log: in the store, or through whoever has the store open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

from frontdesk import config, errors
from frontdesk.app.opening import open_store, without_creating
from frontdesk.cli.confirm.reaching import reach_service
from frontdesk.config import Config
from frontdesk.confirm.client import Client
from frontdesk.confirm.steps import say
from frontdesk.flow import audits
from frontdesk.flow.audits import Anchor, Fault
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.audit import Row
from frontdesk.model.confirmations import Settings
from frontdesk.stores.store import Store

T = TypeVar("T")


class NearLog:
    """The log in a store that we have opened."""

    def __init__(self, store: Store) -> None:
        self._kept = store.confirmations
        self._service = ConfirmationService(store, Settings())

    def pages(self) -> AsyncIterator[Sequence[Row]]:
        return audits.pages(self._kept)

    async def newest(self) -> int:
        found = await self._kept.audit_newest(1)
        return found[0].number if found else 0

    async def follow(self, after: int) -> AsyncGenerator[Row, None]:
        async with aclosing(self._service.follow(after)) as rows:
            async for row in rows:
                yield row


class FarLog:
    """The log of a service that runs; only approvers see it."""

    def __init__(self, service: Client) -> None:
        self._service = service

    async def pages(self) -> AsyncIterator[Sequence[Row]]:
        last = await self.newest()
        batch: list[Row] = []
        reached = 0
        async with aclosing(self._service.follow(0)) as rows:
            while reached < last:
                row = await anext(rows, None)
                if row is None:
                    why = f"it told rows up to {reached} of {last}"
                    raise errors.ServiceUnreachable(url=self._service.url, why=why)
                batch.append(row)
                reached = row.number
                if len(batch) == audits.ROWS_AT_ONCE or reached >= last:
                    yield batch
                    batch = []

    async def newest(self) -> int:
        told = await self._service.talk(say("GET", "/audit?view=events&limit=1"))
        number: int = told["entries"][0]["number"] if told["entries"] else 0
        return number

    async def follow(self, after: int) -> AsyncGenerator[Row, None]:
        while True:
            async with aclosing(self._service.follow(after)) as rows:
                async for row in rows:
                    after = row.number
                    yield row


AuditLog = NearLog | FarLog


async def glance(log: AuditLog, anchor: Anchor | None) -> tuple[int, Fault | None]:
    """The number of the newest row, and what is wrong with it or with the anchored one. The others are not
    looked at: ``audits.verify`` does that."""
    newest = await log.newest()
    ends = await _read(log, max(0, newest - 2), newest)
    if anchor is None or anchor.number == 0:
        return newest, audits.check_some(ends)
    if newest < anchor.number:
        return newest, audits.cut_off(newest, anchor)
    anchored = await _read(log, anchor.number - 1, anchor.number)
    return newest, audits.check_some(ends) or audits.check_some(anchored, anchor)


async def _read(log: AuditLog, after: int, last: int) -> list[Row]:
    """The rows from there on, up to one that is there."""
    found: list[Row] = []
    if last == 0:
        return found
    async with aclosing(log.follow(after)) as rows:
        async for row in rows:
            found.append(row)
            if row.number >= last:
                break
    return found


def ask_log(
    loaded: Config,
    db_path: str | None,
    url: str | None,
    question: Callable[[AuditLog], Awaitable[T]],
) -> T:
    """What the log in the store answers; told by the service when another process has the store open."""

    async def ask() -> T:
        store = without_creating(config.sqlite_url(Path(db_path)) if db_path else loaded.store_url)
        try:
            opened = await open_store(store, upgrade=False)
        except errors.StoreLocked as held:
            return await question(await _far_log(loaded, url, held))
        try:
            return await question(NearLog(opened))
        finally:
            await opened.close()

    return asyncio.run(ask())


async def _far_log(loaded: Config, url: str | None, held: errors.StoreLocked) -> FarLog:
    try:
        log = FarLog(await reach_service(loaded, url))
        await log.newest()
    except (errors.ServiceUnreachable, errors.MissingSecret) as error:
        held.add_note(f"The service could not be asked instead: {error}")
        raise held from error
    return log
