"""Bringing a database file to the present schema, or refusing it."""

import os
import shutil
from pathlib import Path

import apsw

from frontdesk import errors
from frontdesk.contracts.store import Upgrade
from frontdesk.logs import get_logger
from frontdesk.stores.sql import count_migrations, load_migrations
from frontdesk.stores.sqlite.files import Location, translated_os
from frontdesk.stores.sqlite.threads import drive
from frontdesk.stores.upgrades import load_step_queries, steps_after

APPLICATION_ID = 0x66726473
MIB = 1024 * 1024

log = get_logger(__name__)


def migrate(db: apsw.Connection, place: Location, *, upgrade: bool = True) -> Upgrade | None:
    """Bring the database up to date, at once or not at all, with a copy of how it was; refuse one that is not
    ours, newer than we, or older where it is to be left as it is."""
    known = count_migrations("sqlite")
    version = _check(db, place.name, known)
    if version == known:
        return None
    if version and not upgrade:
        raise errors.OlderDatabase(path=place.name, found=version, known=known)
    copy = str(_keep_copy(db, place.path, version)) if version and place.path else None
    with db:
        for script in load_migrations("sqlite")[version:]:
            db.execute(script)
            for step in steps_after(script):
                drive(db.cursor(), load_step_queries("sqlite"), step())
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known}")
    if not version:
        return None
    log.warning("database_upgraded", path=place.name, found=version, known=known, copy=copy)
    return Upgrade(found=version, known=known, copy=copy)


def _check(db: apsw.Connection, path: str, known: int) -> int:
    application = db.pragma("application_id")
    version = int(db.pragma("user_version"))
    if application != APPLICATION_ID:
        if application or version or db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
            raise errors.ForeignDatabase(path=path, why="it belongs to another program")
        return 0
    if version > known:
        raise errors.NewerDatabase(path=path, found=version, known=known)
    return version


def _keep_copy(db: apsw.Connection, path: Path, version: int) -> Path:
    """Write the database of that version beside itself, whole and on the disk, or not at all.

    A copy of the same version that was made before is replaced: the database has gone on since.
    """
    copy = path.with_name(f"{path.name}.version-{version}")
    unfinished = path.with_name(f"{copy.name}.part")
    size = int(db.pragma("page_count")) * int(db.pragma("page_size"))
    with translated_os(path):
        unfinished.unlink(missing_ok=True)
        if shutil.disk_usage(path.parent).free < size:
            raise _no_room(path, size)
        unfinished.touch(mode=0o600)
        try:
            _write_copy(db, unfinished)
        except BaseException as error:
            unfinished.unlink(missing_ok=True)
            if isinstance(error, apsw.FullError):
                raise _no_room(path, size) from error
            raise
        unfinished.replace(copy)
        _sync(path.parent)
    return copy


def _write_copy(db: apsw.Connection, file: Path) -> None:
    target = apsw.Connection(str(file))
    try:
        target.pragma("synchronous", "off")  # synced once, as a whole
        with target.backup("main", db, "main") as backup:
            backup.step()
    finally:
        target.close()
    _sync(file)


def _sync(place: Path) -> None:
    opened = os.open(place, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _no_room(path: Path, size: int) -> errors.NoRoomForCopy:
    return errors.NoRoomForCopy(path=path, needed=size // MIB + 1)
