"""The overview: whether everything works, and what does not."""

from starlette.responses import RedirectResponse, Response

from frontdesk.model.visitors import Need
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.site.base import PAGES, Site


@PAGES.add("GET", "/")
async def show_home(site: Site, call: HttpCall) -> Response:  # noqa: ARG001
    """Where somebody begins: with what they may see."""
    root = call.request.scope.get("root_path", "")
    first = "/overview" if call.known.may(Need.LOOK_AT_ALL) else "/sessions"
    return RedirectResponse(root + first, 303)


@PAGES.add("GET", "/overview", need=Need.LOOK_AT_ALL)
async def show_overview(site: Site, call: HttpCall) -> Response:
    """Whether everything works."""
    status = await site.office_for(call).status()
    return await site.page(call, "overview", "overview.html", {"status": status})
