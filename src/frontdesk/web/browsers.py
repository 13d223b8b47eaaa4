"""What a browser on this machine may be made to do by a page from elsewhere: nothing."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request

from frontdesk.web.operations import BrowserOrigin, Form

PAGE_HEADER = "x-frontdesk-page"
"""Our own pages send it; a page from elsewhere cannot without asking, and is never allowed to."""
OWN_SITES = ("same-origin", "none")

ELSEWHERE = "A page of another origin may not ask for this."
NOT_OURS = "This takes a request of our own page."


def check_origin(request: Request) -> None:
    """403 for what a page of another origin sends, even one on another port of the same host."""
    _check_origin_header(request)
    if request.headers.get("sec-fetch-site", "none").lower() not in OWN_SITES:
        raise HTTPException(HTTPStatus.FORBIDDEN, ELSEWHERE)


def check_visit(request: Request) -> None:
    """403 unless it is the address bar or a link that leads here: nobody frames or fetches our pages."""
    _check_origin_header(request)
    site = request.headers.get("sec-fetch-site", "none").lower()
    visits = request.headers.get("sec-fetch-mode") == "navigate"
    whole = request.headers.get("sec-fetch-dest") == "document"
    if site not in OWN_SITES and not (visits and whole):
        raise HTTPException(HTTPStatus.FORBIDDEN, ELSEWHERE)


def check_page(request: Request) -> None:
    """403 unless a script of our own page sends it."""
    check_origin(request)
    if request.headers.get(PAGE_HEADER) != "1" or "origin" not in request.headers:
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


def _check_origin_header(request: Request) -> None:
    """An origin is ours when it is the very address that was asked, and the door has checked that one."""
    host = request.headers.get("host", "").lower()
    for origin in request.headers.getlist("origin"):
        if origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise HTTPException(HTTPStatus.FORBIDDEN, ELSEWHERE)


CHECKS: Mapping[BrowserOrigin, Callable[[Request], None]] = {
    BrowserOrigin.ANYWHERE: lambda _: None,
    BrowserOrigin.OURSELVES: check_origin,
    BrowserOrigin.LINK: check_visit,
    BrowserOrigin.SCRIPT: check_page,
}
