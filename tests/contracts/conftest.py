"""The session service over every store."""

import sqlite3
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from frontdesk import Clock, GatewayConfig, SessionStore
from frontdesk.testing import SettableClock
from tests.contracts.samples import LASTING

HasActiveProcesses = Callable[[str], bool | Awaitable[bool]]


class OpenSessionStore(Protocol):
    async def __call__(
        self,
        config: GatewayConfig | None = None,
        *,
        clock: Clock = ...,
        has_active_processes_fn: HasActiveProcesses | None = None,
    ) -> SessionStore: ...


class EditStore(Protocol):
    async def __call__(self, sql: str, *, postgresql: str | None = None) -> None: ...


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return fresh_schema(request.getfixturevalue("postgres_url"))


def fresh_schema(server_url: str) -> str:
    separator = "&" if "?" in server_url else "?"
    return f"{server_url}{separator}schema=t{uuid.uuid4().hex}"


@pytest.fixture
async def open_session_store(store_url: str, clock: SettableClock) -> AsyncIterator[OpenSessionStore]:
    """Opens the session service on the store, which is the same at every call."""
    async with AsyncExitStack() as opened:
        default_clock = clock

        async def open_one(
            config: GatewayConfig | None = None,
            *,
            clock: Clock = default_clock,
            has_active_processes_fn: HasActiveProcesses | None = None,
        ) -> SessionStore:
            service = await SessionStore.open(
                store_url, config, clock=clock, has_active_processes_fn=has_active_processes_fn
            )
            return await opened.enter_async_context(service)

        yield open_one


@pytest.fixture
async def service(open_session_store: OpenSessionStore) -> SessionStore:
    """The service with sessions that neither time nor messages end."""
    return await open_session_store(LASTING)


@pytest.fixture
def edit_store(store_url: str) -> EditStore:
    """Runs SQL in a store that nobody has open, as an import or an older version would have left it."""

    async def edit(sql: str, *, postgresql: str | None = None) -> None:
        if store_url.startswith("sqlite"):
            with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as file, file:
                file.execute(sql)
            return
        async with postgres_schema(store_url) as connection:
            await connection.execute(postgresql or sql)

    return edit


@asynccontextmanager
async def postgres_schema(store_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the schema that a PostgreSQL store lives in."""
    schema = parse_qs(urlsplit(store_url).query)["schema"][-1]
    connection = await asyncpg.connect(store_url.partition("?")[0], server_settings={"search_path": schema})
    try:
        yield connection
    finally:
        await connection.close()


async def stored(store_url: str, sql: str) -> list[tuple[Any, ...]]:
    """What is in the database, past the store."""
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as file:
            return file.execute(sql).fetchall()
    async with postgres_schema(store_url) as connection:
        return list(map(tuple, await connection.fetch(sql)))
