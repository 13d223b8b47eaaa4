"""The PostgreSQL engine: each work in a transaction on a connection of its own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Self, TypeVar

from frontdesk import errors
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import Brief, Row, Statement, Upgrade, Work
from frontdesk.stores.postgres import schema
from frontdesk.stores.postgres.address import DatabaseAddress
from frontdesk.stores.postgres.connections import (
    IDLE_TRANSACTION_MILLISECONDS,
    ConnectionPool,
    ServerConnection,
)
from frontdesk.stores.postgres.faults import Surprise
from frontdesk.stores.postgres.outcomes import Outcomes
from frontdesk.stores.postgres.retries import persist
from frontdesk.stores.postgres.transactions import FOUND, Alone, Reading, Statements, Writing
from frontdesk.stores.posts import Posts
from frontdesk.stores.sql import Query, load_queries
from frontdesk.stores.work import probe

T = TypeVar("T")

FINISH_SECONDS = 60.0


class UnderWay:
    """Counts what is at work, until it is closed."""

    def __init__(self) -> None:
        self._running = 0
        self._none = asyncio.Event()
        self._none.set()
        self._closed = False

    def __enter__(self) -> None:
        if self._closed:
            raise errors.StoreClosed()
        self._running += 1
        self._none.clear()

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._none.set()

    async def close(self) -> None:
        """Let no more begin, and what has begun end."""
        self._closed = True
        await self._none.wait()


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
        self._outcomes = Outcomes(self._ask, address.name)
        self._work = UnderWay()
        self._posts = Posts(lambda start: asyncio.ensure_future(self._keep(start)))

    @classmethod
    async def open(cls, address: DatabaseAddress, *, upgrade: bool = True) -> Self:
        queries = load_queries("postgres")
        return cls(address, queries, await schema.prepare(address, queries, upgrade=upgrade))

    async def write(
        self, start: Callable[[], Work[T]], *, lazy: bool = False, supersedes: str | None = None
    ) -> T:
        with self._work:
            await self._posts.stored(without=supersedes)
            return await persist(partial(self._write, start, lazy), self._end_stalled)

    async def post(self, mark: str, start: Callable[[], Work[object]]) -> None:
        with self._work:
            self._posts.add(mark, start)

    async def check(self) -> None:
        await self.write(probe)

    async def inspect(self, seconds: float) -> bool:  # noqa: ARG002 - the server looks after its files
        return True

    async def glance(self, start: Callable[[], Work[T]]) -> T:
        with self._work:
            return await persist(partial(self._read, start), self._end_stalled)

    async def try_glance(self, start: Callable[[], Work[T]]) -> tuple[T] | None:  # noqa: ARG002
        return None

    async def read(self, start: Callable[[], Work[T]]) -> T:
        with self._work:
            await self._posts.stored()
            return await persist(partial(self._read, start), self._end_stalled)

    async def end_stalled(self) -> None:
        """End what nodes that stand still have begun and the server itself does not end."""
        with self._work:
            await self._end_stalled()

    def has_process(self, pid: int) -> bool:
        """Whether a process of the server works for this engine."""
        return self._pool.has_process(pid)

    async def close(self) -> None:
        """Let running work finish, and do what was kept; take no more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                await self._work.close()
                await self._posts.stored()
        await self._pool.close()

    async def _keep(self, start: Callable[[], Work[object]]) -> None:
        """Do what was posted."""
        await persist(partial(self._write, start, True), self._end_stalled)

    async def _write(self, start: Callable[[], Work[T]], lazy: bool, cuts: int) -> T:
        if isinstance(start, Brief) and start.statement[0] in FOUND and not lazy:
            if await self._write_alone(start.statement):
                self.bells.ring(start.bell)
                result: T = start.result
                return result
            return await self._try_to_write(start.otherwise, lazy, cuts, usual=False)
        with suppress(Surprise):
            return await self._try_to_write(start, lazy, cuts, usual=True)
        return await self._try_to_write(start, lazy, cuts, usual=False)

    async def _write_alone(self, statement: Statement) -> bool:
        """Whether the statement, which commits by itself, has changed something."""
        alone = Alone(self._statements, statement)
        failure = await self._pool.lend(alone.run)
        if failure is None:
            return bool(alone.rows)
        if not await self._outcomes.was_kept(alone):
            raise failure
        return True

    async def _try_to_write(self, start: Callable[[], Work[T]], lazy: bool, cuts: int, *, usual: bool) -> T:
        value, writing, failure = await self._pool.lend(self._run, start, lazy, cuts, usual)
        if failure and not await self._outcomes.was_committed(writing):
            raise failure
        for topic, far in writing.rings:
            self.bells.ring(topic, far=far)
        return value

    async def _run(
        self, link: ServerConnection, start: Callable[[], Work[T]], lazy: bool, cuts: int, usual: bool
    ) -> tuple[T, Writing, errors.StoreError | None]:
        writing = Writing(self._statements, link, cuts, usual)
        value = await writing.run(start())
        return value, writing, await writing.commit(lazy)

    async def _read(self, start: Callable[[], Work[T]], _cuts: int) -> T:
        return await self._pool.lend(self._reading.run, start)

    async def _end_stalled(self) -> None:
        await self._ask("end_stalled", milliseconds=IDLE_TRANSACTION_MILLISECONDS)

    async def _ask(self, query: str, /, **values: object) -> list[Row]:
        """Ask one question of the engine's own."""
        rows, _ = await self._pool.lend(self._statements.ask, (query, values))
        return rows
