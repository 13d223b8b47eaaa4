"""The write-ahead log as a file: given its size beforehand, and written again after a failed sync."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from frontdesk.stores.sqlite.files import Location, log_of

FRAME_BYTES = 4096 + 24
HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
PENDING_BYTE = 1 << 30
"""SQLite keeps the page with this byte free."""
ROOM_BYTES = 1024 * 1024
CHUNK_BYTES = 64 * 1024


def warm(db: apsw.Connection, place: Location, pages: int) -> None:
    """Give the log its size beforehand: a file that is overwritten is synced in half the time that one takes
    which grows. What lies behind the last commit is ignored by SQLite, whatever it is."""
    with _locked(db), _opened(place) as file:
        for offset in range(file.xFileSize(), pages * FRAME_BYTES, CHUNK_BYTES):
            file.xWrite(bytes(CHUNK_BYTES), offset)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)


@contextmanager
def _locked(db: apsw.Connection) -> Iterator[None]:
    """Nobody else writes to the log meanwhile, not even another program."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def check_room(place: Location) -> None:
    """FullError or IOError unless a file as large as the largest message can be written and synced."""
    flags = [apsw.SQLITE_OPEN_TEMP_DB | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, 0]
    name = f"{place.name}-room"
    file = apsw.VFSFile(place.vfs or "", name, flags)
    try:
        for offset in range(0, ROOM_BYTES, CHUNK_BYTES):
            file.xWrite(bytes(CHUNK_BYTES), offset)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
        Path(name).unlink(missing_ok=True)


def missing_pages(path: Path, page_bytes: int, pages: int) -> int:
    """How many of a database's pages are neither in its file nor in its log: they were cut off."""
    there = path.stat().st_size // page_bytes
    never_used = PENDING_BYTE // page_bytes + 1
    missing = set(range(there + 1, pages + 1)) - {never_used}
    return len(missing - _logged_pages(log_of(path), page_bytes)) if missing else 0


def _logged_pages(log: Path, page_bytes: int) -> set[int]:
    """The pages that a log has frames of."""
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return set()
    salts = content[16:24]
    frames = range(HEADER_BYTES, len(content) - FRAME_HEADER_BYTES, page_bytes + FRAME_HEADER_BYTES)
    return {
        int.from_bytes(content[at : at + 4], "big") for at in frames if content[at + 8 : at + 16] == salts
    }


def write_again(place: Location) -> None:
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
def _opened(place: Location) -> Iterator[apsw.VFSFile]:
    flags = [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, 0]
    file = apsw.VFSFile(place.vfs or "", f"{place.name}-wal", flags)
    try:
        yield file
    finally:
        file.xClose()
