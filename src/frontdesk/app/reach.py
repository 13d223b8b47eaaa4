"""Reaching the office from another process: through the running gateway's socket, else through the store."""

import asyncio
import codecs
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import msgspec

from frontdesk import errors
from frontdesk.app import sockets
from frontdesk.app.office import LIST_LIMIT, SEARCH_LIMIT, Channels, Office, Plain
from frontdesk.app.sessions import SessionStore
from frontdesk.app.terminal import CLI, Terminal
from frontdesk.app.workplace import Workplace
from frontdesk.config import Config
from frontdesk.model import background

CONNECT_SECONDS = 5.0
CALL_SECONDS = 60.0
MAX_LINE_BYTES = 16 * 1024 * 1024
OK = range(200, 300)
SQLITE = "sqlite:///"
IN_MEMORY = "sqlite:///:memory:"


@asynccontextmanager
async def reach(
    config: Config, channels: Channels | None = None, workplace: Workplace | None = None
) -> AsyncIterator[Office]:
    """The running gateway's office; without a gateway, one of our own over the store, to which ``channels``
    gives those that a gateway would have, and ``workplace`` its checkpoints."""
    line = Line(sockets.socket_of(config.home))
    try:
        await line.call("GET", "/")
    except errors.NoGateway:
        url = without_creating(config.store_url)
        async with await SessionStore.open(url, config.gateway, upgrade=False) as sessions:
            yield Office.of_sessions(sessions, channels, workplace)
    else:
        yield FarOffice(line)


async def is_running(home: Path) -> bool:
    """Whether a gateway of this home folder answers."""
    try:
        await Line(sockets.socket_of(home)).call("GET", "/")
    except errors.GatewayUnreachable:
        return False
    return True


def without_creating(url: str) -> str:
    """An empty store in memory when there is no file yet: a question makes none."""
    path = file_of(url)
    is_there = path is None or path.exists() or path.with_name(f"{path.name}-wal").exists()
    return url if is_there else IN_MEMORY


def file_of(url: str) -> Path | None:
    """The file that a store is in, if it is in one."""
    if not url.startswith(SQLITE) or url == IN_MEMORY:
        return None
    return Path(unquote(url.removeprefix(SQLITE).partition("?")[0])).expanduser()


async def reach_terminal(home: Path) -> "FarTerminal":
    """The running gateway's terminal; NoGateway when none runs."""
    line = Line(sockets.socket_of(home))
    await line.call("GET", "/")
    return FarTerminal(line)


class Line:
    """Requests to a gateway over its socket, each on a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def call(self, method: str, target: str, arguments: Any = None) -> Any:
        """The answer, read whole; the errors of the other side are raised here."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return self.read(b"".join([piece async for piece in self.stream(method, target, arguments)]))
        except TimeoutError:
            raise errors.GatewayGone(path=self._path, why=f"no answer in {CALL_SECONDS:.0f} s") from None

    def read(self, body: bytes) -> Any:
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise errors.GatewayUnreachable(
                path=self._path, why=f"its answer is no JSON ({error})"
            ) from error

    async def stream(self, method: str, target: str, arguments: Any = None) -> AsyncGenerator[bytes, None]:
        """The answer as it comes."""
        reader, writer = await self._connect()
        try:
            body = b"" if arguments is None else msgspec.json.encode(arguments)
            writer.write(_head(method, target, body) + body)
            with self._watched():
                status, headers = await _read_head(reader)
                pieces = _read_body(reader, headers)
                if status not in OK:
                    raise self._error(status, b"".join([piece async for piece in pieces]))
                async for piece in pieces:
                    yield piece
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                with sockets.address_of(self._path) as address:
                    return await asyncio.open_unix_connection(address, limit=MAX_LINE_BYTES)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            raise errors.NoGateway(path=self._path) from error
        except TimeoutError:
            raise errors.GatewayGone(path=self._path, why="it takes no connection") from None
        except OSError as error:
            raise errors.GatewayUnreachable(path=self._path, why=error.strerror or str(error)) from error

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise errors.GatewayGone(path=self._path, why="it closed the connection") from error
        except ValueError as error:
            if isinstance(error, errors.FrontdeskError):
                raise
            raise errors.GatewayUnreachable(path=self._path, why="its answer is no HTTP") from error

    def _error(self, status: int, body: bytes) -> errors.FrontdeskError:
        """The error that the other side met, as it would have been raised here."""
        try:
            told = msgspec.json.decode(body, type=Told)
        except msgspec.MsgspecError:
            return errors.GatewayUnreachable(path=self._path, why=f"it answered {status}")
        kind = getattr(errors, told.error, None)
        if isinstance(kind, type) and issubclass(kind, errors.FrontdeskError):
            with contextlib.suppress(KeyError):
                return kind(**told.fields)
        return errors.GatewayUnreachable(path=self._path, why=told.detail or f"it answered {status}")


class Told(msgspec.Struct, frozen=True):
    """An error of ours in a problem document."""

    detail: str = ""
    error: str = ""
    fields: dict[str, Any] = {}


def _head(method: str, target: str, body: bytes) -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        "host: localhost",
        "connection: close",
        "content-type: application/json",
        f"content-length: {len(body)}",
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


