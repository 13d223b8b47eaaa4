"""The site of a gateway in this process, for visitors who say who they are."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx
from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk.app.office import Office
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

VISITORS = {
    "ann": Visitor(id="matrix:ann", name="Ann", role=Role.USER),
    "bob": Visitor(id="matrix:bob", name="Bob", role=Role.USER),
    "eve": Visitor(id="token:eve", name="Eve", role=Role.APPROVER),
    "vic": Visitor(id="token:vic", name="Vic", role=Role.VIEWER),
    "ada": Visitor(id="token:ada", name="Ada", role=Role.ADMINISTRATOR),
}
NAME = "x-visitor"


async def visit(request: Request, operation: Operation) -> Visitor:
    """Whoever the header names."""
    found = VISITORS.get(request.headers.get(NAME, request.cookies.get(NAME, "")))
    if found is None:
        raise HTTPException(HTTPStatus.UNAUTHORIZED, "Say who you are.")
    return found


@asynccontextmanager
async def site_of(house: House) -> AsyncIterator[str]:
    """Where the site of a gateway is served."""
    parts = house.gateway.parts
    streams = EventStreams(parts.following, parts.store.feed, parts.store.seals)
    office = Office.of_gateway(house.gateway)
    repeats = RepeatedCalls(parts.store.keyed_calls, parts.clock)
    made = Site(office=office, clock=parts.clock, visit=visit, streams=streams, repeats=repeats)
    served = [*site.serve(made), Served(assets.OPERATIONS, None)]
    app = endpoints.make_app(served, Hosts("127.0.0.1", ()), ("site", "A site."))
    with ports.listening("127.0.0.1", 0) as opened:
        async with server.serving_app(app, opened):
            try:
                yield f"http://127.0.0.1:{opened.getsockname()[1]}"
            finally:
                streams.close()


@asynccontextmanager
async def visitor(url: str, name: str, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who looks at it."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, headers={NAME: name}, **options) as client:
        yield client
