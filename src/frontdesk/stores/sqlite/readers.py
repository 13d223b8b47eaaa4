"""Readers: each job sees one snapshot."""

from contextlib import ExitStack
from queue import SimpleQueue

import apsw

from frontdesk.contracts.bells import Bells
from frontdesk.stores.sql import Query
from frontdesk.stores.sqlite.clock import add_clock
from frontdesk.stores.sqlite.condition import Condition
from frontdesk.stores.sqlite.faults import translated
from frontdesk.stores.sqlite.files import Place
from frontdesk.stores.sqlite.threads import QueuedWork, answer, drive

BUSY_MILLISECONDS = 5_000
CACHE_KIB = 8 * 1024


class Readers:
    """Runs each job in a snapshot of its own; every thread has a connection."""

    def __init__(
        self, place: Place, queries: dict[str, Query], threads: int, condition: Condition, bells: Bells
    ) -> None:
        self._condition = condition
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
            job.error = self._condition.note(error, writing=False)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who gets it
            job.error = error


def _open_reader(place: Place) -> apsw.Connection:
    with translated(place.name):
        db = apsw.Connection(place.name, flags=apsw.SQLITE_OPEN_READONLY, vfs=place.vfs)
        db.set_busy_timeout(BUSY_MILLISECONDS)
        add_clock(db)
        db.pragma("cache_size", -CACHE_KIB)
        return db