class FarOffice(Office):
    """The office of a gateway that runs in another process."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def _ask(self, method: str, **arguments: Any) -> Any:
        return await self._line.call("POST", f"/office/{method}", arguments)

    async def status(self) -> Plain:
        found: Plain = await self._ask("status")
        return found

    async def explain(self, source: Plain) -> Plain:
        found: Plain = await self._ask("explain", source=source)
        return found

    async def list_sessions(
        self,
        limit: int = LIST_LIMIT,
        active_minutes: float | None = None,
        all: bool = False,
    ) -> list[Plain]:
        return await self._many("list_sessions", limit=limit, active_minutes=active_minutes, all=all)

    async def _many(self, method: str, **arguments: Any) -> list[Plain]:
        found: list[Plain] = await self._ask(method, **arguments)
        return found

    async def show_session(self, session_id: str) -> Plain:
        found: Plain = await self._ask("show_session", session_id=session_id)
        return found

    async def search(self, query: str, limit: int = SEARCH_LIMIT) -> list[Plain]:
        return await self._many("search", query=query, limit=limit)

    async def export_session(
        self,
        session_id: str,
        format: str = "jsonl",
        ancestors: bool = False,
    ) -> AsyncGenerator[str, None]:
        arguments = {"session_id": session_id, "format": format, "ancestors": ancestors}
        decoder = codecs.getincrementaldecoder("utf-8")()
        async with aclosing(self._line.stream("POST", "/office/export_session", arguments)) as pieces:
            async for piece in pieces:
                yield decoder.decode(piece)

    async def begin_background(
        self,
        conversation: str,
        name: str = background.DEFAULT_NAME,
        seconds: float = background.DEFAULT_SECONDS,
    ) -> Plain:
        arguments = {"conversation": conversation, "name": name, "seconds": seconds}
        found: Plain = await self._ask("begin_background", **arguments)
        return found

    async def end_background(self, conversation: str, name: str = background.DEFAULT_NAME) -> bool:
        return bool(await self._ask("end_background", conversation=conversation, name=name))

    async def list_background(self, limit: int = LIST_LIMIT) -> list[Plain]:
        return await self._many("list_background", limit=limit)

    async def list_deliveries(self, limit: int = LIST_LIMIT) -> list[Plain]:
        return await self._many("list_deliveries", limit=limit)

    async def resend_delivery(self, delivery_id: str) -> Plain:
        found: Plain = await self._ask("resend_delivery", delivery_id=delivery_id)
        return found

    async def list_people(self) -> list[Plain]:
        return await self._many("list_people")

    async def pending_people(self) -> list[Plain]:
        return await self._many("pending_people")

    async def approve_person(self, code: str, role: str = "user") -> Plain:
        found: Plain = await self._ask("approve_person", code=code, role=role)
        return found

    async def revoke_person(self, principal: str) -> bool:
        return bool(await self._ask("revoke_person", principal=principal))

    async def list_checkpoints(self) -> list[Plain]:
        return await self._many("list_checkpoints")

    async def show_checkpoint(self, checkpoint: str) -> Plain:
        found: Plain = await self._ask("show_checkpoint", checkpoint=checkpoint)
        return found

    async def diff_checkpoint(self, checkpoint: str) -> Plain:
        found: Plain = await self._ask("diff_checkpoint", checkpoint=checkpoint)
        return found

    async def restore_checkpoint(self, checkpoint: str, path: str | None = None) -> Plain:
        found: Plain = await self._ask("restore_checkpoint", checkpoint=checkpoint, path=path)
        return found

    async def prune_checkpoints(self) -> int:
        return int(await self._ask("prune_checkpoints"))


class FarTerminal(Terminal):
    """The terminal of a gateway that runs in another process."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def say(
        self, text: str, chat: str = CLI, event_id: str | None = None, follow: bool = False
    ) -> AsyncGenerator[Plain, None]:
        message = {"text": text, "chat": chat, "event_id": event_id, "follow": follow}
        async with aclosing(self._lines("POST", "/messages", message)) as lines:
            async for happened in lines:
                yield happened

    async def follow(self, turn_id: str) -> AsyncGenerator[Plain, None]:
        async with aclosing(self._lines("GET", f"/turns/{quote(turn_id, safe='')}/events")) as lines:
            async for happened in lines:
                yield happened

    async def _lines(self, method: str, target: str, arguments: Any = None) -> AsyncGenerator[Plain, None]:
        unread = b""
        async with aclosing(self._line.stream(method, target, arguments)) as pieces:
            async for piece in pieces:
                *lines, unread = (unread + piece).split(b"\n")
                for line in lines:
                    happened: Plain = self._line.read(line)
                    yield happened

    async def uncollected(self, chat: str = CLI) -> list[Plain]:
        found: list[Plain] = await self._line.call("GET", f"/uncollected?{urlencode({'chat': chat})}")
        return found

    async def collected(self, ids: Sequence[str], chat: str = CLI) -> None:
        await self._line.call("POST", "/collected", {"ids": list(ids), "chat": chat})

    async def titles(self, chat: str = CLI) -> list[str]:
        found: list[str] = await self._line.call("GET", f"/titles?{urlencode({'chat': chat})}")
        return found
