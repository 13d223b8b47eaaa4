"""The session service, opened by the address of its store."""

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from frontdesk.app.opening import open_store
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.flow.conversations import Conversations
from frontdesk.flow.service import HasActiveProcesses
from frontdesk.model.gateway import GatewayConfig
from frontdesk.stores.store import Store
from frontdesk.zones import machine_zone


class SessionStore(Conversations):
    """The session service over a store: every operation on conversations, for any number of callers."""

    _indexing: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        config: GatewayConfig | None = None,
        *,
        clock: Clock | None = None,
        has_active_processes_fn: HasActiveProcesses | None = None,
        upgrade: bool = True,
    ) -> Self:
        """Open ``sqlite:///path/state.db`` or ``postgresql://user@host/database``. A database of an older
        version is brought up to date, or refused without ``upgrade``."""
        service = cls(
            await open_store(url, upgrade=upgrade),
            config,
            clock=clock or SystemClock(),
            has_active_processes_fn=has_active_processes_fn,
            machine_zone=machine_zone(),
        )
        service._indexing = asyncio.create_task(service.index_when_quiet(), name="frontdesk-indexing")
        return service

    @property
    def store(self) -> Store:
        return self._store

    async def close(self) -> None:
        """Finish what is under way and let go of the store; closing twice is fine."""
        if self._indexing:
            self._indexing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._indexing
            self._indexing = None
        await self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
