"""SQLite's errors in our words, and what of them the store has met last."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from frontdesk import errors
from frontdesk.stores.sqlite.files import Location, translated_os

FRESH_SECONDS = 1.0

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


def is_failed_sync(error: Exception) -> bool:
    return _code(error) == apsw.SQLITE_IOERR_FSYNC


def _code(error: Exception) -> int:
    return int(getattr(error, "extendedresult", 0))


@contextmanager
def translated(path: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from error


class WriteHealth:
    """What writes experience, for whoever asks whether messages can be stored. Damage stays until the file is
    opened again, a full disk until there is room."""

    def __init__(self, place: Location) -> None:
        self._name = place.name
        self._path = place.path
        self._file: os.stat_result | None = None
        if place.path:
            with translated_os(place.path):
                self._file = os.stat(place.path)
        self._written_at = -math.inf
        self._trouble: errors.StoreError | None = None
        self.damage: errors.CorruptDatabase | None = None

    @property
    def is_full(self) -> bool:
        return isinstance(self._trouble, errors.StoreFull)

    @property
    def is_known_good(self) -> bool:
        """Something was written just now, nothing failed since, and the file is still there."""
        if self._trouble or time.monotonic() - self._written_at >= FRESH_SECONDS:
            return False
        try:
            self._look_at_file()
        except (FileGone, FileCut):
            return False
        return True

    def _look_at_file(self) -> os.stat_result | None:
        """What stands under our name: the file that we opened, as long as it was."""
        if self._path is None or self._file is None:
            return None
        try:
            found = os.stat(self._path)
        except OSError:
            raise FileGone from None
        if (found.st_ino, found.st_dev) != (self._file.st_ino, self._file.st_dev):
            raise FileGone
        if found.st_size < self._file.st_size:
            raise FileCut("it was cut off")
        return found

    def note(self, error: apsw.Error, *, writing: bool) -> errors.StoreError:
        """Keep what an operation met, and give it in our words."""
        if isinstance(error, apsw.NotADBError):  # it was one when it was opened
            error = apsw.CorruptError(str(error))
        elif isinstance(error, apsw.IOError):  # which may come of what has become of the file
            try:
                self._look_at_file()
            except (FileGone, FileCut) as found:
                error = found
        met = translate(error, self._name)
        if isinstance(met, errors.CorruptDatabase):
            self.damage = self.damage or met
        if writing and isinstance(error, HURTS_EVERYBODY):
            self._trouble = met
        return met

    def wrote(self, *, durably: bool) -> None:
        """A commit took place. FileGone and FileCut when it is not in the file that the next start finds, or
        the rest is not. A small one says nothing about a disk that was too full for a large one."""
        self._file = self._look_at_file()
        if durably:
            self._written_at = time.monotonic()
            if not isinstance(self._trouble, errors.StoreFull):
                self._trouble = None

    def found_room(self) -> None:
        self._trouble = None
