"""The owner's socket: where it is, who may have it, that nobody else gets through it, and its client."""

import asyncio
import contextlib
import fcntl
import os
import socket
import stat
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import errors

FOLDER, NAME, LOCK = "run", "gateway.sock", "gateway.lock"
MAX_ADDRESS_BYTES = 100
MAX_HOLDER_BYTES = 100
BACKLOG = 64
CONNECT_SECONDS = 5.0
CALL_SECONDS = 60.0
MAX_LINE_BYTES = 16 * 1024 * 1024
OK = range(200, 300)
CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the other side, as the kernel gives them."""


def socket_of(home: Path) -> Path:
    """The gateway's."""
    return home / FOLDER / NAME


def service_socket_of(home: Path) -> Path:
    """That of the confirmation service, where it runs without a gateway."""
    return home / "confirm" / FOLDER / "service.sock"


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """The socket, which only our own user can reach; what a dead gateway left is replaced.

    GatewayRunning when a living one has it.
    """
    _prepare(path.parent)
    with _owned(path), contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as opened:
        # Only now: whoever holds the lock is alive, so a file that is here was left by somebody dead. Without
        # the lock two gateways that start at once could each remove the other's socket.
        path.unlink(missing_ok=True)
        with _translated(path):
            with address_of(path) as address:
                opened.bind(address)
            path.chmod(0o600)  # before anybody can connect
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


class SocketClient:
    """Requests to a process of our own over its socket, each on a connection of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def call(self, method: str, target: str, arguments: Any = None) -> Any:
        """The answer, read whole; the errors of the other side are raised here."""
        body = b"" if arguments is None else msgspec.json.encode(arguments)
        status, answer = await self.send(method, target, body)
        if status not in OK:
            raise self._error(status, answer)
        return self.read(answer)

    def read(self, answer: bytes) -> Any:
        try:
            return msgspec.json.decode(answer)
        except msgspec.DecodeError as error:
            why = f"its answer is no JSON ({error})"
            raise errors.GatewayUnreachable(path=self.path, why=why) from error

    async def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float = CALL_SECONDS,
    ) -> tuple[int, bytes]:
        """The status and the body of the answer, whatever they are."""
        try:
            async with asyncio.timeout(seconds), self.open(method, target, body, headers) as (status, pieces):
                return status, b"".join([piece async for piece in pieces])
        except TimeoutError:
            raise errors.GatewayGone(path=self.path, why=f"no answer in {seconds:.0f} s") from None

    async def stream(self, method: str, target: str, arguments: Any = None) -> AsyncGenerator[bytes, None]:
        """The answer as it comes."""
        body = b"" if arguments is None else msgspec.json.encode(arguments)
        async with self.open(method, target, body) as (status, pieces):
            if status not in OK:
                raise self._error(status, b"".join([piece async for piece in pieces]))
            async for piece in pieces:
                yield piece

    @asynccontextmanager
    async def open(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[int, AsyncGenerator[bytes, None]]]:
        """The status of the answer, and its body as it comes, for as long as the block lasts."""
        reader, writer = await self._connect()
        try:
            writer.write(_head(method, target, body, headers or {}) + body)
            with self._watched():
                status, told = await _read_head(reader)
                yield status, _read_body(reader, told)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                with address_of(self.path) as address:
                    return await asyncio.open_unix_connection(address, limit=MAX_LINE_BYTES)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            raise errors.NoGateway(path=self.path) from error
        except TimeoutError:
            raise errors.GatewayGone(path=self.path, why="it takes no connection") from None
        except OSError as error:
            raise errors.GatewayUnreachable(path=self.path, why=error.strerror or str(error)) from error

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise errors.GatewayGone(path=self.path, why="it closed the connection") from error
        except ValueError as error:
            if isinstance(error, errors.FrontdeskError):
                raise
            raise errors.GatewayUnreachable(path=self.path, why="its answer is no HTTP") from error

    def _error(self, status: int, body: bytes) -> errors.FrontdeskError:
        """The error that the other side met, as it would have been raised here."""
        try:
            told = msgspec.json.decode(body, type=ToldError)
        except msgspec.MsgspecError:
            return errors.GatewayUnreachable(path=self.path, why=f"it answered {status}")
        kind = getattr(errors, told.error, None)
        if isinstance(kind, type) and issubclass(kind, errors.FrontdeskError):
            with contextlib.suppress(KeyError):
                return kind(**told.fields)
        return errors.GatewayUnreachable(path=self.path, why=told.detail or f"it answered {status}")


class ToldError(msgspec.Struct, frozen=True):
    """An error of ours in a problem document."""

    detail: str = ""
    error: str = ""
    fields: dict[str, Any] = {}


def _head(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        "host: localhost",
        "connection: close",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines[1:] if line)
    return int(lines[0].split()[1]), {name.lower(): value.strip() for name, _, value in fields}


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncGenerator[bytes, None]:
    if headers.get("transfer-encoding") != "chunked":
        yield await reader.readexactly(int(headers.get("content-length", "0")))
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
