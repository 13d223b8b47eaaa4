"""Looking through a directory: what belongs to a checkpoint, and what is left out."""

import os
import re
import stat
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from frontdesk import errors
from frontdesk.model.checkpoints import Limits, SkipReason
from frontdesk.snapshots.folders import FOLDER, Folder, Stamp, permissions, stamp_of
from frontdesk.snapshots.trees import Kind

LEFTOVER = re.compile(r"\.frontdesk-restore-[0-9a-f]{16}")
"""What a restore writes before it takes a file's name."""
REPOSITORY = ".git"
CACHE_TAG = "CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class Found(NamedTuple):
    """What stands at a path; a symbolic link has a target."""

    kind: Kind
    mode: int
    stamp: Stamp
    target: bytes = b""

    @property
    def size(self) -> int:
        return self.stamp.size if self.kind is Kind.FILE else len(self.target)


class Walk:
    """One look through a directory. Paths in ``keep`` are not left out by a rule about names or sizes."""

    def __init__(
        self, directory: Path, limits: Limits, private: Iterable[Path], keep: Container[str] = ()
    ) -> None:
        self.found: dict[str, Found] = {}
        self.skipped: dict[str, SkipReason] = {}
        self.leftovers: list[str] = []
        self._directory = directory
        self._limits = limits
        self._keep = keep
        self._bytes = 0
        self._private = {_identity(path) for path in private}

    def run(self, folder: Folder) -> None:
        """Look everywhere; a directory past the limits is refused."""
        self._device = os.fstat(folder.fd).st_dev
        self._look_into(folder.fd, "", depth=1)

    def _look_into(self, fd: int, prefix: str, depth: int) -> None:
        for name in sorted(os.listdir(fd)):
            path = prefix + name
            if name.casefold() == REPOSITORY:
                self.skipped[path] = SkipReason.REPOSITORY
            else:
                self._try_to_look_at(fd, name, path, depth)

    def _try_to_look_at(self, fd: int, name: str, path: str, depth: int) -> None:
        try:
            self._look_at(fd, name, path, depth)
        except (FileNotFoundError, NotADirectoryError):
            # It has gone, or become something else, since the folder was read.
            return
        except PermissionError:
            self.skipped[path] = SkipReason.UNREADABLE

    def _look_at(self, fd: int, name: str, path: str, depth: int) -> None:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            self._look_at_folder(fd, name, path, status, depth)
        elif LEFTOVER.fullmatch(name):
            self.leftovers.append(path)
        elif stat.S_ISREG(status.st_mode):
            self._look_at_file(path, status)
        elif stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=fd))
            self._add(path, Found(Kind.LINK, 0, stamp_of(status), target))
        else:
            self.skipped[path] = SkipReason.SPECIAL

    def _look_at_file(self, path: str, status: os.stat_result) -> None:
        if status.st_size > self._limits.max_file_bytes and path not in self._keep:
            self.skipped[path] = SkipReason.LARGE
        else:
            self._add(path, Found(Kind.FILE, permissions(status), stamp_of(status)))

    def _look_at_folder(self, above: int, name: str, path: str, status: os.stat_result, depth: int) -> None:
        reason = self._reason_to_stay_out(name, path, status, depth)
        if reason:
            self.skipped[path] = reason
            return
        fd = os.open(name, FOLDER, dir_fd=above)
        try:
            self._enter(fd, path, status, depth)
        finally:
            os.close(fd)

    def _enter(self, fd: int, path: str, status: os.stat_result, depth: int) -> None:
        if path not in self._keep and _is_generated(fd):
            self.skipped[path] = SkipReason.GENERATED
            return
        self._add(path, Found(Kind.FOLDER, permissions(status), stamp_of(status)))
        self._look_into(fd, f"{path}/", depth + 1)

    def _reason_to_stay_out(
        self, name: str, path: str, status: os.stat_result, depth: int
    ) -> SkipReason | None:
        if (status.st_dev, status.st_ino) in self._private:
            return SkipReason.PRIVATE
        if status.st_dev != self._device:
            return SkipReason.MOUNT
        if depth > self._limits.max_depth:
            return SkipReason.DEEP
        if name in self._limits.generated_names and path not in self._keep:
            return SkipReason.GENERATED
        return None

    def _add(self, path: str, found: Found) -> None:
        self.found[path] = found
        self._bytes += found.size
        if len(self.found) > self._limits.max_files:
            self._refuse(f"it holds more than {self._limits.max_files:,} files and folders")
        if self._bytes > self._limits.max_total_bytes:
            self._refuse(f"it holds more than {self._limits.max_total_bytes:,} bytes")

    def _refuse(self, why: str) -> None:
        raise errors.DirectoryTooLarge(directory=self._directory, why=why)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_generated(fd: int) -> bool:
    """Whether a folder says of itself that a tool made it: a cache, a virtual environment."""
    return any(_says_so(fd, name, sign) for name, sign in _signs())


def _signs() -> Iterator[tuple[str, bytes]]:
    yield CACHE_TAG, CACHE_SIGNATURE
    yield VIRTUAL_ENVIRONMENT, b""


def _says_so(above: int, name: str, sign: bytes) -> bool:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and os.read(fd, len(sign)) == sign
    except OSError:
        return False
    finally:
        os.close(fd)
