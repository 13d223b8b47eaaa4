"""PostgreSQL engines for tests of one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.engine import PostgresEngine


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresEngine]:
    engine = await PostgresEngine.open(parse_url(url))
    try:
        yield engine
    finally:
        await engine.close()
