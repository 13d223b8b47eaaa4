"""The session service over every store."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, closing
from typing import Any, Protocol

import apsw
import pytest
import uvloop

from frontdesk import Clock, GatewayConfig, SessionStore
from frontdesk.testing import SettableClock
from tests import counts, examples, schemas
from tests.contracts.samples import LASTING

Loops = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]
GATEWAY_LOOPS: Loops = {"uvloop": uvloop.new_event_loop}
LIBRARY_LOOPS: Loops = {**GATEWAY_LOOPS, "asyncio": asyncio.new_event_loop}

DECIDED_ALIKE = {
    "test_one_reset_per_local_day",
    "test_person_is_one_in_whatever_order_their_names_are_learned",
    "test_running_service_names_a_row_that_cannot_be_read",
    "test_store_that_contradicts_the_log_is_told",
}
"""Their many examples differ in what is decided about rows, not in what a store does with them."""

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


def pytest_asyncio_loop_factories(item: pytest.Item) -> Loops:
    """The library is also used by programs that choose another loop. What differs there is how the store's
    threads and the loop wake each other: two files show it, and in `make prove` all."""
    is_library = isinstance(item, pytest.Function) and "open_session_store" in item.fixturenames
    shows_it = counts.proving() or item.path.stem in ("test_concurrency", "test_lifecycle")
    return LIBRARY_LOOPS if is_library and shows_it else GATEWAY_LOOPS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On asyncio's loop SQLite alone, whose engine has threads of its own: PostgreSQL would take minutes."""
    items[:] = [item for item in items if not {"asyncio", "postgresql"} <= _variant(item)]
    examples.leave_out_further(items, lambda item: item.name.partition("[")[0] in DECIDED_ALIKE)


def _variant(item: pytest.Item) -> set[str]:
    return set(item.name.partition("[")[2].removesuffix("]").split("-"))


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


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
        async with schemas.connected(store_url) as connection:
            await connection.execute(postgresql or sql)

    return edit


async def stored(store_url: str, sql: str) -> list[tuple[Any, ...]]:
    """What is in the database, past the store."""
    if store_url.startswith("sqlite"):
        # By the library that the store uses: another one in this process would drop the store's locks.
        with closing(apsw.Connection(store_url.removeprefix("sqlite:///"))) as file:
            return file.execute(sql).fetchall()
    async with schemas.connected(store_url) as connection:
        return list(map(tuple, await connection.fetch(sql)))
