"""Background work, one row for each that somebody has told of."""

from datetime import datetime
from functools import partial

from frontdesk.model.background import BackgroundTask
from frontdesk.stores.rows import clean, from_micros, to_micros
from frontdesk.stores.work import Engine, Row, Work, row, rows, run


class BackgroundWork:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(self, work: BackgroundTask) -> None:
        await self._engine.write(partial(_begin, work))

    async def end(self, session_key: str, name: str) -> bool:
        values = {"session_key": session_key, "name": name}
        return await self._engine.write(partial(row, "end_background", **values)) is not None

    async def runs(self, session_key: str, now: datetime) -> bool:
        values = {"session_key": session_key, "now": to_micros(now)}
        return await self._engine.read(partial(row, "background_of", **values)) is not None

    async def list(self, now: datetime, limit: int) -> list[BackgroundTask]:
        values = {"now": to_micros(now), "limit": limit}
        return list(map(_read, await self._engine.read(partial(rows, "background", **values))))

    async def prune(self, now: datetime) -> None:
        await self._engine.write(partial(run, "prune_background", now=to_micros(now)), lazy=True)


def _begin(work: BackgroundTask) -> Work[None]:
    yield (
        "begin_background",
        {
            "session_key": work.session_key,
            "name": clean(work.name),
            "begun_at": to_micros(work.begun_at),
            "until": to_micros(work.until),
        },
    )


def _read(found: Row) -> BackgroundTask:
    session_key, name, begun_at, until = found
    return BackgroundTask(
        session_key=session_key, name=name, begun_at=from_micros(begun_at), until=from_micros(until)
    )
