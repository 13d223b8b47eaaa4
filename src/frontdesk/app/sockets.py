"""The owner's socket: where it is, who may have it, that nobody else gets through it, and its client."""

import asyncio
import fcntl
import os
import socket
import stat
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from frontdesk import errors

if TYPE_CHECKING:
    import httpx

FOLDER, NAME, LOCK = "run", "gateway.sock", "gateway.lock"
MAX_ADDRESS_BYTES = 100
MAX_HOLDER_BYTES = 100
BACKLOG = 64
OWN_URL = "http://localhost"
"""What whoever answers on a socket is called."""
TIMEOUTS = (5.0, None, None, None)
"""For a connection; an answer may take long."""
CALL_SECONDS = 60.0
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
    with _owned(path), closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as opened:
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


@asynccontextmanager
async def connected(path: Path, **opening: Any) -> AsyncIterator["httpx.AsyncClient"]:
    """A client of whoever listens there."""
    import httpx  # noqa: PLC0415 - takes long to load, and is of use only where somebody listens

    with address_of(path) as address:
        transport = httpx.AsyncHTTPTransport(uds=address, verify=False)
        async with httpx.AsyncClient(**opening, transport=transport) as client:
            yield client


class SocketClient:
    """Requests to a process of our own over its socket, each on a connection of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def call(self, method: str, target: str, arguments: Any = None) -> Any:
        """The answer, read whole."""
        told = self.stream(method, target, arguments)
        try:
            async with asyncio.timeout(CALL_SECONDS), aclosing(told) as pieces:
                return self.read(b"".join([piece async for piece in pieces]))
        except TimeoutError:
            raise errors.GatewayGone(path=self.path, why=f"no answer in {CALL_SECONDS:.0f} s") from None

    def read(self, answer: bytes) -> Any:
        try:
            return msgspec.json.decode(answer)
        except msgspec.DecodeError as error:
            why = f"its answer is no JSON ({error})"
            raise errors.GatewayUnreachable(path=self.path, why=why) from error

    async def stream(self, method: str, target: str, arguments: Any = None) -> AsyncGenerator[bytes, None]:
        """The answer as it comes; the errors of the other side are raised here."""
        body = b"" if arguments is None else msgspec.json.encode(arguments)
        headers = {"content-type": "application/json"}
        with self._translated():
            async with (
                connected(self.path, base_url=OWN_URL, timeout=TIMEOUTS) as client,
                client.stream(method, target, content=body, headers=headers) as answer,
            ):
                if not answer.is_success:
                    raise self._error(answer.status_code, await answer.aread())
                async for piece in answer.aiter_raw():
                    yield piece

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            self.path.stat()
        except OSError as error:
            raise self._unreachable(error) from error
        import httpx  # noqa: PLC0415 - the same

        try:
            yield
        except httpx.ConnectTimeout as error:
            raise errors.GatewayGone(path=self.path, why="it takes no connection") from error
        except httpx.ConnectError as error:
            # What the system said is the argument of the error behind this one.
            raise self._unreachable(getattr(error.__cause__, "args", (error,))[0]) from error
        except httpx.TransportError as error:
            raise errors.GatewayGone(path=self.path, why="it closed the connection") from error

    def _unreachable(self, error: Exception) -> errors.GatewayUnreachable:
        """What the system says of the socket."""
        if isinstance(error, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
            return errors.NoGateway(path=self.path)
        return errors.GatewayUnreachable(path=self.path, why=getattr(error, "strerror", None) or str(error))

    def _error(self, status: int, body: bytes) -> errors.FrontdeskError:
        """The error that the other side met, as it would have been raised here."""
        try:
            told = msgspec.json.decode(body, type=ToldError)
        except msgspec.MsgspecError:
            return errors.GatewayUnreachable(path=self.path, why=f"it answered {status}")
        kind = getattr(errors, told.error, None)
        if isinstance(kind, type) and issubclass(kind, errors.FrontdeskError):
            with suppress(KeyError):
                return kind(**told.fields)
        return errors.GatewayUnreachable(path=self.path, why=told.detail or f"it answered {status}")


class ToldError(msgspec.Struct, frozen=True):
    """An error of ours in a problem document."""

    detail: str = ""
    error: str = ""
    fields: dict[str, Any] = {}


async def find_own(home: Path) -> tuple[SocketClient, dict[str, str]] | None:
    """Who answers for the service of this home on the owner's socket, where nobody else can listen, and how
    it greets: the gateway, or the service alone."""
    for path in (socket_of(home), service_socket_of(home)):
        client = SocketClient(path)
        with suppress(errors.GatewayUnreachable):
            return client, await client.call("GET", "/")
    return None
