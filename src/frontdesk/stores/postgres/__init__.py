"""The store for many nodes: a schema in a PostgreSQL database."""

from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.engine import PostgresEngine
from frontdesk.stores.postgres.nodes import PostgresNodes
from frontdesk.stores.store import Store


async def open_store(url: str, *, upgrade: bool = True) -> Store:
    """Open ``postgresql://user@host/database``, creating the schema when there is none. Without ``upgrade`` a
    schema of an older version is refused as it is.

    ``?schema=name`` chooses the schema and ``?pool=10`` the most connections at once; every other parameter
    is PostgreSQL's own.
    """
    address = parse_url(url)
    engine = await PostgresEngine.open(address, upgrade=upgrade)
    return Store(engine, PostgresNodes(address, engine), upgraded=engine.upgraded)
