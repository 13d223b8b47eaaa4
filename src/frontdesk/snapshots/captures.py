"""Taking in the contents of a directory: what changed is read, and only that goes to git."""

import collections
import hashlib
import os
from collections.abc import Generator, Iterator

from frontdesk.model.checkpoints import SkipReason
from frontdesk.snapshots import caches, trees
from frontdesk.snapshots.caches import Cache
from frontdesk.snapshots.folders import Folder, Stamp, permissions, stamp_of
from frontdesk.snapshots.trees import Entry, Kind
from frontdesk.snapshots.walks import Found, Walk

READ_ATTEMPTS = 3
CHUNK_BYTES = 1024 * 1024


class Capture:
    """The present state of a directory on its way into the store."""

    def __init__(self, folder: Folder, walk: Walk, cache: Cache) -> None:
        self.entries: dict[str, Entry] = {}
        self.skipped = walk.skipped
        self.leftovers = walk.leftovers
        self.found = walk.found
        self._folder = folder
        self._cache = cache
        self._began_ns = caches.now_ns()
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
                    self._look_at_link(path, found)
                case Kind.FILE:
                    self._look_at_file(path, found)

    def _look_at_link(self, path: str, found: Found) -> None:
        oid = trees.blob_id(found.target)
        self.entries[path] = Entry(Kind.LINK, 0, found.size, oid)
        self._links[oid] = found.target

    def _look_at_file(self, path: str, found: Found) -> None:
        oid = self._cache.look_up(path, found.stamp)
        if oid:
            self._note(path, found.mode, found.stamp, oid)
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
            return self._folder.open_file(path)
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
        return self._note_read(path, before, os.fstat(fd), digest.hexdigest())

    def _note_read(self, path: str, before: os.stat_result, after: os.stat_result, oid: str) -> bool:
        self._note(path, permissions(before), stamp_of(before), oid)
        self.found[path] = Found(Kind.FILE, permissions(before), stamp_of(before))
        still = stamp_of(before) == stamp_of(after)
        if not still:
            self._stamps[path] = caches.UNSETTLED, oid
        return still

    def _note(self, path: str, mode: int, stamp: Stamp, oid: str) -> None:
        self.entries[path] = Entry(Kind.FILE, mode, stamp.size, oid)
        self._stamps[path] = stamp, oid
