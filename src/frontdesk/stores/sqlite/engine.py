"""The SQLite engine: one writer that commits in groups, a few readers."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar, cast

from frontdesk import errors
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import Knowable, Work
from frontdesk.stores.posts import Posts
from frontdesk.stores.sql import load_queries
from frontdesk.stores.sqlite import wal
from frontdesk.stores.sqlite.faults import WriteHealth, translated
from frontdesk.stores.sqlite.files import Location, Ownership, check_log, create, prepare
from frontdesk.stores.sqlite.opening import open_writer
from frontdesk.stores.sqlite.readers import Glances, Readers, look_through
from frontdesk.stores.sqlite.threads import WorkThreads
from frontdesk.stores.sqlite.writer import Writer
from frontdesk.stores.work import probe

T = TypeVar("T")

READERS = 3
GLANCED_ROWS = 256


class SqliteEngine:
    """Owns the file. Every write waits for the commit that holds it; concurrent writes share one."""

    def __init__(self, place: Location, *, upgrade: bool = True) -> None:
        self.bells = Bells()
        self._place = place
        self.glanced_rows = GLANCED_ROWS if place.path else 0
        prepare(place)
        self._ownership = Ownership(place.path) if place.path else None
        with ExitStack() as opened:
            opened.callback(self._release)
            if place.path:
                check_log(place.path)
                create(place.path)
            queries = load_queries("sqlite")
            self._db, self.upgraded = open_writer(place, upgrade=upgrade)
            opened.callback(self._db.close, True)
            self._health = WriteHealth(place)
            self._at_desk = Writer(self._db, queries, place, self._health, self.bells)
            self._glances = Glances(place, queries, self._health, self._at_desk) if place.path else None
            if self._glances:
                opened.callback(self._glances.close)
            readers = Readers(place, queries, READERS, self._health, self.bells) if place.path else None
            opened.pop_all()
        writer = self._at_desk
        self._writer = WorkThreads("writer", writer.serve, threads=1, run_here=writer.run_here)
        self._readers = WorkThreads("reader", readers.serve, threads=READERS) if readers else None
        self._posts = Posts(partial(self._writer.put, lazy=True))

    def write(
        self, start: Callable[[], Work[T]], *, lazy: bool = False, supersedes: str | None = None
    ) -> Coroutine[Any, Any, T]:
        if self._posts.kept:
            self._posts.flush(without=supersedes)
        return self._writer.run(start, lazy)

    async def read(self, start: Callable[[], Work[T]]) -> T:
        await self._posts.stored()
        threads = self._readers or self._writer
        return cast("T", await threads.run(start, lazy=True))

    async def check(self) -> None:
        if self._health.damage:
            raise self._health.damage
        if not self._health.is_known_good:
            await self.write(probe)
        if self._health.is_full:
            await asyncio.to_thread(self._check_room)
            self._health.found_room()

    def _check_room(self) -> None:
        with translated(self._place.name):
            wal.check_room(self._place)

    async def inspect(self, seconds: float) -> bool:
        if self._place.path is None:
            return True
        return await asyncio.to_thread(look_through, self._place, seconds)

    async def glance(self, start: Callable[[], Work[T]]) -> T:
        """A look at pages that are nearly always in memory, where the caller is: waking a thread would take
        many times as long. A disk that was slow is left to the readers for a while."""
        if type(start) is Knowable and (known := self._at_desk.known.get(start.key)) is not None:
            return cast("T", known)
        looked = self._glances.look(start) if self._glances else None
        return await self.read(start) if looked is None else looked[0]

    async def try_glance(self, start: Callable[[], Work[T]]) -> tuple[T] | None:
        return self._glances.look(start) if self._glances else None

    async def post(self, mark: str, start: Callable[[], Work[object]]) -> None:
        if self._writer.closed:
            raise errors.StoreClosed()
        self._posts.add(mark, start)

    async def close(self) -> None:
        self._posts.flush()
        self._writer.shut()
        if self._readers:
            await self._readers.close()
        if self._glances:
            self._glances.close()
        await self._writer.close()
        self._at_desk.stay_away()
        try:
            with translated(self._place.name):
                await asyncio.to_thread(self._db.close)
        finally:
            self._release()

    def _release(self) -> None:
        if self._ownership:
            self._ownership.release()
            self._ownership = None
