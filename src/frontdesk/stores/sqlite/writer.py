"""The one writer: runs jobs one after the other and commits them in groups."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any

import apsw

from frontdesk import errors
from frontdesk.contracts.bells import Bells
from frontdesk.contracts.store import Brief, Mergeable, Ring, Swift, Work
from frontdesk.logs import get_logger
from frontdesk.stores.sql import Query
from frontdesk.stores.sqlite import faults, wal
from frontdesk.stores.sqlite.files import Location
from frontdesk.stores.sqlite.known import KnownRows
from frontdesk.stores.sqlite.threads import QueuedWork, TakesLong, answer, drive

log = get_logger(__name__)

Together = Callable[[list[Any]], Work[list[Any]]]

GROUP_JOBS = 1_024
BUSY_SECONDS = 5.0
BUSY_PAUSE_SECONDS = 0.02
BUSY_PAUSES = BUSY_SECONDS / BUSY_PAUSE_SECONDS
"""The writer's thread waits so often for another program that has locked the file."""
COLD_PAGES = 64
"""With so many in its log somebody goes on writing: who asks, or says one thing, needs no room for more."""
CHECKPOINT_PAGES = 1_000
SLOW_SECONDS, SLOW_AWAY_SECONDS = 0.005, 1.0
STALL_SECONDS, STALLED_AWAY_SECONDS = 0.05, 60.0
"""How long a commit on the event loop's own thread takes at most, before the next ones go to the writer's."""


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
        self._cursor, self._lent = db.cursor(), db.cursor()
        self.known = KnownRows()
        self._queries = queries
        self._place = place
        self._name = place.name
        self._durable = True
        self._sync_failed = False
        self._log_pages = 0
        self._room_pages = COLD_PAGES
        db.set_wal_hook(self._measure_log)
        db.set_busy_handler(self._wait_for_others)
        self._in_use = threading.Lock()  # the connection, by this thread or another
        self._thread = 0
        self._done = 0
        self._slow = 0
        self._away_until = 0.0

    def serve(self, jobs: "SimpleQueue[QueuedWork | None]") -> None:
        """Whatever happens, everybody gets an answer, and the thread goes on."""
        self._thread = threading.get_ident()
        going = True
        while going:
            group, taken, going = _take(jobs)
            with self._in_use:
                try:
                    if group:
                        self._commit(group)
                except Exception as error:
                    log.exception("writer_failed", path=self._name)
                    self._fail(group, error)
                # Before anybody hears of it: what they want next may be done where they are.
                self._done += taken
            answer(group, self._bells)
            if self._log_pages >= self._room_pages and not self._health.damage:
                with self._in_use:
                    self._make_room()

    def _fail(self, group: list[QueuedWork], error: Exception) -> None:
        """Nothing of it was done, by a fault of ours."""
        self._roll_back()
        for job in group:
            job.error = errors.StoreFailed(path=self._name, why=f"{type(error).__name__}: {error}")

    def borrow(self) -> apsw.Cursor | None:
        """The connection that writes, for somebody who waits for nobody; None while it is in use. It is to be
        given back."""
        return self._lent if self._in_use.acquire(blocking=False) else None

    def give_back(self) -> None:
        self._in_use.release()

    def run_here(self, wanted: list[Brief[Any] | Swift[Any]], queued: int) -> list[Any]:
        """Run and commit brief or swift work on the caller's own thread: a quick disk takes less time than
        waking one, and two that want the interpreter at once hold each other up.

        The results of the first ones, as many as were done. The rest is for the writer's thread: behind work
        that waits there, while the disk is slow or the log is to be moved into the database, from one on that
        is not the usual case, and when something failed, which is met again there.
        """
        if self.borrow() is None:
            return []
        rings: set[Ring] = set()
        try:
            began = time.monotonic()
            is_clear = (
                self._log_pages < self._room_pages and not self._sync_failed and not self._health.damage
            )
            if queued != self._done or not is_clear or began < self._away_until:
                return []
            done = self._run_here(wanted, began, rings)
        finally:
            self.give_back()
        for topic, far in rings if done else ():
            self._bells.ring(topic, far=far)
        return done

    def _run_here(self, wanted: list[Brief[Any] | Swift[Any]], began: float, rings: set[Ring]) -> list[Any]:
        try:
            if not self._durable:
                self._sync(durably=True)
            done = self._work(wanted, rings)
            if self._db.in_transaction:
                self._lent.execute("COMMIT")
            if done:
                self.known.committed()
                self._health.wrote(durably=True)
        except (faults.FileGone, faults.FileCut) as error:  # committed, and not to be run a second time
            raise self._meet(error) from error
        except apsw.Error as error:
            self._lose(error)
            return []
        except TakesLong:
            return []
        except Exception:
            if isinstance(wanted[0], Swift):
                raise  # it is the caller's, and taken back
            return []  # one of them cannot be done at all: on the thread each meets its own error
        finally:  # what failed in the end may have held everybody up, too
            if self._db.in_transaction:
                self._lose()
            self._mind(began)
        return done

    def _work(self, wanted: list[Brief[Any] | Swift[Any]], rings: set[Ring]) -> list[Any]:
        """One after the other, up to one that has to be done otherwise; swift work is always the only one."""
        done: list[Any] = []
        if len(wanted) > 1 or isinstance(wanted[0], Swift):
            self._lent.execute("BEGIN IMMEDIATE")
        for each in wanted:
            if isinstance(each, Swift):
                done.append(self._run_swift(each, rings))
            elif self._run_brief(each, rings):
                done.append(each.result)
            else:
                break
        return done

    def _run_brief(self, brief: Brief[Any], rings: set[Ring]) -> bool:
        """Whether it was the usual case; else nothing is done. A statement that fails has done nothing."""
        name, values = brief.statement
        query, before = self._queries[name], self._db.total_changes()
        self._lent.execute(query.sql, query.arguments(values)).fetchall()
        if self._db.total_changes() == before:
            return False
        self.known.change(brief.changes, brief.change)
        rings.add((brief.bell, True))
        return True

    def _run_swift(self, start: Swift[Any], rings: set[Ring]) -> Any:
        """What it raises is the caller's, who gets it."""
        try:
            return drive(self._lent, self._queries, start(), rings, self.known, swiftly=True)
        except BaseException:
            self._roll_back()
            raise

    def _mind(self, began: float) -> None:
        """One slow commit may be anybody's fault. After a second one, and after one that held everybody up,
        the thread waits for the disk."""
        taken = time.monotonic() - began
        self._slow = self._slow + 1 if taken > SLOW_SECONDS else 0
        if taken > STALL_SECONDS:
            self._away_until = began + STALLED_AWAY_SECONDS
        elif self._slow > 1:
            self._away_until = began + SLOW_AWAY_SECONDS

    def stay_away(self) -> None:
        """Nothing is run on other threads any more."""
        with self._in_use:
            self._away_until = math.inf
            self.known.forget_all()

    def _wait_for_others(self, times: int) -> bool:
        """Another program has locked the file; whether to try again. Nothing but this thread waits."""
        if threading.get_ident() != self._thread or times >= BUSY_PAUSES:
            return False
        time.sleep(BUSY_PAUSE_SECONDS)
        return True

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
            self._lose(error)
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
        durably = False in {job.lazy for job in group}
        if durably != self._durable:
            self._sync(durably=durably)
        self._cursor.execute("BEGIN IMMEDIATE")
        if self._sync_failed:  # before anything is written on top of what may be missing
            wal.write_again(self._place)
            self._sync_failed = False

    def _sync(self, *, durably: bool) -> None:
        """Whether commits wait for the disk from now on."""
        self._cursor.execute(f"PRAGMA synchronous = {'FULL' if durably else 'NORMAL'}")
        self._durable = durably

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
                job.result = drive(self._cursor, self._queries, job.start(), job.rings, self.known)
            return
        for job in self._run_merged(together, jobs) if len(jobs) > 1 else jobs:
            self._run(job, alone=False)

    def _run_merged(self, together: Together, jobs: list[QueuedWork]) -> list[QueuedWork]:
        """Run jobs of one kind in one go; those that have to be run alone are given back."""
        work = together([job.start.args for job in jobs if isinstance(job.start, Mergeable)])
        rings: set[Ring] = set()
        results = drive(self._cursor, self._queries, work, rings, self.known)
        for job, result in zip(jobs, results, strict=True):
            job.result = result
            if result is not None:  # whoever runs alone may fail, and what failed rings nothing
                job.rings |= rings
        return [job for job in jobs if job.result is None]

    def _meet(self, error: apsw.Error) -> errors.StoreError:
        """What was damaged is left as it is: what can be saved of it is in the log, too."""
        self.known.forget_all()
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
            job.result = drive(self._cursor, self._queries, job.start(), job.rings, self.known)
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

    def _lose(self, error: apsw.Error | None = None) -> None:
        """What was begun is gone."""
        self._sync_failed |= error is not None and faults.is_failed_sync(error)
        self._roll_back()
        self.known.forget_all()

    def _roll_back(self) -> None:
        self.known.rolled_back()
        with suppress(apsw.Error):  # one that stays open fails the next group, and is tried again
            if self._db.in_transaction:
                self._cursor.execute("ROLLBACK")

    def _measure_log(self, _db: apsw.Connection, _schema: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _make_room(self) -> None:
        """Give the log its size, once; from then on it is moved into the database."""
        if self._room_pages == CHECKPOINT_PAGES:
            self._checkpoint()
            return
        self._room_pages = CHECKPOINT_PAGES
        try:
            wal.warm(self._db, self._place, CHECKPOINT_PAGES)
        except apsw.Error as error:  # it only makes things slower; a disk that fails will say so again
            self._sync_failed = True
            log.warning("log_not_warmed", path=self._name, error=str(error))

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


def _take(jobs: "SimpleQueue[QueuedWork | None]") -> tuple[list[QueuedWork], int, bool]:
    """Wait for a job and take those that wait with it, and their number; False when the lane closes after."""
    group: list[QueuedWork] = []
    taken = 0
    job = jobs.get()
    while job is not None:
        taken += 1
        if not job.future.cancelled():
            group.append(job)
        if len(group) == GROUP_JOBS:
            return group, taken, True
        try:
            job = jobs.get_nowait()
        except Empty:
            return group, taken, True
    return group, taken, False
