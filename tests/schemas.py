"""Empty schemas for tests: emptied and used again, since creating one takes longer than most tests do."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import parse_qs, urlsplit

import asyncpg

from frontdesk import SessionStore

SHAPE = """
SELECT COUNT(*), SUM(c.relnatts), SUM((SELECT COUNT(*) FROM pg_trigger t WHERE t.tgrelid = c.oid))
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
"""
EMPTY = """
SET LOCAL session_replication_role = replica;
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT quote_ident(tablename) FROM pg_tables
        WHERE schemaname = current_schema() AND tablename NOT IN ('meta', 'indexed')
    LOOP
        EXECUTE format(CASE WHEN pg_relation_size(name::regclass) > 1000000 THEN 'TRUNCATE %s CASCADE'
            ELSE 'DELETE FROM %s' END, name);
    END LOOP;
    FOR name IN SELECT quote_ident(sequencename) FROM pg_sequences WHERE schemaname = current_schema()
    LOOP
        PERFORM setval(name::regclass, 1, false);
    END LOOP;
END $$;
UPDATE indexed SET up_to = '0';
"""


class Schemas:
    """The schemas of one server, emptied over one connection, since a new one has to learn what is there."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._emptied: list[str] = []
        self._shape: asyncpg.Record | None = None
        """Of a store as it is opened, before any test had it."""
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._connection: asyncpg.Connection | None = None

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The address of an empty store."""
        url = self._emptied.pop() if self._emptied else fresh_schema(self._server_url)
        if self._shape is None:
            self._shape = self._runner.run(self._create(url))
        yield url
        if self._runner.run(self._empty(url)):
            self._emptied.append(url)

    def close(self) -> None:
        if self._connection:
            self._runner.run(self._connection.close())
        self._runner.close()

    async def _enter(self, url: str) -> asyncpg.Connection:
        if self._connection is None:
            self._connection = await asyncpg.connect(self._server_url)
        await self._connection.execute(f"SET search_path TO {schema_of(url)}")
        return self._connection

    async def _create(self, url: str) -> asyncpg.Record | None:
        async with await SessionStore.open(url):
            pass
        connection = await self._enter(url)
        return await connection.fetchrow(SHAPE)

    async def _empty(self, url: str) -> bool:
        """False when a test changed more than rows."""
        connection = await self._enter(url)
        if not await connection.fetchval("SELECT current_schema()"):
            return True
        if await connection.fetchrow(SHAPE) != self._shape:
            return False
        async with connection.transaction():
            await connection.execute(EMPTY)
        return True


def fresh_schema(server_url: str) -> str:
    separator = "&" if "?" in server_url else "?"
    return f"{server_url}{separator}schema=t{uuid.uuid4().hex}"


def schema_of(store_url: str) -> str:
    return parse_qs(urlsplit(store_url).query)["schema"][-1]


@asynccontextmanager
async def connected(store_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the schema that a PostgreSQL store lives in."""
    path = {"search_path": schema_of(store_url)}
    connection = await asyncpg.connect(store_url.partition("?")[0], server_settings=path)
    try:
        yield connection
    finally:
        await connection.close()
