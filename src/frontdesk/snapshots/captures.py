"""Taking in the contents of a directory: what changed is read, and only that goes to git."""

import collections
import hashlib
import os
import re
import stat
import time
from collections.abc import Container, Generator, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from frontdesk import errors
from frontdesk.model.checkpoints import Limits, SkipReason
from frontdesk.snapshots import caches, trees
from frontdesk.snapshots.caches import Cache
from frontdesk.snapshots.folders import FOLDER, Folder, Stamp, permissions, stamp_of
from frontdesk.snapshots.trees import Entry, Kind

LEFTOVER = re.compile(r"\.frontdesk-restore-[0-9a-f]{16}")
"""What a restore writes before it takes a file's name."""
REPOSITORY = ".git"
SIGNS = (("CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"), ("pyvenv.cfg", b""))
"""Files by which a cache or a virtual environment is known, and how they begin."""
READ_ATTEMPTS = 3
CHUNK_BYTES = 1024 * 1024


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
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                self._look_at_folder(fd, name, path, status, depth)
            elif LEFTOVER.fullmatch(name):
                self.leftovers.append(path)
            elif stat.S_ISREG(status.st_mode):
                if status.st_size > self._limits.max_file_bytes and path not in self._keep:
                    self.skipped[path] = SkipReason.LARGE
                else:
                    self._add(path, Found(Kind.FILE, permissions(status), stamp_of(status)))
            elif stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(name, dir_fd=fd))
                self._add(path, Found(Kind.LINK, 0, stamp_of(status), target))
            else:
                self.skipped[path] = SkipReason.SPECIAL
        except (FileNotFoundError, NotADirectoryError):
            # It has gone, or become something else, since the folder was read.
            return
        except PermissionError:
            self.skipped[path] = SkipReason.UNREADABLE

    def _look_at_folder(self, above: int, name: str, path: str, status: os.stat_result, depth: int) -> None:
        reason = self._reason_to_stay_out(name, path, status, depth)
        if reason:
            self.skipped[path] = reason
            return
        fd = os.open(name, FOLDER, dir_fd=above)
        try:
            if path not in self._keep and any(_says_so(fd, name, sign) for name, sign in SIGNS):
                self.skipped[path] = SkipReason.GENERATED
                return
            self._add(path, Found(Kind.FOLDER, permissions(status), stamp_of(status)))
            self._look_into(fd, f"{path}/", depth + 1)
        finally:
            os.close(fd)

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


def _says_so(above: int, name: str, sign: bytes) -> bool:
    """Whether a folder says of itself that a tool made it: a cache, a virtual environment."""
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


class Capture:
    """The present state of a directory on its way into the store."""

    def __init__(self, folder: Folder, walk: Walk, cache: Cache) -> None:
        self.entries: dict[str, Entry] = {}
        self.skipped = walk.skipped
        self.leftovers = walk.leftovers
        self.found = walk.found
        self.folder = folder
        self._cache = cache
        self._began_ns = time.time_ns()
        self._stamps: dict[str, tuple[Stamp, str]] = {}
        self._unsent: list[str] = []
        self._links: dict[str, bytes] = {}

    def look_again(self) -> bool:
        """Trust nothing that was known before; whether that makes a difference."""
        if not self._cache:
            return False
        self._cache = Cache()
        self._unsent.clear()
        self.look()
        return True

    def look(self) -> None:
        """Name the contents of everything, reading only the files whose stamps are not known."""
        for path, found in list(self.found.items()):
            match found.kind:
                case Kind.FOLDER:
                    self.entries[path] = Entry(Kind.FOLDER, found.mode)
                case Kind.LINK:
                    oid = trees.blob_id(found.target)
                    self.entries[path] = Entry(Kind.LINK, 0, found.size, oid)
                    self._links[oid] = found.target
                case Kind.FILE:
                    self._look_at_file(path, found)

    def _look_at_file(self, path: str, found: Found) -> None:
        oid = self._cache.look_up(path, found.stamp)
        if oid:
            self._note(path, found, oid, found.stamp)
        elif self._cache and self._read_known(path):
            return
        else:
            self._unsent.append(path)

    def _read_known(self, path: str) -> bool:
        """Read a file whose contents may be in the store already, as after a move."""
        collections.deque(self._read(path), maxlen=0)
        entry = self.entries.get(path)
        return entry is None or entry.oid in self._cache.known

    @property
    def is_known(self) -> bool:
        """Whether all contents of files are in the store already."""
        return not self._unsent

    def state(self) -> str:
        """The name of the manifest: the same for the same state."""
        return trees.blob_id(trees.encode_manifest(self.entries))

    def trees(self) -> tuple[bytes, str, str]:
        """What ``git mktree`` is to make of it, the name of the tree that holds all, and the state's."""
        state, skipped = self.state(), trees.blob_id(trees.encode_skipped(self.skipped))
        texts, root = trees.git_trees(self.entries, state, skipped)
        return b"".join(texts), root, state

    def pieces(self) -> Generator[bytes, None, None]:
        """Everything that the store lacks, as ``git fast-import`` reads it."""
        for path in self._unsent:
            yield from self._read(path)
        for data in (
            *self._links.values(),
            trees.encode_manifest(self.entries),
            trees.encode_skipped(self.skipped),
        ):
            yield b"blob\ndata %d\n%s\n" % (len(data), data)
        yield b"done\n"

    def cache(self) -> Cache:
        """For the next time."""
        rows = self._stamps.items()
        return Cache({path: (caches.settled(stamp, self._began_ns), oid) for path, (stamp, oid) in rows})

    def _read(self, path: str) -> Iterator[bytes]:
        """A file's contents; again when it changes meanwhile, and the last time as it comes."""
        for _ in range(READ_ATTEMPTS):
            fd = self._open(path)
            if fd is None:
                return
            try:
                still = yield from self._stream(path, fd)
            finally:
                os.close(fd)
            if still:
                return

    def _open(self, path: str) -> int | None:
        """None when it went away or cannot be read; then it is no part of the state."""
        try:
            return self.folder.open_file(path)
        except (FileNotFoundError, NotADirectoryError):
            self.entries.pop(path, None)
        except OSError:
            self.entries.pop(path, None)
            self.skipped[path] = SkipReason.UNREADABLE
        return None

    def _stream(self, path: str, fd: int) -> Generator[bytes, None, bool]:
        """The contents as a blob; whether the file was still while it was read."""
        before = os.fstat(fd)
        digest = hashlib.sha1(b"blob %d\0" % before.st_size, usedforsecurity=False)
        yield b"blob\ndata %d\n" % before.st_size
        left = before.st_size
        while left:
            # A file that shrank is filled up: git was told the size.
            chunk = os.read(fd, min(CHUNK_BYTES, left)) or bytes(min(CHUNK_BYTES, left))
            digest.update(chunk)
            left -= len(chunk)
            yield chunk
        yield b"\n"
        found = Found(Kind.FILE, permissions(before), stamp_of(before))
        still = found.stamp == stamp_of(os.fstat(fd))
        self.found[path] = found
        self._note(path, found, digest.hexdigest(), found.stamp if still else caches.UNSETTLED)
        return still

    def _note(self, path: str, found: Found, oid: str, stamp: Stamp) -> None:
        self.entries[path] = Entry(Kind.FILE, found.mode, found.size, oid)
        self._stamps[path] = stamp, oid
