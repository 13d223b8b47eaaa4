"""Confirmations over HTTP: the service for programs and approvers, and the pages for people."""

from collections.abc import Collection
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp

from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.web import endpoints
from frontdesk.web.confirmations import api, pages
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.confirmations.sessions import Endings, PageSessions
from frontdesk.web.confirmations.waiting import QUIET_SECONDS, Streams
from frontdesk.web.endpoints import Served
from frontdesk.web.middleware import Hosts
from frontdesk.web.pages import assets

__all__ = ["Credentials", "ServedConfirmations"]

ABOUT = ("frontdesk confirmations", "Holds a dangerous action until people allow exactly that action.")
ABOUT_PAGES = ("frontdesk confirmations, for people", "The pages on which people decide.")


class ServedConfirmations:
    """The rows of the service and of its pages, with what answers them. Close it before its servers: whoever
    waits has an answer then."""

    def __init__(
        self,
        service: ConfirmationService,
        credentials: Credentials,
        link_key: bytes,
        ended: Path,
        *,
        page_url: str | None = None,
        clock: Clock | None = None,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        """``ended`` is the folder of sessions that were ended, ``page_url`` where the pages are."""
        self.mode = service.settings.mode
        self.streams = Streams(service, quiet_seconds=quiet_seconds)
        answering = api.ConfirmationApi(service=service, streams=self.streams, page_url=page_url)
        clock, secure = clock or SystemClock(), (page_url or "").startswith("https://")
        sessions = PageSessions(credentials, link_key, clock, Endings(ended), secure=secure)
        shown = pages.Pages(
            service=service, credentials=credentials, sessions=sessions, streams=self.streams, clock=clock
        )
        self.api = Served(
            api.OPERATIONS, answering, partial(credentials.admit, self.mode), note=service.note_refusal
        )
        self.pages = Served(
            [*assets.OPERATIONS, *pages.OPERATIONS],
            shown,
            sessions.admit,
            sessions.admit_proven,
            sessions.visit,
            service.note_refusal,
        )
        self.visit = sessions.visit
        self.url: str | None = None
        """The address of the service's port, while it has one."""

    def make_app(self, bound_to: str, names: Collection[str] = ()) -> ASGIApp:
        """The service for its own port."""
        return endpoints.make_app([self.api], Hosts(bound_to, names), ABOUT, self.mode)

    def make_page_app(self, bound_to: str, names: Collection[str] = ()) -> ASGIApp:
        """The pages for people alone, where no gateway has a port for them."""
        return endpoints.make_app([self.pages], Hosts(bound_to, names), ABOUT_PAGES)

    def close(self) -> None:
        """End the streams of events and the long polls."""
        self.streams.close()
