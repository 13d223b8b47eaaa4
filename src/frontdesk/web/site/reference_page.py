"""The reference of the HTTP API as a page."""

from functools import cache

from starlette.responses import Response

from frontdesk.model.confirmations import Mode
from frontdesk.web import office_api, openapi, reference
from frontdesk.web.confirmations import inbox
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site import events
from frontdesk.web.site.base import PAGES, Site


@PAGES.add("GET", "/api")
async def show_reference(site: Site, call: HttpCall) -> Response:
    """What programs can ask."""
    return await site.page(call, "api", "reference.html", {"groups": groups()})


@cache
def groups() -> list[reference.ApiGroup]:
    """All rows for programs, by what they are about."""
    rows = [*office_api.OPERATIONS, *inbox.OPERATIONS, *office_api.RECEPTION, *events.EVENTS]
    document = openapi.document(*office_api.ABOUT, rows, Mode.TEAM)
    return reference.group(document, office_api.PREFIX)
