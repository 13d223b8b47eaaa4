"""The PostgreSQL engine: each work in a transaction on a connection of its own."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Self, TypeVar
from uuid import UUID

from frontdesk import errors
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import Brief, Upgrade, Work
from frontdesk.logs import get_logger
from frontdesk.stores.postgres import schema
from frontdesk.stores.postgres.address import DatabaseAddress
from frontdesk.stores.postgres.connections import IDLE_TRANSACTION_MILLISECONDS, ConnectionPool
from frontdesk.stores.postgres.faults import Surprise
from frontdesk.stores.postgres.retries import pause, persist
from frontdesk.stores.postgres.transactions import Reading, Statements, Writing
from frontdesk.stores.posts import Posts
from frontdesk.stores.sql import Query, load_queries
from frontdesk.stores.work import probe

T = TypeVar("T")

FINISH_SECONDS = 60.0
OUTCOME_SECONDS = 60.0
COMMITTED, ABORTED, IN_PROGRESS, FORGOTTEN = "committed", "aborted", "in progress", "forgotten"
STALLED = {"milliseconds": IDLE_TRANSACTION_MILLISECONDS}

log = get_logger(__name__)


class PostgresEngine:
    """Runs work for many nodes at once. What a write has returned is committed, and was run once."""

    glanced_rows = 0

    def __init__(
        self, address: DatabaseAddress, queries: dict[str, Query], upgraded: Upgrade | None = None
    ) -> None:
        self.bells = Bells()
        self.upgraded = upgraded
        self._pool = ConnectionPool(address, queries)
        self._statements = Statements(queries, address.name)
        self._reading = Reading(self._statements)
        self._name = address.name
        self._running = 0
        self._posts = Posts(lambda start: asyncio.ensure_future(self._persist(start, lazy=True)))
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @classmethod
    async def open(cls, address: DatabaseAddress, *, upgrade: bool = True) -> Self:
        queries = load_queries("postgres")
        engine = cls(address, queries, await schema.prepare(address, queries, upgrade=upgrade))
        await engine._pool.open()
        return engine

    async def write(
        self, start: Callable[[], Work[T]], *, lazy: bool = False, supersedes: str | None = None
    ) -> T:
        with self._at_work():
            await self._posts.stored(without=supersedes)
            return await self._persist(start, lazy)

    async def post(self, mark: str, start: Callable[[], Work[object]]) -> None:
        with self._at_work():
            self._posts.add(mark, start)

    async def check(self) -> None:
        await self.write(probe)

    async def inspect(self, seconds: float) -> bool:  # noqa: ARG002 - the server looks after its files
        return True

    async def glance(self, start: Callable[[], Work[T]]) -> T:
        with self._at_work():
            return await persist(partial(self._read, start), self._end_stalled)

    async def try_glance(self, start: Callable[[], Work[T]]) -> tuple[T] | None:  # noqa: ARG002
        return None

    async def read(self, start: Callable[[], Work[T]]) -> T:
        with self._at_work():
            await self._posts.stored()
            return await persist(partial(self._read, start), self._end_stalled)

    async def end_stalled(self) -> None:
        """End what nodes that stand still have begun and the server itself does not end."""
        with self._at_work():
            await self._end_stalled()

    async def close(self) -> None:
        """Let running work finish, and do what was kept; take no more."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                await self._idle.wait()
                await self._posts.stored()
        await self._pool.close()

    async def _persist(self, start: Callable[[], Work[T]], lazy: bool) -> T:
        return await persist(partial(self._write, start, lazy), self._end_stalled)

    async def _write(self, start: Callable[[], Work[T]], lazy: bool, cuts: int) -> T:
        if not isinstance(start, Brief):  # which asks for one thing only
            with suppress(Surprise):
                return await self._try_to_write(start, lazy, cuts, usual=True)
        return await self._try_to_write(start, lazy, cuts, usual=False)

    async def _try_to_write(self, start: Callable[[], Work[T]], lazy: bool, cuts: int, *, usual: bool) -> T:
        async with self._pool.lent() as link:
            writing = Writing(self._statements, link, cuts, usual)
            value = await writing.run(start())
            failure = await writing.commit(lazy)
        # One that wrote nothing has no number, and nothing to lose.
        if failure and writing.xid is not None and not await self._was_committed(writing.xid, writing.life):
            raise failure
        for topic, far in writing.rings:
            self.bells.ring(topic, far=far)
        return value

    async def _was_committed(self, xid: int, life: UUID) -> bool:
        """What became of a transaction whose connection was cut while it was committed: wait until it is
        known; StoreFailed when it cannot be.

        PostgreSQL remembers the outcome under the transaction's number. After a crash it may give the numbers
        that recovery did not find a second time, so that an outcome counts only with the server's life.
        """
        deadline = time.monotonic() + OUTCOME_SECONDS
        for number in itertools.count(1):
            outcome = await self._outcome(xid, life)
            if outcome == FORGOTTEN or time.monotonic() > deadline:
                break
            if outcome != IN_PROGRESS:
                log.warning("commit_cut", transaction=xid, outcome=outcome)
                return outcome == COMMITTED
            await pause(number)
        why = "the connection was cut during the commit, and its outcome is not known"
        raise errors.StoreFailed(path=self._name, why=why)

    async def _outcome(self, xid: int, life: UUID) -> str:
        try:
            async with self._pool.lent() as link:
                rows, _ = await self._statements.ask(link, ("outcome", {"xid": xid, "life": life}))
        except errors.StoreUnavailable:  # a server that does not answer may still be at it
            return IN_PROGRESS
        except errors.StoreRefused:  # no transaction has that number yet: a crash took it back
            return ABORTED
        return str(rows[0][0])

    async def _read(self, start: Callable[[], Work[T]], _cuts: int) -> T:
        async with self._pool.lent() as link:
            return await self._reading.run(link, start)

    async def _end_stalled(self) -> None:
        async with self._pool.lent() as link:
            await self._statements.ask(link, ("end_stalled", STALLED))

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        if self._closed:
            raise errors.StoreClosed()
        self._running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
