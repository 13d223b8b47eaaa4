"""Threads that run work for coroutines."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import apsw
import msgspec

from frontdesk import errors
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import COLUMN, EACH, LONG, RING, Brief, Ring, Swift, Work
from frontdesk.model import audit
from frontdesk.stores.sql import Query
from frontdesk.stores.sqlite.known import ALTERS, KnownRows

MOST_GATHERED = 512
"""So many jobs are handed over while the event loop is still busy with more."""
MOST_HERE = 64
"""So many are done on the event loop's own thread at once, where they can be."""
MOST_ALONE = 4
"""Who finds nobody else at work has so many done here before others are let in again."""

RunHere = Callable[[list[Any], int], list[Any]]
"""Runs brief or swift work where the caller is, given how many jobs the threads were given before. The
results of the first ones, as many as were done: the rest is for the threads."""


class QueuedWork(msgspec.Struct, eq=False):
    """Work that a coroutine waits for."""

    start: Callable[[], Work[Any]]
    lazy: bool
    future: "asyncio.Future[Any]"
    result: Any = None
    error: BaseException | None = None
    rings: set[Ring] = msgspec.field(default_factory=set)
    """To be rung once it is committed."""


def answer(jobs: Iterable[QueuedWork], bells: Bells) -> None:
    """Wake the coroutines that wait for these jobs; one call into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[QueuedWork]] = {}
    for job in jobs:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, group in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, group, bells)


def _settle(jobs: list[QueuedWork], bells: Bells) -> None:
    """Each bell is rung once for all of them; for what was not committed none is."""
    rings: set[Ring] = set()
    for job in jobs:
        if job.error is None:
            rings |= job.rings
        if job.future.cancelled():  # whoever waited has gone; what was done is done
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
    for topic, far in rings:
        bells.ring(topic, far=far)


def equip(db: apsw.Connection) -> None:
    """What queries need of a connection: ``micros()``, microseconds since 1970; ``chain_hash()`` of a row of
    the audit log; lists, as JSON; plans that hold for all values."""
    # Else SQLite plans anew for each value that it compares with the condition of an index, to no use.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.create_scalar_function("micros", lambda *_: time.time_ns() // 1000, 0)
    db.create_scalar_function("chain_hash", _chain_hash, 3)
    db.convert_binding = lambda _cursor, _number, given: json.dumps(given)


def _chain_hash(*row: Any) -> bytes:
    number, previous, body = row
    return bytes.fromhex(audit.chain_hash(number, previous.hex(), body))


class TakesLong(Exception):
    """Somebody else would wait for what comes next."""


def drive(
    cursor: apsw.Cursor,
    queries: dict[str, Query],
    work: Work[Any],
    rings: set[Ring] | None = None,
    known: KnownRows | None = None,
    *,
    swiftly: bool = False,
) -> Any:
    """Run work to its end, without waiting. What it rings is noted, and what it alters no longer known.
    ``swiftly``: TakesLong from where on it would not be."""
    execute, changes = cursor.execute, cursor.connection.total_changes
    rings = set() if rings is None else rings
    try:
        name, values = next(work)
        while True:
            if name == RING:
                rings.add(values["bell"])
                name, values = work.send([])
                continue
            if name == LONG:
                if swiftly:
                    raise TakesLong
                name, values = work.send([])
                continue
            if name in ALTERS and known is not None:
                known.forget(map(values.__getitem__, ALTERS[name]))
            query = queries[name]
            sql = query.sql  # none for a lock that one writer needs not
            if EACH in values:
                cursor.executemany(sql, values[EACH])
                name, values = work.send([])
                continue
            if COLUMN in values:
                name, values = work.send(_column(execute(sql, query.arguments(values))))
                continue
            before = changes() if query.counts else 0
            found = execute(sql, query.arguments(values)).fetchall() if sql else []
            name, values = work.send([()] if query.counts and changes() > before else found)
    except StopIteration as finished:
        return finished.value
    finally:
        work.close()


def _column(cursor: apsw.Cursor) -> list[Any]:
    """The values in the one column, which SQLite gives quicker than rows."""
    found = cursor.get  # of a single row its value, of none nothing
    return found if isinstance(found, list) else [] if found is None else [found]


def _is_brief(job: QueuedWork) -> bool:
    return type(job.start) is Brief


def _refuse(jobs: Iterable[QueuedWork], error: Exception) -> None:
    for job in jobs:
        job.future.set_exception(error)


class WorkThreads:
    """A queue of jobs and the threads that serve it."""

    def __init__(
        self,
        name: str,
        serve: Callable[["SimpleQueue[QueuedWork | None]"], None],
        threads: int,
        run_here: "RunHere | None" = None,
    ) -> None:
        self._run_here = run_here
        self._jobs: SimpleQueue[QueuedWork | None] = SimpleQueue()
        self._queued = 0
        self._threads = [
            threading.Thread(target=serve, args=(self._jobs,), name=f"frontdesk-{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        self._running = 0
        self._alone = 0
        self.closed = False
        self._waiting: dict[asyncio.AbstractEventLoop, list[QueuedWork]] = {}
        self._door = threading.Lock()
        for thread in self._threads:
            thread.start()

    async def run(self, start: Callable[[], Work[Any]], lazy: bool = False) -> Any:
        """Run a job and wait for it.

        A single job is queued at once, or done right here where it can be. Further ones wait until the event
        loop has run every task that is ready: what they want, too, is then done in one go, here or there.
        """
        done = None
        if self._run_here and type(start) in (Brief, Swift) and not self._running and not self.closed:
            done = self._run_here([start], self._queued)
        if self._running:
            self._alone = 0
        self._running += 1
        try:
            if not done:
                return await self.put(start, lazy, at_once=self._running == 1)
            self._alone -= 1
            if self._alone <= 0:  # whoever is ready meanwhile is not alone, and goes to the threads
                self._alone = MOST_ALONE
                await asyncio.sleep(0)
            return done[0]
        finally:
            self._running -= 1

    def put(
        self, start: Callable[[], Work[Any]], lazy: bool = False, at_once: bool = True
    ) -> "asyncio.Future[Any]":
        """Queue a job; its future tells when it is done."""
        loop = asyncio.get_running_loop()
        job = QueuedWork(start, lazy, loop.create_future())
        with self._door:  # `shut` takes it, too: no job comes in behind the sign that ends the threads
            if self.closed:
                raise errors.StoreClosed()
            if at_once and not self._waiting:
                self._queued += 1
                self._jobs.put(job)
            else:
                self._gather(job, loop)
        return job.future

    def _gather(self, job: QueuedWork, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.setdefault(loop, [])
        waiting.append(job)
        if len(waiting) == 1:
            loop.call_soon(self._hand_over, loop)
        elif len(waiting) == MOST_GATHERED:
            self._put_all(self._waiting.pop(loop))

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._door:
            jobs = [job for job in self._waiting.pop(loop, ()) if not job.future.cancelled()]
            if not jobs:  # nobody waits for them any more, or they were put in the queue meanwhile
                return
            if not self._run_here or len(jobs) > MOST_HERE or not all(map(_is_brief, jobs)):
                self._put_all(jobs)
                return
        try:
            done = self._run_here([job.start for job in jobs], self._queued)
        except Exception as error:  # noqa: BLE001 - it is the callers', who would wait for ever
            _refuse(jobs, error)
            return
        for job, result in zip(jobs, done, strict=False):
            job.future.set_result(result)
        with self._door:
            if self.closed:  # by another event loop, meanwhile
                _refuse(jobs[len(done) :], errors.StoreClosed())
            else:
                self._put_all(jobs[len(done) :])

    def _put_all(self, jobs: Iterable[QueuedWork]) -> None:
        for job in jobs:
            self._queued += 1
            self._jobs.put(job)

    def shut(self) -> None:
        """Take no more jobs."""
        with self._door:
            if not self.closed:
                self.closed = True
                for jobs in self._waiting.values():
                    self._put_all(jobs)
                self._waiting.clear()
                for _ in self._threads:
                    self._jobs.put(None)

    async def close(self) -> None:
        """Take no more jobs, finish those in the queue, end the threads."""
        self.shut()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
