"""Glances: single look-ups on the caller's own thread."""

import math
import threading
import time
from typing import TypeVar

import apsw

from frontdesk.contracts.store import Work
from frontdesk.stores.sql import Query
from frontdesk.stores.sqlite.condition import Condition
from frontdesk.stores.sqlite.faults import translated
from frontdesk.stores.sqlite.files import Place
from frontdesk.stores.sqlite.threads import drive

T = TypeVar("T")

SLOW_SECONDS = 0.05
AVOIDED_SECONDS = 5.0
CACHE_KIB = 16 * 1024


class Glances:
    """A connection for look-ups by key, as long as the disk behind it answers at once."""

    def __init__(self, place: Place, queries: dict[str, Query], condition: Condition) -> None:
        self._condition = condition
        self._queries = queries
        self._avoided_until = 0.0
        self._busy = threading.Lock()  # several event loops may share the store
        with translated(place.name):
            self._db = apsw.Connection(place.name, flags=apsw.SQLITE_OPEN_READONLY, vfs=place.vfs)
            self._db.pragma("cache_size", -CACHE_KIB)
            self._cursor = self._db.cursor()

    def acquire(self) -> bool:
        """Whether a look-up may be run now."""
        return time.monotonic() >= self._avoided_until and self._busy.acquire(blocking=False)

    def run(self, work: Work[T]) -> T:
        """Do what ``acquire`` has allowed."""
        began = time.monotonic()
        try:
            found: T = drive(self._cursor, self._queries, work)
        except apsw.Error as error:
            raise self._condition.note(error, writing=False) from error
        finally:
            self._busy.release()
        if time.monotonic() - began > SLOW_SECONDS:
            self._avoided_until = time.monotonic() + AVOIDED_SECONDS
        return found

    def close(self) -> None:
        """Allow no more look-ups."""
        self._avoided_until = math.inf
        with self._busy:
            self._db.close(True)
