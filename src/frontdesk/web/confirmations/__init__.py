"""Confirmations over HTTP: the service for programs and approvers, and the pages for people."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from frontdesk.contracts.clock import Clock
from frontdesk.flow.confirmations.service import ConfirmationService
from frontdesk.model.confirmations import Mode
from frontdesk.web import endpoints, openapi
from frontdesk.web.confirmations import api, pages
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.confirmations.streams import QUIET_SECONDS, Streams
from frontdesk.web.doors import Hosts
from frontdesk.web.endpoints import Served

__all__ = ["Application", "Credentials", "make_app", "make_page_app"]

TITLE = "frontdesk confirmations"
DESCRIPTION = "Holds a dangerous action until people allow exactly that action."


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
    answering = api.ConfirmationApi(service=service, streams=streams, page_url=page_url)
    served = Served(api.OPERATIONS, answering, partial(credentials.admit, mode))
    document = openapi.document(TITLE, DESCRIPTION, api.OPERATIONS, mode)
    return Application(endpoints.make_app([served], Hosts(bound_to, names), document), streams)


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
    answering = pages.Pages(service, credentials, link_key, ended, streams, page_url=page_url, clock=clock)
    served = Served(pages.OPERATIONS, answering)
    return Application(endpoints.make_app([served], Hosts(bound_to, names)), streams)
