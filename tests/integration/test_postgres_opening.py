"""Opening a PostgreSQL store: what is created, and what is refused."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from uuid import uuid4

import asyncpg
import pytest

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.engine import PostgresEngine
from frontdesk.stores.work import value as value_of
from frontdesk.testing import postgres
from tests.integration.engines import opened

PASSWORD = "correct-horse"
WRONG_PASSWORD = "tr0ub4dor"


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database address with a schema of its own."""
    return f"{postgres_url}?schema=test_{uuid4().hex}"


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server of these tests' own."""
    try:
        with postgres.running(settings={"fsync": "off"}) as server:
            yield server
    except postgres.PostgresUnavailable as error:
        pytest.skip(str(error))


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    address = parse_url(url)
    connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
    try:
        yield connection
    finally:
        await connection.close()


async def tables(url: str) -> list[tuple[str, int]]:
    """The schema's tables, and how many columns each has."""
    async with connected(url) as connection:
        found = await connection.fetch(
            "SELECT c.relname, c.relnatts FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = $1 ORDER BY 1",
            parse_url(url).schema,
        )
    return list(map(tuple, found))


def put(key: str, value: str) -> Work[None]:
    yield "learn_alias", {"identifier": key, "canonical": value}


def get(key: str) -> Work[str | None]:
    return value_of("canonical", identifier=key)


async def test_eight_nodes_open_a_new_schema_at_once(url: str) -> None:
    engines = await asyncio.gather(*(PostgresEngine.open(parse_url(url)) for _ in range(8)))
    await asyncio.gather(*(engine.write(partial(put, str(n), "x")) for n, engine in enumerate(engines)))
    assert [await engines[0].read(partial(get, str(number))) for number in range(8)] == ["x"] * 8
    await asyncio.gather(*(engine.close() for engine in engines))


async def test_reopening_changes_nothing_and_finds_everything(url: str) -> None:
    async with opened(url) as engine:
        await engine.write(partial(put, "a", "one"))
    before = await tables(url)
    async with opened(url) as engine:
        assert await engine.read(partial(get, "a")) == "one"
    assert await tables(url) == before


async def test_schemas_of_one_database_are_apart(url: str) -> None:
    async with opened(url) as one, opened(f"{url}_other") as other:
        await one.write(partial(put, "a", "one"))
        assert await other.read(partial(get, "a")) is None


async def test_newer_schema_is_refused_and_left_alone(url: str) -> None:
    async with opened(url):
        pass
    async with connected(url) as connection:
        await connection.execute("DROP TABLE aliases; UPDATE meta SET version = 9999")
    before = await tables(url)
    with pytest.raises(errors.NewerDatabase, match="9999"):
        await PostgresEngine.open(parse_url(url))
    assert await tables(url) == before


@pytest.mark.parametrize(
    "table",
    [
        "notes (word text)",
        "meta (version bigint)",
        "meta (application text, version bigint)",
        "meta AS SELECT 'other' AS application, 1 AS version",
    ],
)
async def test_foreign_schema_is_refused_and_left_alone(url: str, table: str) -> None:
    async with connected(url) as connection:
        schema = parse_url(url).schema
        await connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table}")
    before = await tables(url)
    with pytest.raises(errors.ForeignDatabase):
        await PostgresEngine.open(parse_url(url))
    assert await tables(url) == before


async def test_empty_schema_made_by_the_administrator_is_used(url: str, postgres_url: str) -> None:
    role, schema = f"role_{uuid4().hex}", parse_url(url).schema
    async with connected(url) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN; CREATE SCHEMA {schema} AUTHORIZATION {role}")
    async with opened(url.replace("postgres@", f"{role}@")) as engine:
        await engine.write(partial(put, "a", "one"))
        assert await engine.read(partial(get, "a")) == "one"


async def test_role_that_may_not_create_a_schema_is_told(url: str) -> None:
    role = f"role_{uuid4().hex}"
    async with connected(url) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN")
    with pytest.raises(errors.ReadOnlyStore, match="permission denied"):
        await PostgresEngine.open(parse_url(url.replace("postgres@", f"{role}@")))


