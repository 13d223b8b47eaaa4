"""The write-ahead log as a file: given its size beforehand, and written again after a failed sync."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from frontdesk.logs import get_logger
from frontdesk.stores.sqlite.files import Place

log = get_logger(__name__)

FRAME_BYTES = 4096 + 24
CHUNK_BYTES = 64 * 1024


def warm(db: apsw.Connection, place: Place, pages: int) -> None:
    """Give the log its size beforehand: a file that is overwritten is synced in half the time that one takes
    which grows. What lies behind the last commit is ignored by SQLite, whatever it is."""
    try:
        with _locked(db), _opened(place) as file:
            for offset in range(file.xFileSize(), pages * FRAME_BYTES, CHUNK_BYTES):
                file.xWrite(bytes(CHUNK_BYTES), offset)
            file.xSync(apsw.SQLITE_SYNC_NORMAL)
    except apsw.Error as error:  # it only makes things slower; a disk that fails will say so again
        log.warning("log_not_warmed", path=place.name, error=str(error))


@contextmanager
def _locked(db: apsw.Connection) -> Iterator[None]:
    """Nobody else writes to the log meanwhile, not even another program."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def write_again(place: Place) -> None:
    """Write the log over itself and sync it, while nobody else may write.

    After a sync that failed the system may take what it could not write for written: the next sync would
    succeed without it, and lazy commits would be missing under the durable ones on top of them.
    """
    with _opened(place) as file:
        size = file.xFileSize()
        for offset in range(0, size, CHUNK_BYTES):
            file.xWrite(file.xRead(min(CHUNK_BYTES, size - offset), offset), offset)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)


@contextmanager
def _opened(place: Place) -> Iterator[apsw.VFSFile]:
    flags = [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, 0]
    file = apsw.VFSFile(place.vfs or "", f"{place.name}-wal", flags)
    try:
        yield file
    finally:
        file.xClose()
