"""Disks that fail: a file system for SQLite that runs out of room, breaks, or remembers what it was told.

    with faults.failing_disk() as disk:
        service = await SessionStore.open(f"sqlite:///{path}?vfs={disk.name}")
        disk.fill(room=10_000)
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import apsw

_numbers = itertools.count()


class Operation(StrEnum):
    READ = "read"
    WRITE = "write"
    SYNC = "sync"


class Kind(StrEnum):
    """What a file is for."""

    DATABASE = "database"
    LOG = "log"
    JOURNAL = "journal"
    OTHER = "other"


CODES = {
    Operation.READ: apsw.SQLITE_IOERR_READ,
    Operation.WRITE: apsw.SQLITE_IOERR_WRITE,
    Operation.SYNC: apsw.SQLITE_IOERR_FSYNC,
}
KINDS = {
    apsw.SQLITE_OPEN_MAIN_DB: Kind.DATABASE,
    apsw.SQLITE_OPEN_WAL: Kind.LOG,
    apsw.SQLITE_OPEN_MAIN_JOURNAL: Kind.JOURNAL,
}


def kind_of(flags: int) -> Kind:
    return next((kind for flag, kind in KINDS.items() if flags & flag), Kind.OTHER)


class Fault:
    """Some operations of one sort on one kind of file that will fail."""

    def __init__(self, operation: Operation, kind: Kind | None, after: int, times: float) -> None:
        self._operation = operation
        self._kind = kind
        self._after = after
        self._times = times

    def meet(self, operation: Operation, kind: Kind) -> None:
        if operation is not self._operation or self._kind not in (None, kind):
            return
        if self._after:
            self._after -= 1
        elif self._times:
            self._times -= 1
            error = apsw.IOError(f"the disk failed to {operation} the {kind}")
            error.extendedresult = CODES[operation]
            raise error


class FailingDisk:
    """The disk as the test sees it: the name to open files under, and what goes wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures = 0
        self._room = math.inf
        self._fault: Fault | None = None

    def fill(self, room: int) -> None:
        """From now on files can grow by so many bytes in all; what they have can still be overwritten."""
        self._room = room

    def fail(
        self, operation: Operation, *, kind: Kind | None = None, after: int = 0, times: float = math.inf
    ) -> None:
        """Let operations of that sort fail, after so many that go well."""
        self._fault = Fault(operation, kind, after, times)

    def mend(self) -> None:
        """There is room again, and nothing fails any more."""
        self._room = math.inf
        self._fault = None

    def meet(self, operation: Operation, kind: Kind) -> None:
        if self._fault:
            try:
                self._fault.meet(operation, kind)
            except apsw.IOError:
                self.failures += 1
                raise

    def grow(self, by: int) -> int:
        """Take room for a file; how much of it there was."""
        granted = int(min(by, self._room))
        self._room -= granted
        self.failures += granted < by
        return granted


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._kind = kind_of(flags[0])

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.meet(Operation.READ, self._kind)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.meet(Operation.WRITE, self._kind)
        growth = max(0, offset + len(data) - super().xFileSize())
        granted = self._disk.grow(growth) if growth else 0
        fits = len(data) - (growth - granted)
        if fits > 0:
            super().xWrite(data[:fits], offset)
        if granted < growth:
            raise apsw.FullError("the disk is full")

    def xSync(self, flags: int) -> None:
        self._disk.meet(Operation.SYNC, self._kind)
        super().xSync(flags)


class _FailingVFS(apsw.VFS):
    def __init__(self, disk: FailingDisk) -> None:
        super().__init__(disk.name, "")
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _FailingFile(self._disk, name, flags)


@contextlib.contextmanager
def failing_disk() -> Iterator[FailingDisk]:
    disk = FailingDisk(f"failing-{next(_numbers)}")
    vfs = _FailingVFS(disk)
    try:
        yield disk
    finally:
        vfs.unregister()
