"""Passes: who can come in over HTTP, and whom to show out."""

from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from frontdesk.app.reception import Reception
from frontdesk.model.access import Role
from frontdesk.model.feed import FeedKind
from frontdesk.model.visitors import Need
from frontdesk.web import login
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import BrowserOrigin, Form, Table, Who
from frontdesk.web.site.base import Site

PAGES = Table(who=Who.VISITOR, need=Need.LOOK_AT_ALL, form=Form.PAGE, origin=BrowserOrigin.LINK)


class PassQuery(msgspec.Struct, frozen=True, kw_only=True):
    cursor: str = ""


class PassPages(msgspec.Struct, frozen=True, kw_only=True):
    """The reception, on a page of the site."""

    site: Site
    reception: Reception

    @PAGES.add("GET", "/passes", query=PassQuery)
    async def show_passes(self, call: HttpCall) -> Response:
        """Tokens, links that wait, and browsers in which somebody signed in."""
        place = await self.site.streams.place()
        found = await self.reception.list_passes(call.query.cursor or None)
        values = {
            "passes": found["items"],
            "is_first": not call.query.cursor,
            "more": f"?{urlencode({'cursor': found['next']})}" if found["next"] else None,
            "roles": list(Role),
            "may_change": call.known.may(Need.ADMINISTER),
            "events": urlencode({"about": FeedKind.PERSON, "after": place}),
        }
        return await self.site.page(call, "passes", "passes.html", values)

    def show_refusal(self, problem: Response) -> Response:
        return login.show_refusal(problem)
