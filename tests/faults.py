"""Disks that fail: a file system for SQLite that runs out of room, breaks, or remembers what it was told.

with faults.failing_disk() as disk:
    service = await SessionStore.open(f"sqlite:///{path}?vfs={disk.name}")
    disk.fill(room=10_000)
"""

import contextlib
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import apsw

_numbers = itertools.count()
SECTOR_BYTES = 512

Name = str | apsw.URIFilename | None


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
SUFFIXES = {"-wal": Kind.LOG, "-journal": Kind.JOURNAL, "": Kind.DATABASE}


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
            raise _failure(operation, kind)


def _failure(operation: Operation, kind: Kind) -> apsw.IOError:
    error = apsw.IOError(f"the disk failed to {operation} the {kind}")
    vars(error)["extendedresult"] = CODES[operation]
    return error


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


class _File(apsw.VFSFile):
    """A file of the system's. apsw raises what SQLite would ignore: that is kept from happening here."""

    def __init__(self, name: Name, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self.kind = kind_of(flags[0])

    def xLock(self, level: int) -> None:
        """A reader that closes tries for a lock which it can never have, in case it is the last."""
        try:
            super().xLock(level)
        except apsw.IOError as error:
            raise apsw.BusyError from error


class _FailingFile(_File):
    def __init__(self, disk: FailingDisk, name: Name, flags: list[int]) -> None:
        super().__init__(name, flags)
        self._disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.meet(Operation.READ, self.kind)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.meet(Operation.WRITE, self.kind)
        growth = max(0, offset + len(data) - super().xFileSize())
        granted = self._disk.grow(growth) if growth else 0
        fits = len(data) - (growth - granted)
        if fits > 0:
            super().xWrite(data[:fits], offset)
        if granted < growth:
            raise apsw.FullError("the disk is full")

    def xSync(self, flags: int) -> None:
        self._disk.meet(Operation.SYNC, self.kind)
        super().xSync(flags)


class _FailingVFS(apsw.VFS):
    def __init__(self, disk: FailingDisk) -> None:
        super().__init__(disk.name, "")
        self._disk = disk

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        return _FailingFile(self._disk, name, flags)


@contextlib.contextmanager
def failing_disk() -> Iterator[FailingDisk]:
    disk = FailingDisk(f"failing-{next(_numbers)}")
    vfs = _FailingVFS(disk)
    try:
        yield disk
    finally:
        vfs.unregister()


class Action(StrEnum):
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    FAILED_SYNC = "failed sync"
    DELETE = "delete"
    SYNC_FOLDER = "sync folder"


class Event(NamedTuple):
    """Something that a file was told. An offset is also a size."""

    action: Action
    kind: Kind
    offset: int = 0
    data: bytes = b""


class RecordingDisk:
    """The disk as the test sees it: everything that files were told, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[Event] = []
        self.sync_fails = False

    def note(self, action: Action, kind: Kind, offset: int = 0, data: bytes = b"") -> None:
        self.events.append(Event(action, kind, offset, data))


class _RecordingFile(_File):
    def __init__(self, disk: RecordingDisk, name: Name, flags: list[int]) -> None:
        super().__init__(name, flags)
        self._disk = disk
        self._is_entered = self.kind is Kind.DATABASE

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.note(Action.WRITE, self.kind, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._disk.note(Action.TRUNCATE, self.kind, size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        """What was written before is on the disk afterwards; when that fails, the system has let go of it.

        The first sync of a journal or log is one of its folder, too.
        """
        if self._disk.sync_fails:
            self._disk.note(Action.FAILED_SYNC, self.kind)
            raise _failure(Operation.SYNC, self.kind)
        super().xSync(flags)
        self._disk.note(Action.SYNC, self.kind)
        if not self._is_entered:
            self._is_entered = True
            self._disk.note(Action.SYNC_FOLDER, self.kind)


class _RecordingVFS(apsw.VFS):
    def __init__(self, disk: RecordingDisk) -> None:
        super().__init__(disk.name, "")
        self._disk = disk

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        return _RecordingFile(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        kind = next(kind for suffix, kind in SUFFIXES.items() if filename.endswith(suffix))
        self._disk.note(Action.DELETE, kind)
        if syncdir:
            self._disk.note(Action.SYNC_FOLDER, kind)


@contextlib.contextmanager
def recording_disk() -> Iterator[RecordingDisk]:
    disk = RecordingDisk(f"recording-{next(_numbers)}")
    vfs = _RecordingVFS(disk)
    try:
        yield disk
    finally:
        vfs.unregister()


class Fate(StrEnum):
    """What becomes of writes that were not synced when the power fails."""

    LOST = "lost"
    KEPT = "kept"
    TORN = "torn"


class Platter:
    """What is on the disk after some events, and what is on its way there, file by file."""

    def __init__(self) -> None:
        self._safe: dict[Kind, bytearray] = {}
        self._pending: dict[Kind, list[Event]] = {}

    def follow(self, events: Sequence[Event]) -> None:
        for event in events:
            pending = self._pending.setdefault(event.kind, [])
            match event.action:
                case Action.SYNC:
                    _apply(self._safe.setdefault(event.kind, bytearray()), pending)
                    pending.clear()
                case Action.FAILED_SYNC:
                    pending.clear()
                case Action.SYNC_FOLDER:
                    self._forget_deleted()
                case _:
                    pending.append(event)

    def _forget_deleted(self) -> None:
        for kind, pending in self._pending.items():
            while Action.DELETE in (event.action for event in pending):
                pending.pop(0)
                self._safe.pop(kind, None)

    def cut_power(self, fate: Fate, dice: random.Random) -> dict[Kind, bytes]:
        """The files as the next start finds them."""
        files: dict[Kind, bytes] = {}
        for kind, pending in self._pending.items():
            content = bytearray(self._safe.get(kind, b""))
            if fate is Fate.KEPT:
                _apply(content, pending)
            if fate is Fate.TORN:
                content, left = _one_file(content, pending, dice)
                _apply(content, list(_torn(left, dice)))
            files[kind] = bytes(content)
        return files


def _one_file(content: bytearray, pending: list[Event], dice: random.Random) -> tuple[bytearray, list[Event]]:
    """The folder has the file that was deleted or the one that was made after it, never parts of both."""
    deletions = [at for at, event in enumerate(pending) if event.action is Action.DELETE]
    if not deletions:
        return content, pending
    if dice.choice([True, False]):
        return content, pending[: deletions[0]]
    return bytearray(), pending[deletions[-1] + 1 :]


def _apply(content: bytearray, events: Sequence[Event]) -> None:
    for event in events:
        if event.action is Action.WRITE:
            content.extend(bytes(max(0, event.offset - len(content))))
            content[event.offset : event.offset + len(event.data)] = event.data
        else:
            del content[event.offset :]


def _torn(events: Sequence[Event], dice: random.Random) -> Iterator[Event]:
    """Any of the events, and of writes any of the sectors."""
    for event in events:
        if event.action is not Action.WRITE:
            yield from dice.choice([[], [event]])
            continue
        kept = dice.choice([0, 0.5, 1])
        for start in range(0, len(event.data), SECTOR_BYTES):
            if dice.random() < kept:
                data = event.data[start : start + SECTOR_BYTES]
                yield event._replace(offset=event.offset + start, data=data)
