"""The feed, read from a place on."""

from datetime import datetime
from functools import partial

from frontdesk.model.feed import Change, Kind, Place
from frontdesk.stores.rows import from_micros, to_micros
from frontdesk.stores.work import Engine, Row, Work, row, rows, run


class Feed:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def end(self) -> Place:
        return await self._engine.read(_end)

    async def since(self, place: Place, limit: int) -> list[Change]:
        values = {"xid": place.xid, "number": place.number, "limit": limit}
        return [_change(found) for found in await self._engine.read(partial(rows, "feed_since", **values))]

    async def prune(self, before: datetime) -> None:
        await self._engine.write(partial(run, "prune_feed", before=to_micros(before)), lazy=True)


def _end() -> Work[Place]:
    found = yield from row("feed_end")
    return Place(*found) if found else Place()


def _change(found: Row) -> Change:
    xid, number, at, kind, session_key, session_id, turn_id, delivery_id, state = found
    return Change(
        place=Place(xid, number),
        at=from_micros(at),
        kind=Kind(kind),
        session_key=session_key,
        session_id=session_id,
        turn_id=turn_id,
        delivery_id=delivery_id,
        state=state,
    )
