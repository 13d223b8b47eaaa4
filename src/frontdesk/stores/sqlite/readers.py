"""Whoever reads: threads, each job in a snapshot; look-ups on the caller's own thread; a look for damage."""

import contextlib
import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TypeVar

import apsw

from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import Knowable, Work
from frontdesk.stores.sql import Query
from frontdesk.stores.sqlite.faults import WriteHealth, translated
from frontdesk.stores.sqlite.files import Location
from frontdesk.stores.sqlite.threads import QueuedWork, answer, drive, equip
from frontdesk.stores.sqlite.writer import Writer

T = TypeVar("T")

BUSY_MILLISECONDS = 5_000
CACHE_KIB = 8 * 1024
SLOW_SECONDS = 0.05
AVOIDED_SECONDS = 5.0
GLANCE_CACHE_KIB = 16 * 1024
STEPS = 10_000
"""Of SQLite's machine, between two looks at the time."""


class Readers:
    """Runs each job in a snapshot of its own; every thread has a connection."""

    def __init__(
        self, place: Location, queries: dict[str, Query], threads: int, health: WriteHealth, bells: Bells
    ) -> None:
        self._health = health
        self._bells = bells
        self._queries = queries
        self._idle: list[apsw.Connection] = []
        with ExitStack() as opened:
            for _ in range(threads):
                self._idle.append(_open_reader(place))
                opened.callback(self._idle[-1].close, True)
            opened.pop_all()

    def serve(self, jobs: "SimpleQueue[QueuedWork | None]") -> None:
        db = self._idle.pop()
        while (job := jobs.get()) is not None:
            if not job.future.cancelled():
                self._run(db, job)
                answer([job], self._bells)
        db.close(True)

    def _run(self, db: apsw.Connection, job: QueuedWork) -> None:
        cursor = db.cursor()
        try:
            cursor.execute("BEGIN")
            try:
                job.result = drive(cursor, self._queries, job.start())
            finally:
                if db.in_transaction:
                    cursor.execute("COMMIT")
        except apsw.Error as error:
            job.error = self._health.note(error, writing=False)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who gets it
            job.error = error


def _open_reader(place: Location) -> apsw.Connection:
    with translated(place.name):
        db = _open(place)
        db.set_busy_timeout(BUSY_MILLISECONDS)
        db.pragma("cache_size", -CACHE_KIB)
        return db


def _open(place: Location) -> apsw.Connection:
    db = apsw.Connection(place.name, flags=apsw.SQLITE_OPEN_READONLY, vfs=place.vfs)
    equip(db)
    return db


class Glances:
    """A connection for look-ups by key, as long as the disk behind it answers at once."""

    def __init__(
        self, place: Location, queries: dict[str, Query], health: WriteHealth, writer: Writer
    ) -> None:
        self._health = health
        self._writer = writer
        self._queries = queries
        self._avoided_until = 0.0
        self._busy = threading.Lock()  # several event loops may share the store
        with translated(place.name):
            self._db = _open(place)
            self._db.pragma("cache_size", -GLANCE_CACHE_KIB)
            self._cursor = self._db.cursor()

    def look(self, start: Callable[[], Work[T]]) -> tuple[T] | None:
        """What was found; nothing when a look-up is not to be run now."""
        began = time.monotonic()
        if began < self._avoided_until or not self._busy.acquire(blocking=False):
            return None
        # The writer's own connection still has in memory what was just written.
        borrowed = self._writer.borrow()
        try:
            found: T = drive(borrowed or self._cursor, self._queries, start())
            if borrowed and type(start) is Knowable and found is not None:
                self._writer.known.learn(start.key, found)
        except apsw.Error as error:
            raise self._health.note(error, writing=False) from error
        finally:
            if borrowed:
                self._writer.give_back()
            self._busy.release()
        if time.monotonic() - began > SLOW_SECONDS:
            self._avoided_until = time.monotonic() + AVOIDED_SECONDS
        return (found,)

    def close(self) -> None:
        """Allow no more look-ups."""
        self._avoided_until = math.inf
        with self._busy:
            self._db.close(True)


def look_through(place: Location, seconds: float) -> bool:
    """Whether all of it could be looked through in the time. CorruptDatabase names what was found."""
    deadline = time.monotonic() + seconds
    with translated(place.name), contextlib.closing(_open(place)) as db:
        db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        try:
            found = db.execute("PRAGMA quick_check(1)").get
        except apsw.InterruptError:
            return False
        if found != "ok":
            raise apsw.CorruptError(" ".join(str(found).split()))
    return True
