"""Confirmations over HTTP: the service for programs and approvers, and the pages for people."""

from collections.abc import Collection
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk.contracts.clock import Clock
from frontdesk.flow.confirmations.service import ConfirmationService
from frontdesk.model.confirmations import Mode
from frontdesk.web import routes
from frontdesk.web.confirmations import browsers, openapi, table
from frontdesk.web.confirmations.admission import Admission
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.confirmations.operations import OPERATIONS
from frontdesk.web.confirmations.pages import page_routes
from frontdesk.web.confirmations.streams import QUIET_SECONDS, Streams
from frontdesk.web.doors import Door, Hosts

__all__ = ["Application", "Credentials", "make_app", "make_page_app", "page_routes"]


class Application:
    """The service as an ASGI application. Close it before its server: whoever waits has an answer then."""

    def __init__(self, app: ASGIApp, streams: Streams) -> None:
        self._app = app
        self._streams = streams
        self.served_at: str | None = None
        """The address of its port, while it has one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @property
    def waiting(self) -> int:
        """How many programs wait for a decision just now."""
        return self._streams.waiting

    def close(self) -> None:
        """End the streams of events and the long polls."""
        self._streams.close()


def make_app(
    service: ConfirmationService,
    credentials: Credentials,
    *,
    bound_to: str,
    names: Collection[str] = (),
    mode: Mode,
    page_url: str | None = None,
    quiet_seconds: float = QUIET_SECONDS,
) -> Application:
    """The service for its own port. ``page_url`` is where the pages for people are."""
    streams = Streams(service, quiet_seconds=quiet_seconds)
    desk = table.Desk(service=service, streams=streams, page_url=page_url)
    document = msgspec.json.encode(openapi.document(OPERATIONS, mode))
    served = [*table.routes(OPERATIONS, Admission(credentials, mode), desk), _document_route(document)]
    return Application(_behind_door(served, bound_to, names), streams)


def make_page_app(
    service: ConfirmationService,
    credentials: Credentials,
    link_key: bytes,
    ended: Path,
    *,
    bound_to: str,
    names: Collection[str] = (),
    page_url: str | None = None,
    clock: Clock | None = None,
) -> Application:
    """The pages for people alone, where no gateway has a port for them. ``ended`` is the folder of sessions
    that were ended."""
    streams = Streams(service)
    served = page_routes(service, credentials, link_key, ended, streams, page_url=page_url, clock=clock)
    return Application(_behind_door(served, bound_to, names), streams)


def _behind_door(served: list[Route], bound_to: str, names: Collection[str]) -> ASGIApp:
    app = Starlette(
        routes=served, exception_handlers={HTTPException: routes.refuse, Exception: routes.apologise}
    )
    app.router.redirect_slashes = False
    return Door(app, Hosts(bound_to, names))


def _document_route(document: bytes) -> Route:
    async def show_document(request: Request) -> Response:
        try:
            browsers.check_origin(request)
        except HTTPException as refusal:
            return await routes.refuse(request, refusal)
        return Response(document, media_type=browsers.JSON)

    return Route("/openapi.json", show_document)
