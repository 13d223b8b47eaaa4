"""A folder of files by the digests of their bytes, each once, for their owner alone."""

import asyncio
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple, TypeVar
from uuid import uuid4

from frontdesk import errors
from frontdesk.contracts.files import Shelved
from frontdesk.formats import media, quoting

T = TypeVar("T")

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
UNFINISHED = "unfinished"
"""Where bytes lie that are not whole, or not yet in their place."""
CHUNK_BYTES = 256 * 1024
DIGEST_CHARACTERS = 64
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

NO_ROOM = "there is no room for it"
TOO_LARGE = "it is larger than {most} bytes"


class FileShelf:
    def __init__(self, folder: Path, *, private: tuple[Path, ...] = (), spares_bytes: int = 0) -> None:
        """``private``: folders of which nothing is ever handed out, whoever names it. ``spares_bytes``: so
        much of the disk is left to others."""
        self.folder = folder
        self._spares = spares_bytes
        self._private = (folder, *private)

    async def write(self, pieces: AsyncIterator[bytes], most_bytes: int) -> Shelved:
        draft = await _in_thread(self._begin)
        try:
            async for piece in pieces:
                await _in_thread(draft.add, piece, most_bytes)
            return await _in_thread(draft.finish)
        except BaseException:
            draft.remove()
            raise

    async def copy(self, path: str, working_dir: str, most_bytes: int) -> Shelved:
        return await _in_thread(self._copy, path, working_dir, most_bytes)

    async def place(self, shelved: Shelved) -> None:
        await _in_thread(self._place, shelved)

    def find(self, digest: str) -> Path | None:
        if not _is_digest(digest):
            return None
        return next(iter(self._named(digest)), None)

    async def read(self, digest: str, most_bytes: int) -> bytes | None:
        return await _in_thread(self._read, digest, most_bytes)

    async def pieces(self, digest: str) -> AsyncGenerator[bytes, None]:
        file = await _in_thread(self._open, digest)
        try:
            while piece := await _in_thread(file.read, CHUNK_BYTES):
                yield piece
        finally:
            file.close()

    async def remove(self, digest: str) -> None:
        if _is_digest(digest):
            await _in_thread(self._remove, digest)

    async def stale(self, before: datetime) -> list[str]:
        return await _in_thread(self._stale, before.timestamp())

    def _begin(self) -> "Draft":
        unfinished = self.folder / UNFINISHED
        for folder in (self.folder, unfinished):
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if self._spares and shutil.disk_usage(unfinished).free < self._spares:
            raise errors.NoRoomForFile(why=NO_ROOM)
        return Draft(unfinished / uuid4().hex)

    def _copy(self, path: str, working_dir: str, most_bytes: int) -> Shelved:
        with _opened(path, Path(working_dir), self._private) as source:
            draft = self._begin()
            try:
                while piece := source.read(CHUNK_BYTES):
                    draft.add(piece, most_bytes)
                return draft.finish()
            except BaseException:
                draft.remove()
                raise

    def _place(self, shelved: Shelved) -> None:
        digest = shelved.digest
        if there := self.find(digest):
            os.utime(there)  # whoever looks for what nobody wants sees that it is wanted again
            shelved.written.unlink(missing_ok=True)
            return
        folder = self._folder(digest)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        ending = media.suffix(shelved.head, whole=shelved.size <= len(shelved.head))
        shelved.written.rename(folder / f"{digest}{ending}")
        for changed in (folder, self.folder):
            _sync_folder(changed)

    def _read(self, digest: str, most_bytes: int) -> bytes | None:
        found = self.find(digest)
        if found is None:
            return None
        with suppress(FileNotFoundError), found.open("rb") as file:
            return file.read(most_bytes)
        return None

    def _open(self, digest: str) -> IO[bytes]:
        found = self.find(digest)
        try:
            return open(found or "", "rb")
        except FileNotFoundError:
            raise errors.UnknownFile() from None

    def _remove(self, digest: str) -> None:
        for each in self._named(digest):
            each.unlink(missing_ok=True)

    def _folder(self, digest: str) -> Path:
        return self.folder / digest[:2]

    def _named(self, digest: str) -> list[Path]:
        return sorted(self._folder(digest).glob(f"{digest}*"))

    def _stale(self, before: float) -> list[str]:
        found = []
        for each in self.folder.glob("*/*"):
            with suppress(FileNotFoundError):
                if each.stat().st_mtime >= before:
                    continue
                if each.parent.name == UNFINISHED:
                    each.unlink()
                elif _is_digest(digest := each.name[:DIGEST_CHARACTERS]):
                    found.append(digest)
        return found


