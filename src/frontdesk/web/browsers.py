"""What a browser on this machine may be made to do by a page from elsewhere: nothing."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk.web import addresses
from frontdesk.web.operations import BrowserOrigin, Form

PAGE_HEADER = "x-frontdesk-page"
"""Our own pages send it; a page from elsewhere cannot without asking, and is never allowed to."""
OWN_SITES = ("same-origin", "none")

ELSEWHERE = "A page of another origin may not ask for this."
NOT_OURS = "This takes a request of our own page."


def check_origin(request: Request, allowed: BrowserOrigin = BrowserOrigin.OURSELVES) -> None:
    """403 for what comes from elsewhere than is allowed: from a page of another origin, even one on another
    port of the same host."""
    if allowed is BrowserOrigin.ANYWHERE:
        return
    headers = request.headers
    # An origin is ours when it is the very address that was asked, and the door has checked that one; or the
    # one that the settings name, whatever a proxy made of the host.
    own = [f"{scheme}://{headers.get('host', '').lower()}" for scheme in ("http", "https")]
    own.append(addresses.here.get().origin or own[0])
    ours = all(origin.lower() in own for origin in headers.getlist("origin"))
    near = headers.get("sec-fetch-site", "none").lower() in OWN_SITES
    visits = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not ours or not (near or (visits and allowed is BrowserOrigin.LINK)):
        raise HTTPException(HTTPStatus.FORBIDDEN, ELSEWHERE)
    if allowed is BrowserOrigin.SCRIPT and (headers.get(PAGE_HEADER) != "1" or "origin" not in headers):
        raise HTTPException(HTTPStatus.FORBIDDEN, NOT_OURS)


def check_type(request: Request) -> None:
    """415 for a body that is not JSON: forms, which every page may send, never are."""
    given = request.headers.getlist("content-type")
    empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    if not given and empty:
        return
    kind, _, parameters = given[0].partition(";") if len(given) == 1 else ("", "", "")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if kind.strip().lower() != Form.JSON or charset not in ("", "charset=utf-8"):
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body must be sent as {Form.JSON}.")
