"""The connection that writes, opened: the file is whole, of the present version, and set up."""

from pathlib import Path

import apsw

from frontdesk.contracts.store import Upgrade
from frontdesk.stores.sql import load_queries
from frontdesk.stores.sqlite import faults, schema, wal
from frontdesk.stores.sqlite.files import Location
from frontdesk.stores.sqlite.threads import equip

BUSY_MILLISECONDS = 5_000
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
