"""The store for many nodes: a schema in a PostgreSQL database."""

from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.engine import PostgresEngine
from frontdesk.stores.store import SqlStore


async def open_store(url: str) -> SqlStore:
    """Open ``postgresql://user@host/database``, creating the schema when there is none.

    ``?schema=name`` chooses the schema and ``?pool=10`` the most connections at once; every other parameter
    is PostgreSQL's own.
    """
    return SqlStore(await PostgresEngine.open(parse_url(url)))
