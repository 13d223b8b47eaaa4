"""Confirmations over HTTP: the service for programs and approvers, and the pages for people."""

from collections.abc import Collection
from functools import partial

import msgspec
from starlette.types import ASGIApp

from frontdesk.app.office import Office
from frontdesk.app.reception import Reception
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.contracts.ticks import Ticker
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats.http import url_of
from frontdesk.web import endpoints, login
from frontdesk.web.addresses import PublicAddress
from frontdesk.web.confirmations import api, inbox, pages
from frontdesk.web.confirmations.linking import DecisionLinks
from frontdesk.web.confirmations.waiting import Streams
from frontdesk.web.credentials import Credentials
from frontdesk.web.endpoints import Served
from frontdesk.web.middleware import Hosts
from frontdesk.web.pages import assets, frame
from frontdesk.web.passing import TokenDoor
from frontdesk.web.visitors import Visitors

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
        *,
        page_url: str | None = None,
        public_url: str | None = None,
        clock: Clock | None = None,
        ticks: Ticker | None = None,
    ) -> None:
        """``page_url`` is where people are told that the pages are, ``public_url`` where browsers reach them
        when that is not the address of the port."""
        self.mode = service.settings.mode
        self.streams = Streams(service, ticks)
        answering = api.ConfirmationApi(service=service, streams=self.streams, page_url=page_url)
        clock, visitors = clock or SystemClock(), Visitors(service.passes, credentials)
        shown = pages.Pages(
            service=service,
            visitors=visitors,
            links=DecisionLinks(credentials=credentials, key=link_key, clock=clock),
            streams=self.streams,
            clock=clock,
        )
        entrance = login.LoginPages(visitors=visitors, note=service.note_refusal)
        admit, note = partial(credentials.admit, self.mode), service.note_refusal
        self.address = PublicAddress.of(public_url)
        self.api = Served(api.OPERATIONS, answering, admit, note=note)
        self.pages = Served(pages.OPERATIONS, shown, visit=visitors.visit, note=note)
        self.inbox = Served(inbox.OPERATIONS, shown, visit=visitors.visit, note=note)
        self.entrance = Served(
            [*assets.OPERATIONS, *login.OPERATIONS], entrance, visit=visitors.visit, note=note
        )
        """Signing in, and what every page loads."""
        self.visit = visitors.visit
        self.door = TokenDoor(guesses=credentials.guesses, visit=visitors.visit)
        self.url: str | None = None
        """The address of the service's port, while it has one."""
        self.pages_url: str | None = None
        """Where browsers reach the pages, while they do."""
        self.reception = Reception(service.passes, lambda: self.pages_url)

    def reached_at(self, host: str, port: int) -> None:
        """The pages are served on this port from now on."""
        self.pages_url = self.address.url or url_of(host, port)

    def make_app(self, bound_to: str, names: Collection[str] = ()) -> ASGIApp:
        """The service for its own port."""
        return endpoints.make_app([self.api], Hosts(bound_to, names), ABOUT, self.mode)

    def pages_of(self, office: Office) -> Served:
        """The pages beside those of a gateway."""
        shown = msgspec.structs.replace(self.pages.answering, office=office)
        return msgspec.structs.replace(self.pages, answering=shown)

    def make_page_app(self, bound_to: str, names: Collection[str] = ()) -> ASGIApp:
        """The pages for people alone, where no gateway has a port for them."""
        hosts = Hosts(bound_to, names, self.address)
        shown = msgspec.structs.replace(self.pages.answering, places=frame.ALONE)
        alone = msgspec.structs.replace(
            self.pages, operations=[*pages.OPERATIONS, *pages.ALONE], answering=shown
        )
        return endpoints.make_app([self.entrance, alone], hosts, ABOUT_PAGES)

    def close(self) -> None:
        """End the streams of events and the long polls."""
        self.streams.close()
