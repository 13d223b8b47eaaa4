"""A directory whose insides are reached step by step, so that no symbolic link leads out of it."""

import asyncio
import functools
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ALL_PERMISSIONS = 0o7777
P = ParamSpec("P")
T = TypeVar("T")


class Stamp(NamedTuple):
    """By this a file is known to be unchanged."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def stamp_of(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def permissions(status: os.stat_result) -> int:
    return status.st_mode & ALL_PERMISSIONS


class Folder:
    """The directory, opened. It is used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._above = ""
        self._inside: int | None = None

    def close(self) -> None:
        self.leave()
        os.close(self.fd)

    def leave(self) -> None:
        """Forget the folder that was last reached: it may go away."""
        if self._inside is not None:
            os.close(self._inside)
        self._above, self._inside = "", None

    def parent(self, path: str) -> tuple[int, str]:
        """The folder that holds a path, open until the next call, and the path's last name."""
        above, _, name = path.rpartition("/")
        if above != self._above:
            self.leave()
            if above:
                self._inside, self._above = self._descend(above), above
        return self.fd if self._inside is None else self._inside, name

    def _descend(self, path: str) -> int:
        reached = os.dup(self.fd)
        for name in path.split("/"):
            try:
                following = os.open(name, FOLDER, dir_fd=reached)
            finally:
                os.close(reached)
            reached = following
        return reached

    def open_file(self, path: str) -> int:
        """A regular file, for reading; anything else that stands there now is an OSError."""
        above, name = self.parent(path)
        fd = os.open(name, FILE, dir_fd=above)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise FileNotFoundError(path)
        return fd

    def status(self, path: str) -> os.stat_result:
        above, name = self.parent(path)
        return os.stat(name, dir_fd=above, follow_symlinks=False)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it in a thread. A caller that is cancelled leaves only when the thread has ended."""
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(None, functools.partial(work, *args, **kwargs))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()
        raise
