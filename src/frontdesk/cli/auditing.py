"""Reaching the audit log: in the store, or through whoever has the store open."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
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

T = TypeVar("T")


class AuditLog:
    """The log in a store that we have opened, or of a service that runs: only approvers see that one."""

    def __init__(self, service: ConfirmationService | Client) -> None:
        self._service = service

    async def newest(self) -> int:
        """The number of the newest row; 0 when there is none."""
        if isinstance(self._service, ConfirmationService):
            return max((row.number for row in await self._service.audit_newest(1)), default=0)
        told = await self._service.talk(say("GET", "/audit?view=events&limit=1"))
        return max((entry["number"] for entry in told["entries"]), default=0)

    async def rows(self, after: int, last: int | None = None) -> AsyncGenerator[Row, None]:
        """The rows after that one, up to the last; without one, also those to come. A service ends what it
        tells now and then, and is asked again."""
        while last is None or after < last:
            before = after
            async with aclosing(self._service.follow(after)) as following:
                async for row in following:
                    after = row.number
                    yield row
                    if last is not None and after >= last:
                        return
            if after == before and last is not None and isinstance(self._service, Client):
                why = f"it told rows up to {after} of {last}"
                raise errors.ServiceUnreachable(url=self._service.url, why=why)

    async def pages(self) -> AsyncGenerator[Sequence[Row], None]:
        """The whole log, some rows at a time."""
        batch: list[Row] = []
        last = await self.newest()
        async with aclosing(self.rows(0, last)) as rows:
            async for row in rows:
                batch.append(row)
                if len(batch) == audits.ROWS_AT_ONCE or row.number >= last:
                    yield batch
                    batch = []


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
    async with aclosing(log.rows(after, last)) as rows:
        return [row async for row in rows]


def ask_log(
    loaded: Config,
    question: Callable[[AuditLog], Awaitable[T]],
    *,
    db_path: str | None = None,
    url: str | None = None,
) -> T:
    """What the log in the store answers; told by the service when another process has the store open."""

    async def ask() -> T:
        store = without_creating(config.sqlite_url(Path(db_path)) if db_path else loaded.store_url)
        try:
            opened = await open_store(store, upgrade=False)
        except errors.StoreLocked as held:
            return await question(await _far_log(loaded, url, held))
        try:
            return await question(AuditLog(ConfirmationService(opened, Settings())))
        finally:
            await opened.close()

    return asyncio.run(ask())


async def _far_log(loaded: Config, url: str | None, held: errors.StoreLocked) -> AuditLog:
    try:
        log = AuditLog(await reach_service(loaded, url))
        await log.newest()
    except (errors.ServiceUnreachable, errors.MissingSecret) as error:
        held.add_note(f"The service could not be asked instead: {error}")
        raise held from error
    return log
