"""What the pages of the site are made from."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.app.reception import Reception
from frontdesk.contracts.clock import Clock
from frontdesk.model.visitors import Need, Visitor
from frontdesk.web import login
from frontdesk.web.bodies import look_anew
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import BrowserOrigin, Form, Operation, Table, Who
from frontdesk.web.pages import frame, rendering, wording
from frontdesk.web.pages.frame import Values
from frontdesk.web.repeats import RepeatedCalls
from frontdesk.web.streams import EventStreams


class AnyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What else is in an address is passed over."""


PAGES = Table(who=Who.VISITOR, need=Need.LOOK, form=Form.PAGE, origin=BrowserOrigin.LINK, query=AnyQuery)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The office and the reception that pages ask, and how to tell who visits."""

    office: Office
    clock: Clock
    visit: Callable[[Request, Operation], Awaitable[Visitor | None]]
    repeats: RepeatedCalls
    streams: EventStreams
    reception: Reception | None = None
    """None where nobody is let in by passes."""

    async def may_look(self, call: HttpCall, *, anew: bool = False) -> bool:
        """Whether the visitor of a stream is still who they were; ``anew`` when something has changed."""
        if anew:
            look_anew(call.request)
        try:
            return await self.visit(call.request, call.operation) == call.known
        except (HTTPException, errors.FrontdeskError):
            return False

    def office_for(self, call: HttpCall) -> Office:
        """The office as the visitor sees it."""
        return self.office.seen_by(call.known)

    async def page(self, call: HttpCall, here: str, template: str, values: Values) -> Response:
        """A page, made where nobody else waits for it."""
        root = call.request.scope.get("root_path", "")
        around = frame.frame(call.known, here, root, self.clock.now(), asked=await self._asked(call.known))
        around["title"] = wording.say(f"places.{here}")
        return await asyncio.to_thread(rendering.render, __package__, template, around | values)

    async def _asked(self, visitor: Visitor) -> int:
        """How many requests wait that the visitor may see; none while the store does not tell, of which the
        page itself speaks."""
        if not visitor.may(Need.LOOK_AT_REQUESTS):
            return 0
        try:
            return await self.office.count_requests()
        except errors.StoreError:
            return 0

    def show_refusal(self, problem: Response) -> Response:
        return login.show_refusal(problem)
