"""Confirmations as a part of the running gateway: the pages on its port, the service on one of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from frontdesk import errors
from frontdesk.app.callbacks import calling
from frontdesk.app.confirmations import prepare_keys
from frontdesk.app.gateway import Gateway
from frontdesk.app.tasks import running
from frontdesk.config import Config
from frontdesk.config.settings import Origin
from frontdesk.logs import get_logger
from frontdesk.web.confirmations import Application, pages
from frontdesk.web.confirmations.serving import credentials_of, serving_owner, serving_port
from frontdesk.web.confirmations.streams import Streams
from frontdesk.web.endpoints import Served

PORT = "confirm.port"
RETRY_SECONDS = 30.0

log = get_logger(__name__)


class Joined:
    def __init__(self, gateway: Gateway, loaded: Config, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._store = gateway.parts.store
        self._service = gateway.parts.confirmations
        self._loaded = loaded
        self._retry_seconds = retry_seconds
        self.keys = prepare_keys(loaded.home)
        self._credentials = credentials_of(self.keys, loaded.confirm.people)
        self._streams = Streams(self._service)

    @property
    def pages(self) -> list[Served]:
        keys, page_url = self.keys, self._service.settings.page_url
        answering = pages.Pages(
            self._service, self._credentials, keys.link_key, keys.ended, self._streams, page_url=page_url
        )
        return [Served(pages.OPERATIONS, answering)]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str | None]:
        """The service's address for as long as the block lasts; None when it has none.

        The owner's commands reach it in any case.
        """
        confirm, page_url = self._loaded.confirm, self._service.settings.page_url
        async with (
            calling(self._store, confirm.people.callback_secret),
            serving_owner(
                self._service,
                self._credentials,
                self.keys.socket,
                host=confirm.host,
                names=self._loaded.names,
                page_url=page_url,
            ) as app,
            AsyncExitStack() as opened,
        ):
            opened.callback(self._streams.close)
            yield await self._open_port(app, opened) if confirm.enabled else None

    async def _open_port(self, app: Application, opened: AsyncExitStack) -> str | None:
        """The port, unless another program has it: that keeps nobody from talking to the agent, and it is
        tried again. One that was chosen is an error then."""
        confirm = self._loaded.confirm
        try:
            return await opened.enter_async_context(serving_port(app, confirm.host, confirm.port))
        except errors.CannotListen as error:
            if self._is_chosen(PORT):
                raise
            log.warning("confirmations_not_served", why=str(error))
            await opened.enter_async_context(running(self._serve_later(app), "frontdesk-confirmations-port"))
            return None

    async def _serve_later(self, app: Application) -> None:
        """Serve on the port as soon as it is to be had, until cancelled."""
        confirm = self._loaded.confirm
        while True:
            await asyncio.sleep(self._retry_seconds)
            with suppress(errors.CannotListen):
                async with serving_port(app, confirm.host, confirm.port):
                    await asyncio.Event().wait()

    def _is_chosen(self, name: str) -> bool:
        return any(value.name == name and value.origin is not Origin.DEFAULT for value in self._loaded.values)
