"""The feed, read from a place on."""

from datetime import datetime
from functools import partial

from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.stores.rows import from_micros, to_micros
from frontdesk.stores.work import Engine, Row, Work, first, rows, run


class Feed:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def end(self) -> FeedPosition:
        return await self._engine.read(_end)

    async def since(self, place: FeedPosition, limit: int) -> list[FeedEvent]:
        values = {"xid": place.xid, "number": place.number, "limit": limit}
        return [_change(found) for found in await self._engine.read(partial(rows, "feed_since", **values))]

    async def prune(self, before: datetime) -> None:
        await self._engine.write(partial(run, "prune_feed", before=to_micros(before)), lazy=True)


def _end() -> Work[FeedPosition]:
    found = first((yield "feed_end", {}))
    return FeedPosition(*found) if found else FeedPosition()


def _change(found: Row) -> FeedEvent:
    xid, number, at, kind, session_key, session_id, turn_id, delivery_id, state = found
    return FeedEvent(
        place=FeedPosition(xid, number),
        at=from_micros(at),
        kind=FeedKind(kind),
        session_key=session_key,
        session_id=session_id,
        turn_id=turn_id,
        delivery_id=delivery_id,
        state=state,
    )
