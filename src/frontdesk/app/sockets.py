"""The owner's socket: where it is, who may have it, and that nobody else gets through it."""

import contextlib
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frontdesk import errors

FOLDER, NAME, LOCK = "run", "gateway.sock", "gateway.lock"
MAX_ADDRESS_BYTES = 100
MAX_HOLDER_BYTES = 100
BACKLOG = 64
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the other side, as the kernel gives them."""


def socket_of(home: Path) -> Path:
    return home / FOLDER / NAME


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """The socket, which only our own user can reach; what a dead gateway left is replaced.

    GatewayRunning when a living one has it.
    """
    _prepare(path.parent)
    with _owned(path), contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as opened:
        path.unlink(missing_ok=True)
        with _translated(path):
            with address_of(path) as address:
                opened.bind(address)
            path.chmod(0o600)
            opened.listen(BACKLOG)
        try:
            yield opened
        finally:
            path.unlink(missing_ok=True)


def _prepare(folder: Path) -> None:
    with _translated(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise errors.CannotListen(where=folder, why="it is not a folder of the user who runs the gateway")
        folder.chmod(0o700)


@contextmanager
def _owned(path: Path) -> Iterator[None]:
    """The lock beside the socket: whoever has it is alive."""
    with _translated(path):
        lock = os.open(path.with_name(LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, MAX_HOLDER_BYTES, 0).decode(errors="replace") or "another process"
            raise errors.GatewayRunning(holder=holder, path=path) from None
        with _translated(path):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(lock)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise errors.CannotListen(where=path, why=error.strerror or str(error)) from error


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """A name of the socket that is short enough for the kernel, whatever the folder is called."""
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def is_own(sock: socket.socket) -> bool:
    """Whether the process on the other side runs under our user, where the kernel can tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _, user, _ = CREDENTIALS.unpack(found)
    return bool(user == os.geteuid())
