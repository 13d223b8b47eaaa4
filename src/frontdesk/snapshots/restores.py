"""Carrying out a restore: each file takes its name complete, and nothing is reached through a link."""

import os
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from frontdesk.snapshots.captures import Found
from frontdesk.snapshots.folders import FILE, FOLDER, Folder, in_thread, permissions, stamp_of
from frontdesk.snapshots.git import GitCommand
from frontdesk.snapshots.plans import Plan
from frontdesk.snapshots.trees import Entries, Entry, Kind

OWN = 0o700
"""What the owner needs of a folder to change what is in it."""


class ChangedMeanwhile(Exception):
    """A file is not what the safety checkpoint has kept."""


class Restorer:
    """Does what a plan says. ``at`` is the path it has come to."""

    def __init__(self, folder: Folder, wanted: Entries, found: Mapping[str, Found]) -> None:
        self.at = ""
        self._folder = folder
        self._wanted = wanted
        self._found = found
        self._opened: dict[str, int] = {}

    async def carry_out(self, plan: Plan, leftovers: Collection[str], objects: GitCommand) -> None:
        await in_thread(self._clear, plan, leftovers)
        for path in plan.writes:
            self.at = path
            await self._write(path, self._wanted[path], objects)
        await in_thread(self._finish, plan)

    def _clear(self, plan: Plan, leftovers: Collection[str]) -> None:
        """Take away what is not wanted, the inside of a folder before the folder, and make new folders."""
        for path in self._each(leftovers):
            with suppress(FileNotFoundError):
                os.unlink(path.rpartition("/")[2], dir_fd=self._writable(path)[0])
        for path in self._each(plan.removals):
            self._remove(path)
        self._folder.leave()
        for path in self._each(plan.folders):
            above, name = self._writable(path)
            os.mkdir(name, OWN, dir_fd=above)

    def _each(self, paths: Iterable[str]) -> Iterator[str]:
        for self.at in paths:
            yield self.at

    def _remove(self, path: str) -> None:
        above, name = self._writable(path)
        if self._found[path].kind is Kind.FOLDER:
            self._opened.pop(path, None)
            os.rmdir(name, dir_fd=above)
        else:
            self._check_unchanged(path)
            os.unlink(name, dir_fd=above)

    def _check_unchanged(self, path: str) -> None:
        """Nothing goes that the safety checkpoint does not hold."""
        found = self._found.get(path)
        try:
            status = self._folder.status(path)
        except FileNotFoundError:
            return
        # A file's other hard links may go, which changes the last of its stamp but not the file.
        if found is None or found.kind is Kind.FOLDER or found.stamp[:3] != stamp_of(status)[:3]:
            raise ChangedMeanwhile(path)

    async def _write(self, path: str, entry: Entry, objects: GitCommand) -> None:
        if entry.kind is Kind.LINK:
            await in_thread(self._link, path, await objects.read(entry.oid))
            return
        with self._draft() as draft:
            fd = await in_thread(self._open_draft, path, draft)
            try:
                async for chunk in objects.chunks(entry.oid):
                    await in_thread(_write_all, fd, chunk)
                os.fchmod(fd, entry.mode)
            finally:
                os.close(fd)
            await in_thread(self._put, path, draft)

    @contextmanager
    def _draft(self) -> Iterator[str]:
        """A name for a file that is not complete; what fails leaves none behind."""
        draft = f".frontdesk-restore-{secrets.token_hex(8)}"
        try:
            yield draft
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=self._folder.parent(self.at)[0])
            raise

    def _open_draft(self, path: str, draft: str) -> int:
        above, _ = self._writable(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(draft, flags, 0o600, dir_fd=above)

    def _link(self, path: str, target: bytes) -> None:
        with self._draft() as draft:
            above, _ = self._writable(path)
            os.symlink(target, os.fsencode(draft), dir_fd=above)
            self._put(path, draft)

    def _put(self, path: str, draft: str) -> None:
        self._check_unchanged(path)
        above, name = self._folder.parent(path)
        os.rename(draft, name, src_dir_fd=above, dst_dir_fd=above)

    def _finish(self, plan: Plan) -> None:
        """Give everything its permissions, the inside of a folder before the folder."""
        modes = self._opened | {path: self._wanted[path].mode for path in plan.modes}
        for path in self._each(sorted(modes, reverse=True)):
            self._set_mode(path, modes[path])

    def _set_mode(self, path: str, mode: int) -> None:
        if not path:
            os.fchmod(self._folder.fd, mode)
            return
        above, name = self._folder.parent(path)
        wanted = self._wanted.get(path)
        is_file = wanted is not None and wanted.kind is Kind.FILE
        fd = os.open(name, FILE if is_file else FOLDER, dir_fd=above)
        try:
            if not is_file or stat.S_ISREG(os.fstat(fd).st_mode):
                os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def _writable(self, path: str) -> tuple[int, str]:
        """The folder that holds a path, opened to its owner when it was not."""
        above, name = self._folder.parent(path)
        mode = permissions(os.fstat(above))
        if mode & OWN != OWN:
            os.fchmod(above, mode | OWN)
            self._opened.setdefault(path.rpartition("/")[0], mode)
        return above, name


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
