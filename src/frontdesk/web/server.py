"""The servers of a running gateway: the public port and the owner's socket."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk.app import sockets
from frontdesk.app.gateway import Gateway
from frontdesk.app.office import Office
from frontdesk.app.terminal import Terminal
from frontdesk.logs import get_logger
from frontdesk.web import endpoints, owner, ports
from frontdesk.web import public as public_port
from frontdesk.web.endpoints import Served

HOST, PORT = "127.0.0.1", 8642
GRACE_SECONDS = 5
KEEP_ALIVE_SECONDS = 30

log = get_logger(__name__)


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gateway is reached."""

    url: str
    host: str
    port: int
    socket: Path | None = None


class OwnerProtocol(HttpToolsProtocol):
    """HTTP for processes of our own user; others are cut off before they say anything."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not sockets.is_own(transport.get_extra_info("socket")):
            log.warning("owner_socket_refused")
            transport.abort()


def owner_app(gateway: Gateway) -> ASGIApp:
    """Everything that is served on the owner's socket."""
    terminal, office = Terminal.of_gateway(gateway), Office.of_gateway(gateway)
    served = Served(owner.GREETING, None), Served(owner.TERMINAL, terminal), Served(owner.OFFICE, office)
    return endpoints.make_app(served, None)


async def serve(
    gateway: Gateway,
    *,
    host: str = HOST,
    port: int = PORT,
    socket: Path | None = None,
    names: Collection[str] = (),
    ready: Callable[[Address], None] | None = None,
) -> None:
    """Serve until cancelled; ``ready`` is told where as soon as connections are taken."""
    async with serving(gateway, host=host, port=port, socket=socket, names=names) as address:
        if ready:
            ready(address)
        await asyncio.Event().wait()


@asynccontextmanager
async def serving(
    gateway: Gateway,
    *,
    host: str = HOST,
    port: int = PORT,
    socket: Path | None = None,
    names: Collection[str] = (),
    pages: Sequence[Served] = (),
    grace_seconds: int = GRACE_SECONDS,
) -> AsyncIterator[Address]:
    """Serve for as long as the block lasts; requests under way then have so many seconds to end.

    Close the gateway inside the block: while it drains, answers still go out and /readyz says so.
    """
    async with AsyncExitStack() as opened:
        if socket is not None:
            listening = opened.enter_context(sockets.listening(socket))
            app = owner_app(gateway)
            config = _config(app, grace_seconds, http=OwnerProtocol)
            await opened.enter_async_context(_running(config, listening))
        public = opened.enter_context(ports.listening(host, port))
        config = _config(public_port.make_app(gateway, host, names, pages), grace_seconds)
        await opened.enter_async_context(_running(config, public))
        address = _address(host, public, socket)
        log.info("server_started", url=address.url, socket=socket)
        yield address
        log.info("server_stopping", url=address.url)


@asynccontextmanager
async def serving_app(
    app: ASGIApp, listening: ports.Socket, grace_seconds: int = GRACE_SECONDS, **more: Any
) -> AsyncIterator[None]:
    """Any application on a socket, for as long as the block lasts."""
    async with _running(_config(app, grace_seconds, **more), listening):
        yield


@asynccontextmanager
async def serving_owner(app: ASGIApp, path: Path) -> AsyncIterator[None]:
    """Any application for processes of our own user alone."""
    with sockets.listening(path) as listening:
        async with serving_app(app, listening, http=OwnerProtocol):
            yield


def _address(host: str, public: ports.Socket, socket: Path | None) -> Address:
    port: int = public.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return Address(url=f"http://{shown}:{port}", host=host, port=port, socket=socket)


class Server(uvicorn.Server):
    """One that leaves the signals to whoever runs it, and says when it takes connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.taking = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[ports.Socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.taking.set()

    async def shutdown(self, sockets: list[ports.Socket] | None = None) -> None:
        """Nothing stays open, even where a request was not done in time."""
        await super().shutdown(sockets=sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


@asynccontextmanager
async def _running(config: uvicorn.Config, listening: ports.Socket) -> AsyncIterator[None]:
    """An application, served on a socket until the end of the block."""
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]), name="frontdesk-server")
    try:
        await server.taking.wait()
        yield
    finally:
        server.should_exit = True
        await task


def _config(app: ASGIApp, grace_seconds: int, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        **{"http": "httptools"} | more,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=grace_seconds,
    )
