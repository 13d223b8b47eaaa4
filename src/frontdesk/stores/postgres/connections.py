"""Connections: one by itself, or lent out of a pool."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from asyncpg.prepared_stmt import PreparedStatement
from asyncpg.types import Type

from frontdesk import errors
from frontdesk.stores.postgres.address import DatabaseAddress
from frontdesk.stores.postgres.faults import FOREIGN, translated
from frontdesk.stores.sql import Query

CONNECT_SECONDS = 10.0
ACQUIRE_SECONDS = 30.0
COMMAND_SECONDS = 60.0
ROLLBACK_SECONDS = 5.0
CLOSE_SECONDS = 10.0
LOCK_MILLISECONDS = 500
IDLE_TRANSACTION_MILLISECONDS = 1_000
UNREAD_MILLISECONDS = 1_500
"""A client that stands still loses its locks after so long: while it says nothing in a transaction, and while
it takes no more of an answer, which only TCP can tell. What it had asked for when it stopped may still get a
lock, but does not wait for long: together less than the two seconds that others may have to wait for it."""
LIFE_ATTEMPTS = 3

Lent = PoolConnectionProxy


class ServerConnection(asyncpg.Connection):
    """A connection that keeps no state between uses and knows the server's life in which it was made.

    A crash of the server ends a life and cuts every connection.
    """

    life: UUID
    _transport: asyncio.Transport
    _execute: Callable[..., Awaitable[tuple[Any, bytes, bool]]]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.prepared: dict[str, tuple[PreparedStatement, Sequence[Type]]] = {}
        """Statements that can be sent ahead of others, by their names, and the types of their values."""

    def get_reset_query(self) -> str:
        return ""

    def send_ahead(self, messages: bytes) -> None:
        """Write what is to be done before whatever is asked next; that fails if the connection has ended."""
        if not self._transport.is_closing():
            self._transport.write(messages)

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
    """A pool. It connects when there is work, and again after the server was away."""

    def __init__(self, address: DatabaseAddress, queries: dict[str, Query]) -> None:
        self._name = address.name
        self._queries = queries
        self._pool = asyncpg.create_pool(
            address.dsn, min_size=0, max_size=address.pool, init=self._welcome, **_options(address)
        )

    async def open(self) -> None:
        await self._pool

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Lent]:
        """A connection; when its use ends in an error, its transaction is rolled back."""
        with translated(self._name):
            link = await self._pool.acquire(timeout=ACQUIRE_SECONDS)
        well = False
        try:
            yield link
            well = True
        finally:
            if not well:
                await _roll_back(link)
            with suppress(*FOREIGN):
                await self._pool.release(link)

    async def close(self) -> None:
        """Close all connections, in the end also those that are lent."""
        with suppress(*FOREIGN):
            await asyncio.wait_for(self._pool.close(), CLOSE_SECONDS)

    async def _welcome(self, link: asyncpg.Connection) -> None:
        assert isinstance(link, ServerConnection)
        for _ in range(LIFE_ATTEMPTS):
            life = await link.fetchval(self._queries["life"].sql)
            if life is not None:
                link.life = life
                return
            await self._begin_life(link)
        raise errors.StoreFailed(path=self._name, why="the server crashes again and again")

    async def _begin_life(self, link: ServerConnection) -> None:
        """Record that the server crashed, and how far its recovery came."""
        recovered_to = None
        with suppress(asyncpg.InsufficientPrivilegeError):
            recovered_to = await link.fetchval(self._queries["recovered_to"].sql)
        await link.execute(self._queries["begin_life"].sql, recovered_to)


def behind(link: Lent) -> ServerConnection:
    """The connection that is lent."""
    return cast("ServerConnection", link)  # the proxy passes every name on


async def _roll_back(link: Lent) -> None:
    """End the transaction, if need be with the connection."""
    done = False
    try:
        with suppress(*FOREIGN):
            await link.execute("ROLLBACK", timeout=ROLLBACK_SECONDS)
            done = True
    finally:
        if not done:
            cut(link)


def cut(link: Lent) -> None:
    """Give the connection up; one that broke is given up already."""
    with suppress(asyncpg.InterfaceError):
        link.terminate()
