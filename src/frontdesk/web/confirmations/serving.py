"""The confirmation service on its port, and its pages on another."""

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from frontdesk import errors
from frontdesk.app.confirmations import Keys
from frontdesk.config.confirm import OWNER, TokenHolders
from frontdesk.flow.confirmations.service import ConfirmationService
from frontdesk.logs import get_logger
from frontdesk.web import ports, server
from frontdesk.web.confirmations import Application, Credentials, make_app, make_page_app

SERVED_AT = "frontdesk-served-at"
"""The header in which the owner is told the address of the service's port."""
TAKEN = "another program has it. Stop that one, or choose another port {how}"
PORT, PAGE_PORT = "in confirm.port", "for the page"

log = get_logger(__name__)


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Where the service is reached."""

    url: str
    page_url: str | None = None


def credentials_of(keys: Keys, people: TokenHolders) -> Credentials:
    """Everybody with a token: the owner, and whom the settings name."""
    approvers = {OWNER: keys.token, **people.approvers}
    return Credentials(approvers=approvers, agents=people.agents, people=people.accounts)


class Owned:
    """The service as its owner has it: answers say where others reach it, so that another program on that
    port is not taken for it."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and self._app.served_at:
                MutableHeaders(scope=message)[SERVED_AT] = self._app.served_at
            await send(message)

        await self._app(scope, receive, tell)


@asynccontextmanager
async def serving_owner(
    service: ConfirmationService,
    credentials: Credentials,
    socket: Path,
    *,
    host: str,
    names: Collection[str] = (),
    page_url: str | None = None,
) -> AsyncIterator[Application]:
    """The service on the owner's socket, for as long as the block lasts; `serving_port` adds a port."""
    mode = service.settings.mode
    app = make_app(service, credentials, bound_to=host, names=names, mode=mode, page_url=page_url)
    async with AsyncExitStack() as opened:
        try:
            await opened.enter_async_context(server.serving_owner(Owned(app), socket))
        except errors.CannotListen as error:  # another service has it; commands are then told where we are
            log.warning("owner_not_served", why=str(error))
        try:
            yield app
        finally:
            app.close()


@asynccontextmanager
async def serving_port(app: Application, host: str, port: int) -> AsyncIterator[str]:
    """The service's address, for as long as the block lasts."""
    with _listening(host, port) as listening:
        async with server.serving_app(app, listening):
            url = _url(host, listening)
            log.info("confirmations_served", url=url)
            app.served_at = url
            try:
                yield url
            finally:
                app.served_at = None
                app.close()


@asynccontextmanager
async def serving_alone(
    service: ConfirmationService,
    keys: Keys,
    people: TokenHolders,
    *,
    host: str,
    port: int,
    names: Collection[str] = (),
    page_port: int | None = None,
) -> AsyncIterator[Addresses]:
    """The service where no gateway runs: its pages are on a port of their own, if there is one for them."""
    credentials = credentials_of(keys, people)
    page_url = service.settings.page_url
    async with AsyncExitStack() as opened:
        if page_port is not None:
            listening = opened.enter_context(_listening(host, page_port, PAGE_PORT))
            page_url = page_url or _url(host, listening)
            pages = make_page_app(
                service,
                credentials,
                keys.link_key,
                keys.ended,
                bound_to=host,
                names=names,
                page_url=page_url,
            )
            await opened.enter_async_context(server.serving_app(pages, listening))
            opened.callback(pages.close)
        app = await opened.enter_async_context(
            serving_owner(service, credentials, keys.socket, host=host, names=names, page_url=page_url)
        )
        url = await opened.enter_async_context(serving_port(app, host, port))
        yield Addresses(url=url, page_url=page_url)


@contextmanager
def _listening(host: str, port: int, how: str = PORT) -> Iterator[ports.Socket]:
    try:
        with ports.listening(host, port) as listening:
            yield listening
    except errors.AddressInUse as error:
        raise errors.CannotListen(where=f"{host}:{port}", why=TAKEN.format(how=how)) from error


def _url(host: str, listening: ports.Socket) -> str:
    port: int = listening.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
