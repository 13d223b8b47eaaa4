"""The confirmation service on its port: beside a gateway, which has the pages, or alone."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import msgspec

from frontdesk import errors
from frontdesk.app.confirmations import Keys, calling, running
from frontdesk.app.gateway import Gateway
from frontdesk.config import Config
from frontdesk.config.confirm import OWNER, TokenHolders
from frontdesk.config.settings import Origin
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats.http import url_of
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Mode
from frontdesk.web import ports, server
from frontdesk.web.bounds import Listeners
from frontdesk.web.confirmations import Credentials, ServedConfirmations
from frontdesk.web.middleware import is_loopback

RETRY_SECONDS = 30.0

log = get_logger(__name__)


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """Where the service is reached."""

    url: str
    page_url: str | None = None


def make_served(
    service: ConfirmationService,
    keys: Keys,
    people: TokenHolders,
    page_url: str | None,
    public_url: str | None = None,
) -> ServedConfirmations:
    """The service for everybody with a token: the owner, and whom the settings name."""
    approvers = {OWNER: keys.token, **people.approvers}
    credentials = Credentials(approvers=approvers, agents=people.agents, people=people.accounts)
    return ServedConfirmations(service, credentials, keys.link_key, page_url=page_url, public_url=public_url)


def check_host(mode: Mode, host: str, names: Collection[str]) -> None:
    """ExposedService where a page in a browser could reach a service that asks programs for no token."""
    if mode is Mode.SOLO and not names and not is_loopback(host):
        raise errors.ExposedService(host=host)


@asynccontextmanager
async def serving_beside(
    gateway: Gateway,
    served: ServedConfirmations,
    loaded: Config,
    listeners: Listeners | None = None,
    *,
    retry_seconds: float = RETRY_SECONDS,
) -> AsyncIterator[str | None]:
    """The address of the service's port, for as long as the block lasts; None when it has none.

    A port that another program has keeps nobody from talking to the agent: it is tried again. One that was
    chosen is an error then.
    """
    confirm = loaded.confirm
    if confirm.enabled:
        check_host(served.mode, confirm.host, loaded.names)
    port = partial(serving_port, served, confirm.host, confirm.port, loaded.names, listeners)
    async with calling(gateway.parts.store, confirm.people.callback_secret), AsyncExitStack() as opened:
        opened.callback(served.close)
        url = None
        try:
            url = await opened.enter_async_context(port()) if confirm.enabled else None
        except errors.CannotListen as error:
            if any(
                each.name == "confirm.port" and each.origin is not Origin.DEFAULT for each in loaded.values
            ):
                raise
            log.warning("confirmations_not_served", why=str(error))
            trying = _serve_later(port, retry_seconds)
            await opened.enter_async_context(running(trying, "frontdesk-confirmations-port"))
        yield url


async def _serve_later(port: Callable[[], AbstractAsyncContextManager[str]], retry_seconds: float) -> None:
    """Serve on the port as soon as it is to be had, until cancelled."""
    while True:
        await asyncio.sleep(retry_seconds)
        with suppress(errors.CannotListen):
            async with port():
                await asyncio.Event().wait()


@asynccontextmanager
async def serving_port(
    served: ServedConfirmations,
    host: str,
    port: int,
    names: Collection[str] = (),
    listeners: Listeners | None = None,
) -> AsyncIterator[str]:
    """The service's address, for as long as the block lasts."""
    with ports.listening(host, port, "in confirm.port") as listening:
        async with server.serving_app(served.make_app(host, names), listening, listeners):
            url = url_of(host, listening.getsockname()[1])
            log.info("confirmations_served", url=url, mode=served.mode)
            served.url = url
            try:
                yield url
            finally:
                # Before the server ends, which waits for requests under way: long polls and streams of events
                # would take all of its time.
                served.url = None
                served.close()


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
    listeners: Listeners | None = None,
) -> AsyncIterator[Addresses]:
    """The service where no gateway runs: its pages are on a port of their own, if there is one for them."""
    check_host(service.settings.mode, host, names)
    page_url, listeners = service.settings.page_url, listeners or Listeners()
    async with AsyncExitStack() as opened:
        pages = None
        if page_port is not None:
            pages = opened.enter_context(ports.listening(host, page_port, "for the page"))
            page_url = page_url or url_of(host, pages.getsockname()[1])
        # The pages' port is taken before anything is served: requests name the address of their page.
        served = make_served(service, keys, people, page_url, service.settings.page_url)
        if pages is not None:
            served.reached_at(host, pages.getsockname()[1])
            app = served.make_page_app(host, names)
            await opened.enter_async_context(server.serving_app(app, pages, listeners))
        try:
            await opened.enter_async_context(server.serving_owner(keys.socket, None, served, listeners))
        except errors.CannotListen as error:  # another service has it; commands are then told where we are
            log.warning("owner_not_served", why=str(error))
        opened.callback(served.close)
        url = await opened.enter_async_context(serving_port(served, host, port, names, listeners))
        yield Addresses(url=url, page_url=page_url)
