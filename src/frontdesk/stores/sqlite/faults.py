"""SQLite's errors in our words."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from frontdesk import errors

LOSES_THE_GROUP = (
    apsw.FullError,
    apsw.IOError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.CorruptError,
)
"""Errors after which SQLite may have rolled the transaction back, or takes no more writes in it."""

NO_ROOM_TO_SHARE = apsw.SQLITE_IOERR_SHMSIZE
"""The memory that connections share is a file, too, and could not grow."""


HURTS_EVERYBODY = (
    *LOSES_THE_GROUP,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.NotADBError,
    apsw.BusyError,
    apsw.LockedError,
)
"""Errors that are the store's: the next write would meet them, too."""


class FileGone(apsw.IOError):
    """The file under our name is not the one that we opened."""


class FileCut(apsw.CorruptError):
    """The file is shorter than it was."""


def translate(error: apsw.Error, path: str) -> errors.StoreError:
    match error:
        case apsw.FullError():
            return errors.StoreFull(path=path)
        case apsw.IOError() if _code(error) == NO_ROOM_TO_SHARE:
            return errors.StoreFull(path=path)
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return errors.ReadOnlyStore(path=path)
        case apsw.NotADBError():
            return errors.ForeignDatabase(path=path, why="not an SQLite file")
        case FileGone():
            return errors.DatabaseGone(path=path)
        case apsw.CorruptError():
            return errors.CorruptDatabase(path=path, why=str(error))
        case apsw.BusyError() | apsw.LockedError():
            return errors.StoreLocked(path=path, holder="another program")
        case _:
            return errors.StoreFailed(path=path, why=f"{type(error).__name__}: {error}")


def is_failed_sync(error: apsw.Error) -> bool:
    return _code(error) == apsw.SQLITE_IOERR_FSYNC


def _code(error: apsw.Error) -> int:
    return int(getattr(error, "extendedresult", 0))


@contextmanager
def translated(path: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from error
