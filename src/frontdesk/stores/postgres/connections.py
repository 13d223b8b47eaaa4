"""Connections: one by itself, or lent out of a pool."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

from frontdesk import errors
from frontdesk.stores.postgres import ahead
from frontdesk.stores.postgres.address import DatabaseAddress
from frontdesk.stores.postgres.faults import FOREIGN, translated
from frontdesk.stores.sql import Query

CONNECT_SECONDS = 10.0
ACQUIRE_SECONDS = 30.0
COMMAND_SECONDS = 60.0
ROLLBACK_SECONDS = 5.0
CLOSE_SECONDS = 10.0
UNUSED_SECONDS = 300.0
LOCK_MILLISECONDS = 500
IDLE_TRANSACTION_MILLISECONDS = 1_000
UNREAD_MILLISECONDS = 1_500
"""A client that stands still loses its locks after so long: while it says nothing in a transaction, and while
it takes no more of an answer, which only TCP can tell. What it had asked for when it stopped may still get a
lock, but does not wait for long: together less than the two seconds that others may have to wait for it."""
LIFE_ATTEMPTS = 3

P = ParamSpec("P")
T = TypeVar("T")


class Backend(NamedTuple):
    """The process of the server behind a connection: its number, which others may be given later, and when it
    started."""

    pid: int
    started: datetime


class ServerConnection(asyncpg.Connection):
    """A connection that keeps no state between uses and knows the server's life in which it was made.

    A crash of the server ends a life and cuts every connection.
    """

    life: UUID
    backend: Backend
    _transport: asyncio.Transport
    _execute: Callable[..., Awaitable[tuple[Any, bytes, bool]]]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.silent: dict[str, ahead.Silent] = {}
        """Statements that can be sent ahead of others, by their names."""
        self._prepared: list[PreparedStatement] = []
        self._attempts = itertools.count(1)
        self.given_back = time.monotonic()

    def get_reset_query(self) -> str:
        return ""

    def send_ahead(self, messages: bytes) -> None:
        """Write what is to be done before whatever is asked next; that fails if the connection has ended."""
        if not self._transport.is_closing():
            self._transport.write(messages)

    async def prepare_ahead(self, name: str, sql: str) -> None:
        """From now on the statement can be sent ahead."""
        # Whoever is cut off while the server prepares it does not know whether it has: a name is used once.
        prepared = await self.prepare(sql, name=f"{name}_{next(self._attempts)}")
        self._prepared.append(prepared)  # for as long as the connection lasts
        self.silent[name] = ahead.Silent(prepared.get_name(), prepared.get_parameters())

    async def conclude(self, command: str) -> str:
        """Run a command, after what was sent ahead of it; what the server has called it."""
        _, status, _ = await self._execute(command, (), 0, None, return_status=True)
        return status.decode()


async def connect(
    address: DatabaseAddress,
    command_seconds: float = COMMAND_SECONDS,
    unread_milliseconds: int = UNREAD_MILLISECONDS,
) -> ServerConnection:
    """A connection of its own, to be closed with `disconnect`."""
    options = _options(address, unread_milliseconds) | {"command_timeout": command_seconds}
    try:
        with translated(address.name):
            link = await asyncpg.connect(address.dsn, **options)
    except ValueError as error:
        # What asyncpg could not read may be a part of the password.
        if isinstance(error, errors.StoreError):
            raise
        raise errors.UnknownStore(url=address.name, hint=" (check host, port and parameters)") from None
    assert isinstance(link, ServerConnection)
    return link


async def disconnect(link: ServerConnection) -> None:
    with suppress(*FOREIGN):
        await link.close(timeout=CLOSE_SECONDS)


def _options(address: DatabaseAddress, unread_milliseconds: int = UNREAD_MILLISECONDS) -> dict[str, Any]:
    return {
        "connection_class": ServerConnection,
        "timeout": CONNECT_SECONDS,
        "command_timeout": COMMAND_SECONDS,
        "max_cached_statement_lifetime": 0,
        "server_settings": {
            "application_name": "frontdesk",
            "search_path": f'"{address.schema}", pg_temp',
            "idle_in_transaction_session_timeout": str(IDLE_TRANSACTION_MILLISECONDS),
            "lock_timeout": str(LOCK_MILLISECONDS),
            "tcp_user_timeout": str(unread_milliseconds),
            "jit": "off",
        },
    }


class ConnectionPool:
    """Connections that are lent. One is made when there is work and none is idle."""

    def __init__(self, address: DatabaseAddress, queries: dict[str, Query]) -> None:
        self._address = address
        self._queries = queries
        self._places = asyncio.Semaphore(address.pool)
        self._links: set[ServerConnection] = set()
        self._idle: list[ServerConnection] = []
        """Those that were used last come last, and are lent first."""
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def lend(
        self,
        use: Callable[Concatenate[ServerConnection, P], Awaitable[T]],
        /,
        *given: P.args,
        **named: P.kwargs,
    ) -> T:
        """Use a connection; when that ends in an error, its transaction is rolled back."""
        link = await self._take()
        try:
            return await use(link, *given, **named)
        except BaseException:
            await _roll_back(link)
            raise
        finally:
            self._give_back(link)

    def has_process(self, pid: int) -> bool:
        return any(link.backend.pid == pid for link in self._links)

    async def close(self) -> None:
        """Close all connections, also those that are still lent."""
        self._closed = True
        if self._sweep:
            self._sweep.cancel()
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(disconnect, idle))
        for link in self._links:
            link.terminate()

    async def _take(self) -> ServerConnection:
        if self._places.locked():
            with translated(self._address.name):
                async with asyncio.timeout(ACQUIRE_SECONDS):
                    await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            return self._unused() or await self._connect()
        except BaseException:
            self._places.release()
            raise

    def _unused(self) -> ServerConnection | None:
        while self._idle:
            link = self._idle.pop()
            if not link.is_closed():
                return link
            self._links.discard(link)
        return None

    def _give_back(self, link: ServerConnection) -> None:
        if link.is_closed():
            self._links.discard(link)
        else:
            link.given_back = time.monotonic()
            self._idle.append(link)
        self._places.release()

    async def _connect(self) -> ServerConnection:
        if self._closed:
            raise errors.StoreClosed()
        link = await connect(self._address)
        try:
            with translated(self._address.name):
                await self._welcome(link)
        except BaseException:
            link.terminate()
            raise
        self._links.add(link)
        self._sweep = self._sweep or asyncio.get_running_loop().call_later(UNUSED_SECONDS, self._end_unused)
        return link

    def _end_unused(self) -> None:
        """End those that nobody has needed for long."""
        self._sweep = None
        before = time.monotonic() - UNUSED_SECONDS
        unused = [link for link in self._idle if link.given_back < before]
        self._idle = self._idle[len(unused) :]
        self._links.difference_update(unused)
        for link in unused:
            link.terminate()
        if self._links:
            self._sweep = asyncio.get_running_loop().call_later(UNUSED_SECONDS, self._end_unused)

    async def _welcome(self, link: ServerConnection) -> None:
        for _ in range(LIFE_ATTEMPTS):
            found = await link.fetchrow(self._queries["life"].sql)
            if found is not None:
                link.life, link.backend = found["token"], Backend(found["pid"], found["backend_start"])
                return
            await self._begin_life(link)
        raise errors.StoreFailed(path=self._address.name, why="the server crashes again and again")

    async def _begin_life(self, link: ServerConnection) -> None:
        """Record that the server crashed, and how far its recovery came."""
        recovered_to = None
        with suppress(asyncpg.InsufficientPrivilegeError):
            recovered_to = await link.fetchval(self._queries["recovered_to"].sql)
        await link.execute(self._queries["begin_life"].sql, recovered_to)


async def _roll_back(link: ServerConnection) -> None:
    """End the transaction, if need be with the connection."""
    done = False
    try:
        with suppress(*FOREIGN):
            await link.execute("ROLLBACK", timeout=ROLLBACK_SECONDS)
            done = True
    finally:
        if not done:
            link.terminate()
