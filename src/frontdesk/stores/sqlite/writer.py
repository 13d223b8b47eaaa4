"""The one writer: runs jobs one after the other and commits them in groups."""

from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import apsw

from frontdesk import errors
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import Mergeable, Ring, Upgrade, Work
from frontdesk.logs import get_logger
from frontdesk.stores.sql import Query, load_queries
from frontdesk.stores.sqlite import faults, schema, wal
from frontdesk.stores.sqlite.files import Location
from frontdesk.stores.sqlite.threads import QueuedWork, answer, drive, equip

log = get_logger(__name__)

Together = Callable[[list[Any]], Work[list[Any]]]

GROUP_JOBS = 1_024
BUSY_MILLISECONDS = 5_000
CHECKPOINT_PAGES = 1_000
WAL_LIMIT_BYTES = 64 * 1024 * 1024
CACHE_KIB = 32 * 1024


def open_writer(place: Location, *, upgrade: bool = True) -> tuple[apsw.Connection, Upgrade | None]:
    """The connection that writes, and how the database was brought up to date, if it was."""
    with faults.translated(place.name):
        db = apsw.Connection(place.name, vfs=place.vfs)
        try:
            db.set_busy_timeout(BUSY_MILLISECONDS)
            equip(db)
            if place.path:
                _check_whole(db, place.path)
            upgraded = schema.migrate(db, place, upgrade=upgrade)
            _tune(db)
            db.execute(load_queries("sqlite")["make_appending"].sql)
            if place.path:
                wal.warm(db, place, CHECKPOINT_PAGES)
        except BaseException:
            db.close(True)
            raise
        return db, upgraded


def _check_whole(db: apsw.Connection, path: Path) -> None:
    pages, page_bytes = int(db.pragma("page_count")), int(db.pragma("page_size"))
    if missing := wal.missing_pages(path, page_bytes, pages):
        raise faults.FileCut(f"{missing} of its {pages} pages are cut off")


def _tune(db: apsw.Connection) -> None:
    for pragma, value in (
        ("journal_mode", "wal"),
        ("synchronous", "full"),
        ("foreign_keys", 1),
        ("temp_store", "memory"),
        ("cache_size", -CACHE_KIB),
        ("journal_size_limit", WAL_LIMIT_BYTES),
    ):
        db.pragma(pragma, value)


