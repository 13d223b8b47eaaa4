"""The default store: one SQLite file, owned by one process."""

import asyncio
from contextlib import suppress

from frontdesk import errors
from frontdesk.stores.sqlite.engine import SqliteEngine
from frontdesk.stores.sqlite.files import Location, parse_url
from frontdesk.stores.store import Store


async def open_store(url: str, *, upgrade: bool = True) -> Store:
    """Open ``sqlite:///path/state.db``, creating the file when there is none. Without ``upgrade`` a database
    of an older version is refused as it is."""
    engine = await _open_engine(parse_url(url), upgrade)
    return Store(engine, upgraded=engine.upgraded)


async def _open_engine(place: Location, upgrade: bool) -> SqliteEngine:
    """Whoever stops waiting for a file to open leaves it closed."""
    opening = asyncio.ensure_future(asyncio.to_thread(SqliteEngine, place, upgrade=upgrade))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(errors.StoreError):
            await (await opening).close()
        raise
