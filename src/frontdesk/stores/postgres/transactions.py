"""One run of a work: its statements, one after the other, on one connection."""

import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import CodeType, GeneratorType
from typing import Any, TypeVar

import asyncpg

from frontdesk import errors
from frontdesk.contracts.store import LONG, RING, Ring, Row, Statement, Work
from frontdesk.stores.postgres import ahead
from frontdesk.stores.postgres.connections import IDLE_TRANSACTION_MILLISECONDS, Backend, ServerConnection
from frontdesk.stores.postgres.faults import FOREIGN, Conflict, Locked, translate, translated
from frontdesk.stores.sql import Query

T = TypeVar("T")

BEGIN = ahead.command("BEGIN ISOLATION LEVEL READ COMMITTED")
BEGIN_SNAPSHOT = ahead.command("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
IDLE_LONGER = "SET LOCAL idle_in_transaction_session_timeout TO {milliseconds}"
LONGEST_IDLE_MILLISECONDS = 30_000
LAZILY = ahead.command("SET LOCAL synchronous_commit TO off")
COMMIT = "COMMIT"

_NUMBERED = "pg_current_xact_id() AS xid"
_ONLY_NUMBERED = f"RETURNING {_NUMBERED}"
_WRITING = ("INSERT", "UPDATE", "DELETE")
_FAILING = "SELECT 1 FROM (SELECT COUNT(*) AS found FROM answer) AS counted WHERE 1 / {divisor} = 0"

USUAL: dict[str, list[Row]] = {
    "append_message": [()],
    "busy_key": [],
    "hold_lane": [()],
    "insert_delivery": [()],
    "lock_key": [()],
    "redeem_confirmation": [()],
    "resolve_confirmation": [()],
    "settle_held_delivery": [()],
    "settle_held_turn": [()],
    "settle_turn": [()],
}
"""Questions of which only matters whether there is a row, and whether there usually is one."""
FOUND = {"append_message": "found_message"}
"""Statements that commit by themselves, and the question whether one has."""


def begin(cuts: int) -> list[bytes]:
    """Begin to write. Work that was cut off before may be silent for longer between its statements: else what
    takes us long to work out would be cut off again and again."""
    if not cuts:
        return [BEGIN]
    longer = min(IDLE_TRANSACTION_MILLISECONDS * 4 ** min(cuts, 8), LONGEST_IDLE_MILLISECONDS)
    return [BEGIN, ahead.command(IDLE_LONGER.format(milliseconds=longer))]


def silenced(name: str, sql: str) -> str | None:
    """The same without an answer; None where somebody may want it."""
    if name in USUAL:
        return failing(sql, "found" if USUAL[name] else "(1 - found)")
    sql = sql.removesuffix(_ONLY_NUMBERED)
    return None if "RETURNING" in sql or not sql.startswith(_WRITING) else sql


def failing(sql: str, divisor: str) -> str:
    """A question that has no answer, and divides by zero where it would have an unusual one."""
    parts, _, question = sql.rpartition("\nSELECT ") if sql.startswith("WITH ") else ("", "", sql)
    asked = f"{parts}, answer AS (SELECT {question})" if parts else f"WITH answer AS ({sql})"
    return f"{asked} {_FAILING.format(divisor=divisor)}"


class Statements:
    """Finds queries by name and runs them."""

    def __init__(self, queries: dict[str, Query], name: str) -> None:
        self._queries = queries
        self._name = name
        self._numbered = {query for query, found in queries.items() if _NUMBERED in found.sql}
        self._silent = {query: sql for query, found in queries.items() if (sql := silenced(query, found.sql))}

    async def commit(self, link: ServerConnection) -> None:
        with translated(self._name):
            done = await link.conclude(COMMIT)
        if done != COMMIT:
            raise errors.StoreFailed(path=self._name, why=f"the commit was answered with {done}")

    def silent(self, link: ServerConnection, statement: Statement) -> bytes | None:
        """A statement to be sent ahead of the next one; None where its answer has to be waited for."""
        name, values = statement
        written = link.silent.get(name)
        return None if written is None else written(self._queries[name].arguments(values))

    async def prepare(self, link: ServerConnection, name: str) -> None:
        """Make sure that a statement without an answer can be sent ahead from now on. Something has to be
        asked then: until that the server waits for the rest, however long it takes."""
        if name in self._silent and name not in link.silent:
            with translated(self._name):
                await link.prepare_ahead(name, self._silent[name])

    async def assigned(self, link: ServerConnection) -> int | None:
        """The number of the transaction, if it has written."""
        ((xid,),) = await self._fetch(link, "assigned", ())
        return None if xid is None else int(xid)

    async def ask(self, link: ServerConnection, statement: Statement) -> tuple[list[Row], int | None]:
        """The rows, and the number of the transaction if the query tells it in its last column."""
        name, values = statement
        records = await self._fetch(link, name, self._queries[name].arguments(values))
        if name in self._numbered and records:
            return [record[:-1] for record in records], records[0][-1]
        return list(map(tuple, records)), None

    async def _fetch(
        self, link: ServerConnection, name: str, arguments: Sequence[Any]
    ) -> list[asyncpg.Record]:
        try:
            return await link.fetch(self._queries[name].sql, *arguments)
        except FOREIGN as error:
            raise translate(error, self._name) from error


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


class Alone:
    """A statement that commits by itself, in one round trip. It leaves a number in what it writes, by which
    that is found again where no answer comes."""

    def __init__(self, statements: Statements, statement: Statement) -> None:
        name, values = statement
        self._statements = statements
        self._statement = name, {**values, "found_by": random.getrandbits(63)}
        self.rows: list[Row] = []
        self.backend: Backend

    @property
    def question(self) -> Statement:
        """Whether it has written."""
        name, values = self._statement
        return FOUND[name], values

    async def run(self, link: ServerConnection) -> errors.StoreError | None:
        """The error when no good answer came, after which the outcome is open."""
        self.backend = link.backend
        try:
            self.rows, _ = await self._statements.ask(link, self._statement)
        except (Conflict, Locked, errors.StoreRefused):  # it was not committed
            raise
        except errors.StoreError as error:
            link.terminate()
            return error
        return None


class Writing:
    """A transaction that remembers its number, under which the server knows its outcome."""

    def __init__(self, statements: Statements, link: ServerConnection, cuts: int, usual: bool) -> None:
        self._statements = statements
        self._link = link
        self._usual = usual
        """Whether questions need not be waited for that have a usual answer: Surprise, when it is another."""
        self._ahead = self._beginning = begin(cuts)
        self.rings: set[Ring] = set()
        """To be rung once it is committed."""
        self.life, self.backend = link.life, link.backend
        self.xid: int | None = None

    async def run(self, work: Work[T]) -> T:
        return await drive(work, self._answer)

    async def commit(self, lazy: bool) -> errors.StoreError | None:
        """Commit; the error when no good answer came, after which the outcome is open."""
        if self._ahead is self._beginning:  # nothing was asked for
            return None
        if self.xid is None:  # asked now: when the commit is cut off, it is too late
            self._send_ahead()
            self.xid = await self._statements.assigned(self._link)
        if lazy:
            self._ahead.append(LAZILY)
        self._send_ahead()
        try:
            await self._statements.commit(self._link)
        except (Conflict, Locked, errors.StoreRefused):  # of what was sent ahead: it was not committed
            raise
        except errors.StoreError as error:
            self._link.terminate()
            return error
        return None

    async def _answer(self, statement: Statement) -> list[Row]:
        name, values = statement
        if name == RING:
            self.rings.add(values["bell"])
            return []
        if name == LONG:
            return []
        if (self._usual or name not in USUAL) and (silent := self._statements.silent(self._link, statement)):
            self._ahead = [*self._ahead, silent]
            return USUAL.get(name, [])
        self._send_ahead()
        await self._statements.prepare(self._link, name)
        rows, xid = await self._statements.ask(self._link, statement)
        self.xid = self.xid or xid
        return rows

    def _send_ahead(self) -> None:
        self._link.send_ahead(b"".join(self._ahead))
        self._ahead = []


class Reading:
    """Answers a single question without a transaction, and several from one snapshot."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._several: set[tuple[CodeType | None, str]] = set()
        """Work that asks more than one question, by its code and its first one."""

    async def run(self, link: ServerConnection, start: Callable[[], Work[T]]) -> T:
        """Work that asked several questions before is not begun without a snapshot: its first answer would be
        lost."""
        work = start()
        try:
            statement = next(work)
            kind = work.gi_code if isinstance(work, GeneratorType) else None, statement[0]
            if kind not in self._several:
                work.send(await self._answer(link, statement))
                self._several.add(kind)
        except StopIteration as finished:
            value: T = finished.value
            return value
        finally:
            work.close()
        return await self._look(link, start())

    async def _look(self, link: ServerConnection, work: Work[T]) -> T:
        link.send_ahead(BEGIN_SNAPSHOT)
        value = await drive(work, partial(self._answer, link))
        await self._statements.commit(link)
        return value

    async def _answer(self, link: ServerConnection, statement: Statement) -> list[Row]:
        rows, _ = await self._statements.ask(link, statement)
        return rows
