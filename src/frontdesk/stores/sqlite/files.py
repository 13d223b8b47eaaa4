"""The database file: where it is, who owns it, and whether its file system can be trusted."""

import errno
import fcntl
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from frontdesk import errors
from frontdesk.logs import get_logger

log = get_logger(__name__)

PREFIX = "sqlite:///"
MEMORY = ":memory:"
MOUNTS = Path("/proc/self/mountinfo")
MOUNT_POINT = 4
ESCAPED = re.compile(r"\\([0-7]{3})")
OPTIONS = {"vfs", "filesystem"}

NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}

NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "davfs",
        "ncpfs",
        "ocfs2",
        "gfs2",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.cephfs",
        "fuse.davfs2",
    ]
)
SHARED_WITH_A_HOST = frozenset(
    ["9p", "virtiofs", "vboxsf", "vmhgfs", "fuse.vmhgfs-fuse", "prl_fs", "drvfs", "fuse.osxfs"]
)


class Location(NamedTuple):
    """Where the database is; no path means memory."""

    path: Path | None
    vfs: str | None = None
    any_filesystem: bool = False

    @property
    def name(self) -> str:
        return str(self.path or MEMORY)


def parse_url(url: str) -> Location:
    """``sqlite:///relative/state.db``, ``sqlite:////absolute/state.db``, ``sqlite:///:memory:``."""
    if not url.startswith(PREFIX) or url == PREFIX:
        raise errors.UnknownStore(url=url, hint="")
    path, _, query = url.removeprefix(PREFIX).partition("?")
    options = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    if unknown := options.keys() - OPTIONS:
        raise errors.UnknownStore(url=url, hint=f" (unknown option {', '.join(sorted(unknown))})")
    if options.get("filesystem", "any") != "any":
        raise errors.UnknownStore(url=url, hint=" (filesystem can only be any)")
    if path == MEMORY:
        return Location(None)
    return Location(_locate(url, path), options.get("vfs"), "filesystem" in options)


def _locate(url: str, path: str) -> Path:
    """The file's one name: whoever opens it through a link must meet the same lock."""
    try:
        return Path(unquote(path)).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise errors.UnknownStore(url=url, hint=f" ({error})") from error


class Ownership:
    """The lock beside the file. Its holder alone may open the database; it dies with the process."""

    def __init__(self, path: Path) -> None:
        with translated_os(path):
            lock = path.with_name(path.name + ".lock")
            self._file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with translated_os(path):
                self._take(path)
        except errors.StoreError:
            os.close(self._file)
            raise

    def _take(self, path: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe(os.pread(self._file, 4096, 0))
            raise errors.StoreLocked(path=path, holder=holder) from None
        self._sign()

    def _sign(self) -> None:
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "program": Path(sys.argv[0]).name,
            "since": time.strftime("%Y-%m-%d %H:%M:%S%z"),
        }
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(holder).encode(), 0)

    def release(self) -> None:
        os.close(self._file)


def _describe(signature: bytes) -> str:
    try:
        holder = json.loads(signature)
        if (holder["pid"], holder["host"]) == (os.getpid(), socket.gethostname()):
            return "this process, which has opened it already"
        return "process {pid} ({program}) on {host} since {since}".format(**holder)
    except (ValueError, KeyError, TypeError):
        return "another process"


def prepare(place: Location) -> None:
    """Make sure that the file can be there: a folder, a file system to trust, nothing else of its name."""
    if place.path is None:
        return
    with translated_os(place.path):
        place.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_filesystem(place)
        _check_file(place.path)


def check_log(path: Path) -> None:
    """A log without its database is not to be begun anew over: SQLite would empty it."""
    log_size, size = _size(log_of(path)), _size(path)
    if log_size and not size:
        raise errors.LogWithoutDatabase(path=path, what="missing" if size is None else "empty")


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _size(path: Path) -> int | None:
    with translated_os(path):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None


def create(path: Path) -> None:
    """Make the file, readable by its user alone, unless it is there.

    A file that is there is not opened: closing it again would drop the locks that SQLite may hold on it
    elsewhere in this process.
    """
    with translated_os(path), suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _check_file(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_file():
        raise errors.ForeignDatabase(path=path, why="it is a folder" if path.is_dir() else "it is not a file")
    # Our lock and SQLite's log go by the name: under another one there would be a second owner.
    if (names := path.stat().st_nlink) > 1:
        raise errors.LinkedDatabase(path=path, names=names)
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise errors.ReadOnlyStore(path=path)


@contextmanager
def translated_os(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _translate_os(path, error) from error


def _translate_os(path: Path, error: OSError) -> errors.StoreError:
    if error.errno in NO_ROOM:
        return errors.StoreFull(path=path)
    if error.errno in NO_ACCESS:
        return errors.ReadOnlyStore(path=path)
    return errors.StoreFailed(path=path, why=error.strerror)


def _check_filesystem(place: Location) -> None:
    assert place.path is not None
    if place.any_filesystem or not MOUNTS.exists():
        return
    mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    kind = filesystem_of(place.path.parent.resolve(), mounts)
    if kind in NETWORK:
        raise errors.NetworkFilesystem(path=place.path, filesystem=kind)
    if kind in SHARED_WITH_A_HOST:
        log.warning("shared_filesystem", path=place.name, filesystem=kind, advice="use a disk of its own")


def filesystem_of(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder lies on, by the text of ``mountinfo``."""
    best, kind = -1, ""
    for line in mounts.split("\n"):
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) <= MOUNT_POINT or not after:
            continue
        mount = Path(ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[MOUNT_POINT]))
        if folder.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), after.split()[0]
    return kind
