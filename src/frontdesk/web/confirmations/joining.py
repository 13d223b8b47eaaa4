"""Confirmations as a part of the running gateway: the pages on its port, the service on one of its own."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.routing import Route

from frontdesk import errors
from frontdesk.app.callbacks import calling
from frontdesk.app.confirmations import prepare_keys
from frontdesk.app.gateway import Gateway
from frontdesk.config import Config
from frontdesk.config.settings import Origin
from frontdesk.logs import get_logger
from frontdesk.web.confirmations import page_routes
from frontdesk.web.confirmations.serving import credentials_of, serving

PORT = "confirm.port"

log = get_logger(__name__)


class Joined:
    def __init__(self, gateway: Gateway, loaded: Config) -> None:
        self._store = gateway.parts.store
        self._service = gateway.parts.confirmations
        self._loaded = loaded
        self.keys = prepare_keys(loaded.home)
        self._credentials = credentials_of(self.keys, loaded.confirm.people)

    @property
    def pages(self) -> list[Route]:
        page_url = self._service.settings.page_url
        return page_routes(self._service, self._credentials, self.keys.link_key, page_url=page_url)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str | None]:
        """The service's address for as long as the block lasts; None when it has none.

        Another program on the usual port keeps nobody from talking to the agent. A port that was chosen is
        an error when it cannot be had.
        """
        confirm, settings = self._loaded.confirm, self._service.settings
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(calling(self._store, confirm.people.callback_secret))
            url = None
            if confirm.enabled:
                served = serving(
                    self._service,
                    self._credentials,
                    host=confirm.host,
                    port=confirm.port,
                    names=self._loaded.names,
                    page_url=settings.page_url,
                    socket=self.keys.socket,
                )
                try:
                    url = await opened.enter_async_context(served)
                except errors.CannotListen as error:
                    if self._is_chosen(PORT):
                        raise
                    log.warning("confirmations_not_served", why=str(error))
            yield url

    def _is_chosen(self, name: str) -> bool:
        return any(value.name == name and value.origin is not Origin.DEFAULT for value in self._loaded.values)
