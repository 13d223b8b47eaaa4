"""The site over real HTTP on loopback, with a gateway behind it and people of every role."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk.app.office import Office
from frontdesk.formats.http import url_of
from frontdesk.model.access import Role
from frontdesk.model.visitors import Visitor
from frontdesk.web import endpoints, ports, server, site
from frontdesk.web.endpoints import Served
from frontdesk.web.middleware import Hosts
from frontdesk.web.operations import Operation
from frontdesk.web.pages import assets
from frontdesk.web.repeats import RepeatedCalls
from frontdesk.web.site.base import Site
from frontdesk.web.streams import EventStreams
from tests.flow.harness import House
from tests.patience import PATIENCE_SECONDS

OPS = Visitor(id="token:ops", name="ops", role=Role.ADMINISTRATOR)
EYE = Visitor(id="token:eye", name="eye", role=Role.VIEWER)
ANN = Visitor(id="matrix:ann", name="Ann", role=Role.USER)
BEN = Visitor(id="matrix:ben", name="Ben", role=Role.USER)
VISITORS = {each.name.lower(): each for each in (OPS, EYE, ANN, BEN)}
"""By the cookie with which they come."""


class ServedSite(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    streams: EventStreams

    def visiting(self, who: Visitor) -> httpx.AsyncClient:
        """Somebody who is in."""
        headers = {"cookie": f"who={who.name.lower()}"}
        return httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
        )


async def _visit(request: Request, operation: Operation) -> Visitor:
    """Who comes with a cookie is believed: how somebody gets in is tested elsewhere."""
    found = VISITORS.get(request.cookies.get("who", ""))
    if found is None:
        raise HTTPException(401, "Sign in first.")
    if operation.need:
        found.require(operation.need)
    return found


@asynccontextmanager
async def serving_site(house: House, **options: Any) -> AsyncIterator[ServedSite]:
    """The pages and the API of a gateway."""
    gateway = house.gateway
    streams = EventStreams(gateway.parts.following, gateway.parts.store.feed, gateway.parts.store.seals)
    office = Office.of_gateway(gateway)
    clock = gateway.parts.clock
    repeats = RepeatedCalls(gateway.parts.store.keyed_calls, clock)
    pages = Site(office=office, clock=clock, visit=_visit, streams=streams, repeats=repeats, **options)
    rows = [*site.serve(pages), Served(assets.OPERATIONS, None)]
    app = endpoints.make_app(rows, Hosts("127.0.0.1", ()), ("frontdesk", "The site."))
    async with AsyncExitStack() as opened:
        listening = opened.enter_context(ports.listening("127.0.0.1", 0))
        await opened.enter_async_context(server.serving_app(app, listening))
        opened.callback(streams.close)
        yield ServedSite(url=url_of("127.0.0.1", listening.getsockname()[1]), streams=streams)
