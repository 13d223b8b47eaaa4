"""Real HTTP on loopback: channels' routes served, and a receiver of callbacks that can be put in trouble."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from frontdesk.contracts import channels

Handler = Callable[[Request], Awaitable[Response]]

PORTS = range(10_000, 32_768)  # below those for outgoing connections, which could take a port in between


def free_port() -> int:
    """A port that nobody listens at, for a program that has to be told one."""
    for port in random.SystemRandom().sample(PORTS, k=len(PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


@asynccontextmanager
async def served(routes: Iterable[channels.Route], port: int = 0) -> AsyncIterator[str]:
    """The address under which the routes are answered."""
    app = Starlette(routes=[Route(each.path, endpoint(each), methods=[each.method]) for each in routes])
    with socket.create_server(("127.0.0.1", port)) as listening:
        config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


def endpoint(route: channels.Route) -> Handler:
    async def handle(request: Request) -> Response:
        body = await request.body()
        if len(body) > route.max_body_bytes:
            return Response(status_code=413)
        response = await route.handle(
            channels.Request(
                method=request.method,
                path=request.url.path,
                params=request.path_params,
                query=dict(request.query_params),
                headers=dict(request.headers),
                body=body,
                client=request.client.host if request.client else None,
            )
        )
        headers = dict(response.headers)
        if isinstance(response.body, bytes):
            return Response(response.body, response.status, headers)
        return StreamingResponse(response.body, response.status, headers)

    return handle


@asynccontextmanager
async def receiving(channel: channels.Channel, desk: channels.Desk, port: int = 0) -> AsyncIterator[str]:
    """The channel at work: its routes served, if it has any, what comes in handed to the desk."""
    task = asyncio.create_task(channel.receive(desk))
    try:
        async with served(channel.routes, port) if channel.routes else nullcontext("") as url:
            yield url
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()


class Quiet(BaseHTTPRequestHandler):
    """Answers requests without a word on the terminal."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def served_by(handler: type[Quiet]) -> Iterator[str]:
    """The address at which a thread of its own answers, for tests that wait."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound


class Received(NamedTuple):
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A server that takes POST requests and then does what it is told."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b""
        self.hangs = False
        self.cuts = False
        self.cuts_body = False
        self._closing = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        # Bound and not listening: nobody else gets the port while we refuse.
        self._place = _bound(0)
        self.port: int = self._place.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/answers"

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=_bound(self.port))

    def leave(self) -> None:
        """Give the port back."""
        self._place.close()

    async def refuse(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self._closing.set()
            await asyncio.gather(*self._handlers)
            await server.wait_closed()
            self._closing.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._answer(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        self.received.append(Received(headers, await reader.readexactly(int(headers["content-length"]))))
        if self.hangs:
            await self._closing.wait()
        elif not self.cuts:
            writer.write(self._response())
            await writer.drain()

    def _response(self) -> bytes:
        promised = len(self.body) + (100 if self.cuts_body else 0)
        lines = [f"HTTP/1.1 {self.status} X", f"content-length: {promised}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    try:
        yield opened
    finally:
        await opened.refuse()
        opened.leave()
