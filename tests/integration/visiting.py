"""The public port of a gateway over real HTTP, with visitors of every role."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import msgspec

from frontdesk.model.access import Role
from frontdesk.model.passes import PassKind
from frontdesk.web import bounds, server
from frontdesk.web.bounds import Listeners, PortLimits
from frontdesk.web.confirmations import Credentials, ServedConfirmations
from frontdesk.web.guesses import Guesses
from tests.flow.harness import House, open_house
from tests.integration.confirming import LINK_KEY, unguarded


class Visited(msgspec.Struct, frozen=True, kw_only=True):
    """A house with its public port."""

    house: House
    url: str
    nobody: httpx.AsyncClient
    opened: AsyncExitStack

    async def visitor(self, role: Role, person: str, name: str | None = None) -> httpx.AsyncClient:
        """Somebody who comes with a token."""
        book = self.house.gateway.parts.confirmations.passes
        named = name or f"{role}-{person.replace(':', '-')}"
        _, secret = await book.issue(PassKind.TOKEN, named, role, person, timedelta(days=1), by="local")
        headers = {"authorization": f"Bearer {secret}"}
        client = httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=60.0)
        return await self.opened.enter_async_context(client)


@asynccontextmanager
async def open_reception(
    url: str, *, guesses: Guesses | None = None, limits: PortLimits = bounds.USUAL, **more: Any
) -> AsyncIterator[Visited]:
    async with AsyncExitStack() as opened:
        house = await opened.enter_async_context(open_house(url, **more))
        service = house.gateway.parts.confirmations
        credentials = Credentials(approvers={}, guesses=guesses or unguarded())
        confirmations = ServedConfirmations(service, credentials, LINK_KEY)
        listeners = Listeners(limits=limits)
        serving = server.serving(house.gateway, port=0, confirmations=confirmations, listeners=listeners)
        address = await opened.enter_async_context(serving)
        opened.callback(confirmations.close)
        nobody = httpx.AsyncClient(base_url=address.url, trust_env=False, timeout=60.0)
        await opened.enter_async_context(nobody)
        yield Visited(house=house, url=address.url, nobody=nobody, opened=opened)
