"""Stores as older versions have left them."""

from contextlib import closing

import apsw

from frontdesk.stores.sql import load_migrations
from frontdesk.stores.sqlite.schema import APPLICATION_ID
from tests import schemas


async def at_version(store_url: str, version: int, *statements: str) -> None:
    """A store as an older version has left it."""
    if store_url.startswith("sqlite"):
        with closing(apsw.Connection(store_url.removeprefix("sqlite:///"))) as file:
            for script in (*load_migrations("sqlite")[:version], *statements):
                file.execute(script)
            file.pragma("application_id", APPLICATION_ID)
            file.pragma("user_version", version)
        return
    async with schemas.connected(store_url) as connection:
        schema = await connection.fetchval("SHOW search_path")
        await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE; CREATE SCHEMA "{schema}"')
        for script in (*load_migrations("postgres")[:version], *statements):
            await connection.execute(script)
        await connection.execute(f"UPDATE meta SET version = {version}")
