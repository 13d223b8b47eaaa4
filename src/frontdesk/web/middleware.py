"""What every request and every answer goes through, outermost: the host, ids, the log, faults of ours; then
the way to who answers."""

import ipaddress
import re
import secrets
import socket
import time
from collections.abc import Collection, Sequence
from http import HTTPStatus

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frontdesk.logs import get_logger, request_id
from frontdesk.web import addresses, problems
from frontdesk.web.addresses import PublicAddress

REQUEST_ID = "x-request-id"
NAMED = REQUEST_ID.encode()
ID_BYTES = 8
LOCALHOST = "localhost"
THIS_MACHINE = (LOCALHOST, "127.0.0.1", "::1")
"""What it calls itself most of the time; it has more addresses."""
HEALTH = ("/livez", "/readyz")
"""Asked for every few seconds: logged only when something is wrong."""
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    # Whatever a channel answers with, nothing runs in the origin of our pages: it keeps approvers' proofs.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
)
"""What every answer says, unless it says otherwise itself."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PORT = re.compile(r":[0-9]{1,5}\Z")

log = get_logger(__name__)


class Hosts:
    """The names under which we may be called: a browser that was led here by another one is refused.

    Where we listen to other machines these are what they call this one by itself: any address, since no web
    page can have one for its name, and the machine's own names.
    """

    def __init__(
        self, bound_to: str, names: Collection[str] = (), address: PublicAddress | None = None
    ) -> None:
        """``address`` is where browsers reach us, if that is somewhere else."""
        self.address = address or addresses.THE_PORT
        self._near = is_loopback(bound_to)
        known = (*THIS_MACHINE, *names, self.address.host or "")
        known += () if self._near else (bound_to, *machine_names())
        self._names = {name.lower().rstrip(".") for name in known if name}

    def admits(self, host: str) -> bool:
        name = _PORT.sub("", host.strip()).strip("[]").rstrip(".").lower()
        if not name:
            return False
        if name in self._names or is_loopback(name):
            return True
        return not self._near and _address(name) is not None


def machine_names() -> tuple[str, ...]:
    """What the machine goes by in its own network."""
    name = socket.gethostname()
    short = name.partition(".")[0]
    return (name, short, f"{short}.local") if short else ()


def is_loopback(name: str) -> bool:
    address = _address(name)
    return address.is_loopback if address else name == LOCALHOST


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class Middleware:
    """Checks the host, gives each request an id, and turns what nobody else caught into an answer.

    Without hosts it is the owner's socket: whoever gets there is known, and not every request is logged.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts | None = None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # With it in place the router raises for an address that there is none of, and for a wrong method;
            # without, it answers by itself.
            scope["app"] = self._app
            address = self._hosts.address if self._hosts else addresses.THE_PORT
            if address.root:
                scope = {**scope, "path": address.below(scope["path"]), "root_path": address.root}
            headers = Headers(scope=scope)
            given = headers.get(REQUEST_ID, "")
            name = given if _ID.fullmatch(given) else secrets.token_hex(ID_BYTES)
            handled = RequestAnswer(name, scope, send, headers, self._hosts)
            before, there = request_id.set(handled.id), addresses.here.set(address)
            try:
                await handled.run(self._app, receive)
            finally:
                request_id.reset(before)
                addresses.here.reset(there)


class NamedRouter(Router):
    """Finds a path without parts that vary by its name, not by asking each route."""

    def __init__(self, routes: Sequence[Route]) -> None:
        super().__init__(routes, redirect_slashes=False)
        self._named = {route.path: route for route in reversed(routes) if not route.param_convertors}

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._named.get(scope["path"]) if scope["type"] == "http" else None
        match, found = route.matches(scope) if route else (Match.NONE, {})
        if route is None or match is not Match.FULL:
            await super().app(scope, receive, send)
            return
        scope.update(found)
        await route.handle(scope, receive, send)


class RequestAnswer(msgspec.Struct, eq=False):
    """One request and its answer."""

    id: str
    _scope: Scope
    _send: Send
    _headers: Headers
    _hosts: Hosts | None
    _status: int | None = None

    async def run(self, app: ASGIApp, receive: Receive) -> None:
        began = time.monotonic()
        path = self._scope.get("path", "")[:200]
        facts = {"request": self.id, "method": self._scope["method"], "path": path}
        try:
            refusal = self._refusal()
            await (refusal or app)(self._scope, receive, self._answer)
        except ClientDisconnect:
            log.info("client_left", **facts)
        except Exception:
            log.exception("request_failed", **facts)
            # In the middle of an answer the connection is cut instead: the end of the answer is missing, and
            # the other side sees that.
            if self._status is None:
                sorry = problems.respond(HTTPStatus.INTERNAL_SERVER_ERROR, problems.OUR_FAULT)
                await sorry(self._scope, receive, self._answer)
        if self._hosts and (self._scope["path"] not in HEALTH or self._status != HTTPStatus.OK):
            milliseconds = round((time.monotonic() - began) * 1000, 1)
            log.info("request_served", **facts, status=self._status, milliseconds=milliseconds)

    def _refusal(self) -> ASGIApp | None:
        if self._hosts is None:
            return None
        given = self._headers.getlist("host")
        if len(given) != 1:
            return problems.respond(
                HTTPStatus.BAD_REQUEST, "The header Host is missing, or there are several."
            )
        if self._hosts.admits(given[0]):
            return None
        log.warning("host_refused", request=self.id, host=given[0][:100])
        detail = "This server does not go by that name. Its owner lists its names in server.names."
        return problems.respond(HTTPStatus.MISDIRECTED_REQUEST, detail)

    async def _answer(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            given = [field for field in message["headers"] if field[0] != NAMED]
            said = {name for name, _ in given}
            added = [field for field in SECURITY if field[0] not in said]
            message["headers"] = [*given, *added, (NAMED, self.id.encode())]
        await self._send(message)
