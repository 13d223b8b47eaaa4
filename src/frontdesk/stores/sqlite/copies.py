"""A copy of the database file, as it was before it is changed for good."""

import os
import shutil
from pathlib import Path

import apsw

from frontdesk import errors
from frontdesk.stores.sqlite.files import translated_os

MIB = 1024 * 1024


def keep(db: apsw.Connection, path: Path, version: int) -> Path:
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
            _write(db, unfinished)
        except BaseException as error:
            unfinished.unlink(missing_ok=True)
            if isinstance(error, apsw.FullError):
                raise _no_room(path, size) from error
            raise
        unfinished.replace(copy)
        _sync(path.parent)
    return copy


def _write(db: apsw.Connection, file: Path) -> None:
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