class Writer:
    """Runs jobs one after the other and commits them in groups."""

    def __init__(
        self,
        db: apsw.Connection,
        queries: dict[str, Query],
        place: Location,
        health: faults.WriteHealth,
        bells: Bells,
    ) -> None:
        self._db = db
        self._bells = bells
        self._health = health
        self._cursor = db.cursor()
        self._queries = queries
        self._place = place
        self._name = place.name
        self._durable = True
        self._sync_failed = False
        self._log_pages = 0
        db.set_wal_hook(self._measure_log)

    def serve(self, jobs: "SimpleQueue[QueuedWork | None]") -> None:
        """Whatever happens, everybody gets an answer, and the thread goes on."""
        going = True
        while going:
            group, going = _take(jobs)
            if group:
                try:
                    self._commit(group)
                except Exception as error:
                    log.exception("writer_failed", path=self._name)
                    self._roll_back()
                    for job in group:
                        job.error = errors.StoreFailed(
                            path=self._name, why=f"{type(error).__name__}: {error}"
                        )
                answer(group, self._bells)
            if self._log_pages >= CHECKPOINT_PAGES and not self._health.damage:
                self._checkpoint()

    def _commit(self, group: list[QueuedWork]) -> None:
        """Run and commit the jobs together. When that fails, each is tried again by itself: nobody has been
        answered, and work starts anew."""
        begun = False
        try:
            self._begin(group)
            begun = True
            if len(group) == 1:
                self._run(group[0], alone=True)
            elif not self._run_together(group):
                for job in group:
                    self._run(job, alone=False)
            if self._db.in_transaction:
                self._cursor.execute("COMMIT")
                self._health.wrote(durably=self._durable)
        except apsw.Error as error:
            self._sync_failed |= faults.is_failed_sync(error)
            self._roll_back()
            # What was committed into a file that is gone or cut is not to be run a second time.
            if not begun or len(group) == 1 or isinstance(error, faults.FileGone | faults.FileCut):
                met = self._meet(error)
                for job in group:
                    job.error = met
                return
            for single in group:
                self._commit([single])

    def _begin(self, group: list[QueuedWork]) -> None:
        # Lazy work needs no fsync of its own: the next durable commit covers it.
        durable = False in {job.lazy for job in group}
        if durable != self._durable:
            self._cursor.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        self._cursor.execute("BEGIN IMMEDIATE")
        if self._sync_failed:  # before anything is written on top of what may be missing
            wal.write_again(self._place)
            self._sync_failed = False

    def _run_together(self, group: list[QueuedWork]) -> bool:
        """Run the jobs as if none could fail; False, with nothing done, when one did."""
        try:
            for together, jobs in groupby(group, key=_kind_of):
                self._run_alike(together, list(jobs))
        except faults.LOSES_THE_GROUP:
            raise
        except BaseException:  # noqa: BLE001 - it is met again when each job runs in a savepoint
            self._cursor.execute("ROLLBACK; BEGIN IMMEDIATE")
            return False
        return True

    def _run_alike(self, together: Together | None, jobs: list[QueuedWork]) -> None:
        if together is None:
            for job in jobs:
                job.error = None
                job.result = drive(self._cursor, self._queries, job.start(), job.rings)
            return
        for job in self._run_merged(together, jobs) if len(jobs) > 1 else jobs:
            self._run(job, alone=False)

    def _run_merged(self, together: Together, jobs: list[QueuedWork]) -> list[QueuedWork]:
        """Run jobs of one kind in one go; those that have to be run alone are given back."""
        work = together([job.start.item for job in jobs if isinstance(job.start, Mergeable)])
        rings: set[Ring] = set()
        for job, result in zip(jobs, drive(self._cursor, self._queries, work, rings), strict=True):
            job.result = result
            if result is not None:  # whoever runs alone may fail, and what failed rings nothing
                job.rings |= rings
        return [job for job in jobs if job.result is None]

    def _meet(self, error: apsw.Error) -> errors.StoreError:
        """What was damaged is left as it is: what can be saved of it is in the log, too."""
        met = self._health.note(error, writing=True)
        if self._health.damage:
            self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return met

    def _run(self, job: QueuedWork, alone: bool) -> None:
        """Run one job, in a savepoint unless it is the only one."""
        job.result = job.error = None
        if not alone:
            self._cursor.execute("SAVEPOINT job")
        try:
            job.result = drive(self._cursor, self._queries, job.start(), job.rings)
        except faults.LOSES_THE_GROUP:
            raise
        except apsw.Error as error:
            job.error = self._meet(error)
            self._undo(alone)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who gets it
            job.error = error
            self._undo(alone)
        else:
            if not alone:
                self._cursor.execute("RELEASE job")

    def _undo(self, alone: bool) -> None:
        if alone:
            self._roll_back()
        else:
            self._cursor.execute("ROLLBACK TO job; RELEASE job")

    def _roll_back(self) -> None:
        with suppress(apsw.Error):  # one that stays open fails the next group, and is tried again
            if self._db.in_transaction:
                self._cursor.execute("ROLLBACK")

    def _measure_log(self, _db: apsw.Connection, _schema: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Move the log into the database. SQLite would do so inside a COMMIT, and let its callers wait."""
        self._log_pages = 0
        try:
            self._db.wal_checkpoint()
        except apsw.Error as error:
            self._sync_failed |= faults.is_failed_sync(error)
            log.warning("checkpoint_failed", path=self._name, error=str(error))


def _kind_of(job: QueuedWork) -> Together | None:
    return job.start.together if isinstance(job.start, Mergeable) else None


def _take(jobs: "SimpleQueue[QueuedWork | None]") -> tuple[list[QueuedWork], bool]:
    """Wait for a job and take those that wait with it; False when the lane closes after them."""
    group: list[QueuedWork] = []
    job = jobs.get()
    while job is not None:
        if not job.future.cancelled():
            group.append(job)
        if len(group) == GROUP_JOBS:
            return group, True
        try:
            job = jobs.get_nowait()
        except Empty:
            return group, True
    return group, False
