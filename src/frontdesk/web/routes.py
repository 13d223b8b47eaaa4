"""The public port: the channels' addresses, and whether we are alive and ready."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from http import HTTPStatus

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Send

from frontdesk.app.gateway import Gateway
from frontdesk.app.health import find_troubles
from frontdesk.contracts import channels
from frontdesk.web import bodies, problems
from frontdesk.web.doors import Door, Hosts

RETRY_AFTER_SECONDS = 5

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    gateway: Gateway, bound_to: str, names: Collection[str] = (), pages: Iterable[Route] = ()
) -> ASGIApp:
    """The application for the public port: the channels' addresses, and pages for people."""
    served = (route for channel in gateway.parts.channels.values() for route in channel.routes)
    health = Health(gateway)
    app = Starlette(
        routes=[
            Route("/livez", health.live),
            Route("/readyz", health.ready),
            *mount(served),
            *pages,
        ],
        exception_handlers={HTTPException: refuse, Exception: apologise},
    )
    app.router.redirect_slashes = False
    return Door(app, Hosts(bound_to, names))


def mount(served: Iterable[channels.Route]) -> list[Route]:
    """The channels' addresses, each with all its methods."""
    by_path: dict[str, dict[str, channels.Route]] = defaultdict(dict)
    for route in served:
        by_path[route.path][route.method] = route
    return [
        Route(path, endpoint(methods), methods=list(methods), name=path) for path, methods in by_path.items()
    ]


def endpoint(methods: Mapping[str, channels.Route]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return await _pass_on(methods.get(request.method) or methods["GET"], request)

    return answer


async def _pass_on(route: channels.Route, request: Request) -> Response:
    try:
        body = await bodies.read_body(request, route.max_body_bytes)
    except bodies.TooLarge:
        detail = f"The body is longer than {route.max_body_bytes} bytes."
        return problems.respond(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
    except TimeoutError:
        detail = f"The body did not come within {bodies.BODY_SECONDS:.0f} seconds."
        return problems.respond(HTTPStatus.REQUEST_TIMEOUT, detail, {"connection": "close"})
    return _respond(await route.handle(_read(request, body)))


def _read(request: Request, body: bytes) -> channels.Request:
    return channels.Request(
        method=request.method,
        path=request.url.path,
        params=request.path_params,
        query=dict(request.query_params),
        headers=dict(request.headers),
        body=body,
        client=request.client.host if request.client else None,
    )


def _respond(response: channels.Response) -> Response:
    headers = dict(response.headers)
    if isinstance(response.body, bytes):
        return Response(response.body, response.status, headers)
    return Stream(response.body, response.status, headers)


class Stream(StreamingResponse):
    """An answer as it comes. When the client leaves it is ended, and what it read from is closed."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()


async def refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """No such address, or not with this method."""
    assert isinstance(error, HTTPException)
    return problems.respond(error.status_code, error.detail, error.headers)


async def apologise(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """What is told of a fault of ours; the door logs it."""
    return problems.respond(HTTPStatus.INTERNAL_SERVER_ERROR, problems.OUR_FAULT)


class Health:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def live(self, request: Request) -> Response:  # noqa: ARG002
        return _json({"status": "alive"})

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        troubles = await find_troubles(self._gateway)
        if not troubles:
            return _json({"status": "ready"})
        headers = {"retry-after": str(RETRY_AFTER_SECONDS)}
        told = " ".join(trouble.outside for trouble in troubles)
        return problems.respond(HTTPStatus.SERVICE_UNAVAILABLE, told, headers)


def _json(data: object) -> Response:
    return Response(msgspec.json.encode(data), media_type="application/json")
