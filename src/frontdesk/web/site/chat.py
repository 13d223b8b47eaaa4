"""A new chat: writing to the agent on the page itself."""

from starlette.responses import Response

from frontdesk.web.endpoints import HttpCall
from frontdesk.web.pages.wording import say
from frontdesk.web.site.base import PAGES, Site


@PAGES.add("GET", "/chat")
async def show_chat(site: Site, call: HttpCall) -> Response:
    """The box in which a chat begins."""
    limits = await site.office_for(call).file_limits()
    return await site.page(call, "sessions", "chat.html", {"title": say("chat.title"), "limits": limits})