class Contents(NamedTuple):
    files: int
    size: int
    is_private: bool
    """Nobody but the owner can look into it."""


def survey(folder: Path) -> Contents:
    """What lies on the shelf of a folder."""
    if not folder.is_dir():
        return Contents(0, 0, is_private=True)
    sizes = [each.stat().st_size for each in folder.glob("*/*") if each.parent.name != UNFINISHED]
    is_private = not stat.S_IMODE(folder.stat().st_mode) & ~PRIVATE_FOLDER
    return Contents(len(sizes), sum(sizes), is_private)


class Draft:
    """Bytes while they are written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        self._file = os.fdopen(fd, "wb")
        self._hash = hashlib.sha256()
        self._head = b""
        self._size = 0

    def add(self, piece: bytes, most_bytes: int) -> None:
        self._size += len(piece)
        if self._size > most_bytes:
            raise errors.FileTooLarge(why=TOO_LARGE.format(most=most_bytes))
        self._hash.update(piece)
        self._head += piece[: media.HEAD_BYTES - len(self._head)]
        self._file.write(piece)

    def finish(self) -> Shelved:
        with self._file as file:
            file.flush()
            os.fsync(file.fileno())
        return Shelved(digest=self._hash.hexdigest(), size=self._size, head=self._head, written=self._path)

    def remove(self) -> None:
        with suppress(OSError):  # what was not written yet has no room; the file goes in any case
            self._file.close()
        self._path.unlink(missing_ok=True)


@contextmanager
def _opened(path: str, working_dir: Path, private: tuple[Path, ...]) -> Iterator[IO[bytes]]:
    """A file in the working directory, open; FileUnavailable for any other."""
    shown = quoting.quote(path)
    try:
        inside = working_dir.resolve(strict=True)
        real = (inside / path).resolve(strict=True)
        # What is opened is what was looked at: should a folder on the way be exchanged for a link meanwhile,
        # the path is another one afterwards.
        file = os.fdopen(os.open(real, READ), "rb")
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it cannot be opened"
        raise errors.FileUnavailable(why=f"{shown}: {why}") from error
    with file:
        if not real.is_relative_to(inside) or real.resolve() != real:
            raise errors.FileUnavailable(why=f"{shown} is not in the working directory")
        if any(_is_in(folder.resolve(), real, inside) for folder in private):
            raise errors.FileUnavailable(why=f"{shown} belongs to frontdesk")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise errors.FileUnavailable(why=f"{shown} is no file")
        yield file


def _is_in(folder: Path, file: Path, working_dir: Path) -> bool:
    """Whether a file belongs to a folder of ours. A working directory below it is the agent's own."""
    return file.is_relative_to(folder) and (folder == working_dir or not working_dir.is_relative_to(folder))


def _is_digest(text: str) -> bool:
    return len(text) == DIGEST_CHARACTERS and all(sign in "0123456789abcdef" for sign in text)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


async def _in_thread(work: Callable[..., T], *given: object) -> T:
    """Do it in a thread; what the disk has against it is a FileUnavailable."""
    try:
        return await asyncio.to_thread(work, *given)
    except OSError as error:
        if error.errno in FULL:
            raise errors.NoRoomForFile(why=NO_ROOM) from error
        raise errors.FileUnavailable(why=f"it cannot be kept ({error.strerror})") from error
