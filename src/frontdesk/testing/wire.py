"""HTTP on loopback as far as a stand-in needs it: every connection can be cut or left hanging."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.parser import BytesParser
from email.policy import HTTP
from email.utils import format_datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

MOST_HEAD_BYTES = 64 * 1024


class Upload(msgspec.Struct, frozen=True):
    """A file in a request."""

    name: str
    kind: str
    data: bytes


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request, read whole."""

    method: str
    path: str
    fields: dict[str, str] = {}
    uploads: dict[str, Upload] = {}


class HttpReply(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered; ``cut`` breaks the connection instead."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    cut: bool = False


Answering = Callable[[HttpRequest], Awaitable[HttpReply]]


class HttpServer:
    """A server on loopback that hands each request to one function."""

    def __init__(self, answer: Answering) -> None:
        self.ahead = timedelta()
        """How far its clock is ahead of ours."""
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        # Bound and not listening: nobody else gets the port while we refuse.
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]

    async def listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=_bound(self.port))

    async def refuse(self) -> None:
        """Stop listening, and cut every connection."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for writer in list(self._open):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        await self.refuse()
        self._place.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._open.add(writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether another may follow."""
        asked = await _read(reader)
        reply = await self._answer(asked)
        if reply.cut:
            writer.transport.abort()
            return False
        phrase = HTTPStatus(reply.status).phrase
        head = f"HTTP/1.1 {reply.status} {phrase}\r\ncontent-type: {reply.kind}\r\n"
        date = format_datetime(datetime.now(UTC) + self.ahead, usegmt=True)
        writer.write(f"{head}date: {date}\r\ncontent-length: {len(reply.body)}\r\n\r\n".encode() + reply.body)
        await writer.drain()
        return True


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound


async def _read(reader: asyncio.StreamReader) -> HttpRequest:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = await reader.readexactly(int(headers.get("content-length") or 0))
    address = urlsplit(target)
    fields, uploads = _form(headers.get("content-type", ""), body)
    given = dict(parse_qsl(address.query, keep_blank_values=True)) | fields
    return HttpRequest(method=method, path=unquote(address.path), fields=given, uploads=uploads)


def _form(kind: str, body: bytes) -> tuple[dict[str, str], dict[str, Upload]]:
    if kind.startswith("application/json"):
        read = json.loads(body)
        return {name: each if isinstance(each, str) else json.dumps(each) for name, each in read.items()}, {}
    if kind.startswith("multipart/form-data"):
        return _parts(kind, body)
    return dict(parse_qsl(body.decode(), keep_blank_values=True)), {}


def _parts(kind: str, body: bytes) -> tuple[dict[str, str], dict[str, Upload]]:
    fields: dict[str, str] = {}
    uploads: dict[str, Upload] = {}
    whole = BytesParser(policy=HTTP).parsebytes(f"content-type: {kind}\r\n\r\n".encode() + body)
    for part in whole.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        filename = part.get_filename()
        if filename is None:
            fields[name] = data.decode()
        else:
            uploads[name] = Upload(filename, part.get_content_type(), data)
    return fields, uploads
