"""The throw-away PostgreSQL server of `frontdesk.testing`."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from frontdesk.testing import postgres


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    try:
        with postgres.running() as server:
            yield server
    except postgres.PostgresUnavailable as error:
        pytest.skip(str(error))


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def test_server_answers(server: postgres.Server) -> None:
    async with connected(server.url) as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_database_is_utf8_with_c_locale_and_durable(server: postgres.Server) -> None:
    async with connected(server.url) as connection:
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
        assert await connection.fetchval("SELECT datctype FROM pg_database LIMIT 1") == "C"
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW synchronous_commit") == "on"


async def test_committed_rows_survive_a_kill(server: postgres.Server) -> None:
    async with connected(server.url) as connection:
        await connection.execute("CREATE TABLE kept (word text)")
        await connection.execute("INSERT INTO kept VALUES ('committed')")
        server.kill()
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.fetchval("SELECT 1")
    server.start()
    async with connected(server.url) as connection:
        assert await connection.fetchval("SELECT word FROM kept") == "committed"


async def test_stopped_server_refuses_and_starts_again(server: postgres.Server) -> None:
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(server.url)
    server.start()
    async with connected(server.url) as connection:
        assert await connection.fetchval("SELECT 1") == 1


def test_stopping_and_killing_a_stopped_server_does_nothing(server: postgres.Server) -> None:
    server.stop()
    server.stop()
    server.kill()
    server.start()


def test_running_server_is_not_started_twice(server: postgres.Server) -> None:
    with pytest.raises(postgres.PostgresFailed, match="already running"):
        server.start()


@pytest.mark.usefixtures("server")
async def test_settings_come_before_defaults() -> None:
    with postgres.running(settings={"fsync": "off", "max_connections": "7"}) as server:
        async with connected(server.url) as connection:
            assert await connection.fetchval("SHOW fsync") == "off"
            assert await connection.fetchval("SHOW max_connections") == "7"


@pytest.mark.usefixtures("server")
def test_wrong_setting_fails_with_the_log_of_the_server() -> None:
    broken = postgres.running(settings={"no_such_setting": "on"})
    with pytest.raises(postgres.PostgresFailed, match="no_such_setting"), broken:
        pass


def test_directory_without_binaries_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(postgres.PostgresUnavailable, match=str(tmp_path)), postgres.running(bin_dir=tmp_path):
        pass
