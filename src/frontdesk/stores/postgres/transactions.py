"""One run of a work: its statements, one after the other, on one connection."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import CodeType, GeneratorType
from typing import Any, TypeVar

import asyncpg

from frontdesk import errors
from frontdesk.contracts.store import RING, Ring, Row, Statement, Work
from frontdesk.stores.postgres.connections import IDLE_TRANSACTION_MILLISECONDS, Lent, cut, life_of
from frontdesk.stores.postgres.faults import translated
from frontdesk.stores.sql import Query

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
IDLE_LONGER = "SET LOCAL idle_in_transaction_session_timeout TO {milliseconds}"
LONGEST_IDLE_MILLISECONDS = 30_000
COMMIT = "COMMIT"
COMMIT_LAZILY = "SET LOCAL synchronous_commit TO off; COMMIT"

_NUMBERED = "pg_current_xact_id() AS xid"


def begin(cuts: int) -> str:
    """Begin to write. Work that was cut off before may be silent for longer between its statements: else what
    takes us long to work out would be cut off again and again."""
    if not cuts:
        return BEGIN
    longer = min(IDLE_TRANSACTION_MILLISECONDS * 4 ** min(cuts, 8), LONGEST_IDLE_MILLISECONDS)
    return f"{BEGIN}; {IDLE_LONGER.format(milliseconds=longer)}"


class Statements:
    """Finds queries by name and runs them."""

    def __init__(self, queries: dict[str, Query], name: str) -> None:
        self._queries = queries
        self._name = name
        self._numbered = {query for query, found in queries.items() if _NUMBERED in found.sql}

    async def execute(self, link: Lent, command: str) -> None:
        """Run a command that has no result but its own name."""
        with translated(self._name):
            done = await link.execute(command)
        if command.endswith(COMMIT) and done != COMMIT:
            raise errors.StoreFailed(path=self._name, why=f"the commit was answered with {done}")

    async def assigned(self, link: Lent) -> int | None:
        """The number of the transaction, if it has written."""
        ((xid,),) = await self._fetch(link, "assigned", ())
        return None if xid is None else int(xid)

    async def ask(self, link: Lent, statement: Statement) -> tuple[list[Row], int | None]:
        """The rows, and the number of the transaction if the query tells it in its last column."""
        name, values = statement
        records = await self._fetch(link, name, self._queries[name].arguments(values))
        if name in self._numbered and records:
            return [record[:-1] for record in records], records[0][-1]
        return list(map(tuple, records)), None

    async def _fetch(self, link: Lent, name: str, arguments: Sequence[Any]) -> list[asyncpg.Record]:
        with translated(self._name):
            return await link.fetch(self._queries[name].sql, *arguments)


Answer = Callable[[Statement], Awaitable[list[Row]]]


async def drive(work: Work[T], answer: Answer) -> T:
    """Run work to its end."""
    try:
        statement = next(work)
        while True:
            statement = work.send(await answer(statement))
    except StopIteration as finished:
        value: T = finished.value
        return value
    finally:
        work.close()


class Writing:
    """A transaction that remembers its number, under which the server knows its outcome."""

    def __init__(self, statements: Statements, link: Lent) -> None:
        self._statements = statements
        self._link = link
        self.rings: set[Ring] = set()
        """To be rung once it is committed."""
        self.life = life_of(link)
        self.xid: int | None = None

    async def run(self, work: Work[T], cuts: int) -> T:
        await self._statements.execute(self._link, begin(cuts))
        return await drive(work, self._answer)

    async def commit(self, lazy: bool) -> errors.StoreError | None:
        """Commit; the error when no good answer came, after which the outcome is open."""
        if self.xid is None:  # asked now: when the commit is cut off, it is too late
            self.xid = await self._statements.assigned(self._link)
        try:
            await self._statements.execute(self._link, COMMIT_LAZILY if lazy else COMMIT)
        except errors.StoreError as error:
            cut(self._link)
            return error
        return None

    async def _answer(self, statement: Statement) -> list[Row]:
        name, values = statement
        if name == RING:
            self.rings.add(values["bell"])
            return []
        rows, xid = await self._statements.ask(self._link, statement)
        self.xid = self.xid or xid
        return rows


class NeedsSnapshot(Exception):
    """The work asks more than one question, and the answers must belong together."""


class Reading:
    """Answers a single question without a transaction, and several from one snapshot."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._several: set[tuple[CodeType | None, str]] = set()

    async def run(self, link: Lent, start: Callable[[], Work[T]]) -> T:
        try:
            return await self._glance(link, start())
        except NeedsSnapshot:
            return await self._look(link, start())

    async def _glance(self, link: Lent, work: Work[T]) -> T:
        """Work that asked several questions before is not begun, since its first answer would be lost."""
        code = work.gi_code if isinstance(work, GeneratorType) else None
        first: tuple[CodeType | None, str] | None = None

        async def answer(statement: Statement) -> list[Row]:
            nonlocal first
            if first is not None:
                self._several.add(first)
            first = first or (code, statement[0])
            if first in self._several:
                raise NeedsSnapshot
            return await self._answer(link, statement)

        return await drive(work, answer)

    async def _look(self, link: Lent, work: Work[T]) -> T:
        await self._statements.execute(link, BEGIN_SNAPSHOT)
        value = await drive(work, partial(self._answer, link))
        await self._statements.execute(link, COMMIT)
        return value

    async def _answer(self, link: Lent, statement: Statement) -> list[Row]:
        rows, _ = await self._statements.ask(link, statement)
        return rows
