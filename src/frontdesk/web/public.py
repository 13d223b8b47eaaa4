"""What the public port tells of the gateway itself: whether it is alive and ready."""

from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException

from frontdesk.app.gateway import Gateway
from frontdesk.app.health import find_troubles
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import BrowserOrigin, Table

RETRY_AFTER_SECONDS = 5
ABOUT = ("frontdesk", "The gateway's own addresses, and those of the API for programs.")


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever a probe adds to the address is passed over."""


OPERATIONS = Table(origin=BrowserOrigin.ANYWHERE, query=Probe)


@OPERATIONS.add("GET", "/livez", dict[str, str])
async def show_alive(gateway: Gateway, _: HttpCall) -> dict[str, str]:  # noqa: ARG001
    """Whether the process answers."""
    return {"status": "alive"}


@OPERATIONS.add("GET", "/readyz", dict[str, str])
async def show_ready(gateway: Gateway, _: HttpCall) -> dict[str, str]:
    """Whether messages are taken in and worked on."""
    troubles = await find_troubles(gateway)
    if not troubles:
        return {"status": "ready"}
    told = " ".join(trouble.outside for trouble in troubles)
    headers = {"retry-after": str(RETRY_AFTER_SECONDS)}
    raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, told, headers)
