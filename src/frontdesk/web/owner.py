"""The owner's socket: every question that our own user can ask the running gateway, as a row made of the
method that answers it."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk.app import sockets
from frontdesk.app.gateway import Gateway
from frontdesk.app.office import Office
from frontdesk.app.terminal import Terminal
from frontdesk.logs import get_logger
from frontdesk.web import endpoints
from frontdesk.web.endpoints import HttpCall, Served
from frontdesk.web.operations import BrowserOrigin, Form, Table, Who

log = get_logger(__name__)

COLUMNS = {"who": Who.OWNER, "origin": BrowserOrigin.ANYWHERE, "max_body_bytes": 8 * 1024 * 1024}
GREETING, TERMINAL, OFFICE = Table(**COLUMNS), Table(**COLUMNS), Table(**COLUMNS)


class OwnerProtocol(HttpToolsProtocol):
    """HTTP for processes of our own user; others are cut off before they say anything."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not sockets.is_own(transport.get_extra_info("socket")):
            log.warning("owner_socket_refused")
            transport.abort()


@GREETING.add("GET", "/", dict[str, str])
async def greet(_: None, call: HttpCall) -> dict[str, str]:  # noqa: ARG001
    """Say who answers here."""
    return {"program": "frontdesk"}


def ask(table: Table, verb: str, path: str, method: Callable[..., Any]) -> None:
    """Add a row for a method. What its arguments are called is in the path, else after a question mark or in
    the body; what it returns is the answer, or the answer as it comes."""
    hints = get_type_hints(method)
    gives = hints.pop("return")
    _, *parameters = inspect.signature(method).parameters.values()
    fields: list[Any] = [
        (each.name, hints[each.name], *(() if each.default is each.empty else (each.default,)))
        for each in parameters
        if f"{{{each.name}}}" not in path
    ]
    arguments = msgspec.defstruct(
        method.__name__.title().replace("_", ""), fields, forbid_unknown_fields=True, kw_only=True
    )

    async def handle(answering: Any, call: HttpCall) -> Any:
        given = call.query if verb == "GET" else call.read(arguments)
        result = method(answering, **call.params, **msgspec.structs.asdict(given))
        return await result if inspect.isawaitable(result) else result

    handle.__name__, handle.__doc__ = method.__name__, method.__doc__
    form = Form.JSON
    if get_origin(gives) is AsyncGenerator:
        form, gives = Form.TEXT if get_args(gives)[0] is str else Form.LINES, ()
    table.add(verb, path, gives, form=form, **{"query" if verb == "GET" else "body": arguments})(handle)


ask(TERMINAL, "POST", "/messages", Terminal.say)
ask(TERMINAL, "GET", "/turns/{turn_id}/events", Terminal.follow)
ask(TERMINAL, "GET", "/uncollected", Terminal.uncollected)
ask(TERMINAL, "POST", "/collected", Terminal.collected)
ask(TERMINAL, "GET", "/titles", Terminal.titles)
for _name, _method in vars(Office).items():
    if inspect.isfunction(_method) and not _name.startswith("_"):
        ask(OFFICE, "POST", f"/office/{_name}", _method)


def make_app(gateway: Gateway) -> ASGIApp:
    terminal, office = Terminal.of_gateway(gateway), Office.of_gateway(gateway)
    served = [Served(GREETING, None), Served(TERMINAL, terminal), Served(OFFICE, office)]
    return endpoints.make_app(served, None)