async def test_read_only_server_is_refused(url: str) -> None:
    with pytest.raises(errors.ReadOnlyStore):
        await PostgresEngine.open(parse_url(f"{url}&default_transaction_read_only=on"))
    assert await tables(url) == []


async def test_server_that_became_read_only_is_told(url: str) -> None:
    role = f"role_{uuid4().hex}"
    async with connected(url) as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
        async with opened(url.replace("postgres@", f"{role}@")) as engine:
            await connection.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
            with pytest.raises(errors.ReadOnlyStore):
                await engine.write(partial(put, "a", "one"))
            with pytest.raises(errors.ReadOnlyStore):
                await engine.check()


async def test_database_in_another_encoding_is_refused(server: postgres.Server) -> None:
    async with connected(server.url) as connection:
        await connection.execute("CREATE DATABASE old TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(errors.UnsuitableServer, match="LATIN1"):
        await PostgresEngine.open(parse_url(server.url.removesuffix("postgres") + "old"))


async def test_missing_database_is_named_with_what_to_do(server: postgres.Server) -> None:
    with pytest.raises(errors.StoreUnavailable, match=r'"nothing" does not exist; create it'):
        await PostgresEngine.open(parse_url(server.url.removesuffix("postgres") + "nothing"))


async def test_server_that_is_down_is_unavailable(server: postgres.Server) -> None:
    server.stop()
    try:
        with pytest.raises(errors.StoreUnavailable):
            await PostgresEngine.open(parse_url(server.url))
    finally:
        server.start()


async def test_wrong_password_is_told_without_showing_it(server: postgres.Server) -> None:
    async with connected(server.url) as connection:
        await connection.execute(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        path = await connection.fetchval("SHOW hba_file")
        await connection.execute(
            "COPY (VALUES ('host all guarded 127.0.0.1/32 scram-sha-256'),"
            f" ('host all all 127.0.0.1/32 trust')) TO '{path}'"
        )
    server.stop()
    server.start()
    async with opened(server.url.replace("postgres@", f"guarded:{PASSWORD}@")):
        pass
    with pytest.raises(errors.StoreUnavailable, match="check the user and the password") as raised:
        await PostgresEngine.open(parse_url(server.url.replace("postgres@", f"guarded:{WRONG_PASSWORD}@")))
    assert "guarded@" in str(raised.value)
    shown = [*traceback.format_exception(raised.value), repr(vars(raised.value))]
    assert not any(WRONG_PASSWORD in line for line in shown)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@host:wrong/db",
        "postgresql://me:sec/ret@host/db",
        "postgresql://me:sec@ret@host/db",
        "postgresql://me:1?ret@host/db",
        "postgresql://me:1#ret@host/db",
    ],
)
async def test_address_that_cannot_be_read_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(errors.UnknownStore) as raised:
        parse_url(url)
    assert "ret" not in str(raised.value)
    assert "sec" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:secret@host:5432/db?schema=s&password=secret", "postgresql://me@host:5432/db"),
        ("postgres://host/db", "postgresql://host/db"),
        ("postgresql:///db?host=/tmp", "postgresql:///db"),
        ("postgresql://me@[::1]:5432,other/db", "postgresql://me@[::1]:5432,other/db"),
        ("postgresql://me:sec%2Fret@%2Ftmp/db", "postgresql://me@%2Ftmp/db"),
    ],
)
def test_address_is_shown_without_password_and_parameters(url: str, name: str) -> None:
    address = parse_url(url)
    assert address.name == name
    assert "sec" not in repr(address)


def test_our_parameters_are_taken_off_the_address() -> None:
    address = parse_url("postgresql://me:p%40@host/db?sslmode=require&pool=3&schema=mine&options=-c%20a%3Db")
    assert (address.pool, address.schema) == (3, "mine")
    assert address.dsn == "postgresql://me:p%40@host/db?sslmode=require&options=-c+a%3Db"


@pytest.mark.parametrize(
    "query", ["pool=0", "pool=x", "pool=1001", "schema=pg_x", "schema=A", "schema=a%22b"]
)
def test_parameter_out_of_range_is_refused(query: str) -> None:
    with pytest.raises(errors.InvalidSetting):
        parse_url(f"postgresql://host/db?{query}")
