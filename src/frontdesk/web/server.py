"""The servers of a running gateway: the public port and the owner's socket."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvicorn
from starlette.types import ASGIApp

from frontdesk.app import sockets
from frontdesk.app.gateway import Gateway
from frontdesk.app.office import Office
from frontdesk.app.terminal import Terminal
from frontdesk.formats.http import url_of
from frontdesk.logs import get_logger
from frontdesk.web import bounds, conditions, endpoints, office_api, owner, ports, public, site
from frontdesk.web.bounds import Listeners
from frontdesk.web.endpoints import Served
from frontdesk.web.middleware import Hosts
from frontdesk.web.protocol import KEEP_ALIVE_SECONDS, BoundedProtocol, PortState
from frontdesk.web.repeats import RepeatedCalls
from frontdesk.web.site.base import Site
from frontdesk.web.streams import EventStreams

if TYPE_CHECKING:
    from frontdesk.web.confirmations import ServedConfirmations

HOST, PORT = "127.0.0.1", 8642
GRACE_SECONDS = 5
TICKS_OF_SWEEP = 10
"""Of a tenth of a second each."""

log = get_logger(__name__)


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gateway is reached."""

    url: str
    host: str
    port: int
    socket: Path | None = None


class OwnerProtocol(BoundedProtocol):
    """HTTP for processes of our own user; others are cut off before they say anything."""

    def why_not(self, transport: asyncio.Transport) -> str | None:
        return None if sockets.is_own(transport.get_extra_info("socket")) else "of_another_user"


@asynccontextmanager
async def serving(
    gateway: Gateway,
    *,
    host: str = HOST,
    port: int = PORT,
    socket: Path | None = None,
    names: Collection[str] = (),
    listeners: Listeners | None = None,
    confirmations: "ServedConfirmations | None" = None,
    grace_seconds: int = GRACE_SECONDS,
) -> AsyncIterator[ServerAddress]:
    """Serve for as long as the block lasts; requests under way then have so many seconds to end. The pages of
    ``confirmations`` are on the port, its rows on the owner's socket.

    Close the gateway inside the block: while it drains, answers still go out and /readyz says so.
    """
    listeners = listeners or Listeners()
    async with AsyncExitStack() as opened:
        if socket is not None:
            owned = serving_owner(socket, gateway, confirmations, listeners, grace_seconds)
            await opened.enter_async_context(owned)
        listening = opened.enter_context(ports.listening(host, port))
        served = [Served(public.OPERATIONS, gateway)]
        parts = gateway.parts
        store = parts.store
        streams = EventStreams(
            parts.following, store.feed, store.seals, somebody_waits=listeners.somebody_waits
        )
        if confirmations:
            office = Office.of_gateway(gateway, listeners.status)
            pages = Site(
                office=office,
                reception=confirmations.reception,
                clock=parts.clock,
                visit=confirmations.visit,
                streams=streams,
                repeats=RepeatedCalls(parts.store.keyed_calls, parts.clock),
            )
            served += [confirmations.entrance, confirmations.pages_of(office), *site.serve(pages)]
            reception = Served(office_api.RECEPTION, confirmations.reception, visit=confirmations.visit)
            keyed = (confirmations.inbox, reception)
            served += [msgspec.structs.replace(each, repeats=pages.repeats) for each in keyed]
        hosts = Hosts(host, names, confirmations.address if confirmations else None)
        mode = gateway.parts.confirmations.settings.mode
        door = confirmations.door if confirmations else None
        app = endpoints.make_app(served, hosts, public.ABOUT, mode, gateway.routes(), door)
        await opened.enter_async_context(serving_app(app, listening, listeners, grace_seconds))
        opened.callback(streams.close)
        await opened.enter_async_context(conditions.watching(gateway, streams))
        taken: int = listening.getsockname()[1]
        if confirmations:
            confirmations.reached_at(host, taken)
        address = ServerAddress(url=url_of(host, taken), host=host, port=taken, socket=socket)
        log.info("server_started", url=address.url, socket=socket)
        yield address
        log.info("server_stopping", url=address.url)


@asynccontextmanager
async def serving_owner(
    path: Path,
    gateway: Gateway | None,
    confirmations: "ServedConfirmations | None",
    listeners: Listeners,
    grace_seconds: int = GRACE_SECONDS,
) -> AsyncIterator[None]:
    """The one socket of this process for its owner: everything that this process can be asked."""
    served = [Served(owner.GREETING, owner.Greeter(confirmations, listeners))]
    if gateway:
        served.append(Served(owner.TERMINAL, Terminal(gateway)))
        served.append(Served(owner.OFFICE, Office.of_gateway(gateway, listeners.status)))
    if confirmations:
        served.append(Served(owner.RECEPTION, confirmations.reception))
        served.append(confirmations.api)
    with sockets.listening(path) as listening:
        app = endpoints.make_app(served, None, owner.ABOUT)
        own = msgspec.structs.replace(listeners, limits=bounds.OWNERS)
        async with serving_app(app, listening, own, grace_seconds, http=OwnerProtocol):
            yield


class SignallessServer(uvicorn.Server):
    """One that leaves the signals to whoever runs it, and says when it takes connections."""

    def __init__(self, config: uvicorn.Config, connections: bounds.PortConnections) -> None:
        super().__init__(config)
        self.server_state = PortState(connections)
        self._connections = connections
        self.taking = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[ports.Socket] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.taking.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_OF_SWEEP == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[ports.Socket] | None = None) -> None:
        """Nothing stays open, even where a request was not done in time."""
        await super().shutdown(sockets=sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


@asynccontextmanager
async def serving_app(
    app: ASGIApp,
    listening: ports.Socket,
    listeners: Listeners | None = None,
    grace_seconds: int = GRACE_SECONDS,
    *,
    http: type[BoundedProtocol] = BoundedProtocol,
) -> AsyncIterator[bounds.PortConnections]:
    """An application, served on a socket until the end of the block."""
    config = uvicorn.Config(
        app,
        http=http,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=ports.backlog(),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=grace_seconds,
    )
    listeners = listeners or Listeners()
    with listeners.open(ports.name_of(listening), asyncio.get_running_loop().time) as connections:
        server = SignallessServer(config, connections)
        task = asyncio.create_task(server.serve(sockets=[listening]), name="frontdesk-server")
        try:
            await server.taking.wait()
            yield connections
        finally:
            server.should_exit = True
            await task
