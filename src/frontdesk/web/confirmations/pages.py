"""The pages for approvers: they see the whole action and decide. Looking never changes anything."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from importlib import resources

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk import errors
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.flow.confirmations.service import Confirmations
from frontdesk.formats import links
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Caller, Confirmation, Kind, Status
from frontdesk.web.confirmations import answers, browsers, markup, screens, table
from frontdesk.web.confirmations.admission import CHALLENGE, MAX_TOKEN_BYTES
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.confirmations.records import Digest, Text
from frontdesk.web.confirmations.sessions import PATH, Sessions

MAX_BODY_BYTES = 64 * 1024
MOST_SHOWN = 200

_FILES = resources.files(__package__)
SCRIPT = _FILES.joinpath("page.js").read_text(encoding="utf-8")
STYLE = _FILES.joinpath("page.css").read_text(encoding="utf-8")

UNKNOWN = "This token is not an approver’s."
LINK_REFUSED = (
    "This link cannot be used: its time is over, or it was made for something else. Sign in instead."
)

Endpoint = Callable[[Request], Awaitable[Response]]

log = get_logger(__name__)


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision made on the page, about the action that was shown there."""

    approves: bool
    digest: Digest
    reason: Text | None = None
    t: str | None = None
    """The link's token, when the page was opened with one."""


class Showing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    message: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    done: bool = True


def page_routes(
    service: Confirmations,
    credentials: Credentials,
    link_key: bytes,
    *,
    page_url: str | None = None,
    clock: Clock | None = None,
) -> list[Route]:
    """The pages, for a server whose door has checked the host."""
    clock = clock or SystemClock()
    secure = (page_url or "").startswith("https://")
    sessions = Sessions(credentials, link_key, clock, secure=secure)
    pages = Pages(service, credentials, sessions, clock)
    return [
        Route(PATH, _visit(pages.list_waiting)),
        Route(f"{PATH}/session", _act(pages.sign_in), methods=["POST"]),
        Route(f"{PATH}/session/end", _act(pages.sign_out), methods=["POST"]),
        Route(f"{PATH}/{{id}}", _visit(pages.show)),
        Route(f"{PATH}/{{id}}/decision", _act(pages.decide), methods=["POST"]),
    ]


class Pages:
    def __init__(
        self, service: Confirmations, credentials: Credentials, sessions: Sessions, clock: Clock
    ) -> None:
        self._service = service
        self._credentials = credentials
        self._sessions = sessions
        self._clock = clock

    async def list_waiting(self, request: Request) -> Response:
        caller = self._sessions.signed_in(request)
        if caller is None:
            return html("Approvals", screens.sign_in(), HTTPStatus.UNAUTHORIZED)
        found = await self._service.list(MOST_SHOWN, Status.PENDING)
        return html("Approvals", screens.waiting(found, caller, self._clock.now()))

    async def show(self, request: Request) -> Response:
        link = request.query_params.get(links.PARAMETER)
        try:
            seen = await self._seen(request, link)
        except errors.LinkRefused:
            return html("Approvals", screens.sign_in(LINK_REFUSED), HTTPStatus.FORBIDDEN)
        if seen is None:
            return html("Approvals", screens.sign_in(), HTTPStatus.UNAUTHORIZED)
        caller, asked = seen
        obstacle = await self._obstacle(caller, asked)
        show = partial(screens.request, asked, caller, self._clock.now(), link=link, obstacle=obstacle)
        body = await asyncio.to_thread(show)
        return html(screens.title(asked), body)

    async def decide(self, request: Request) -> Response:
        verdict = await _read(request, Verdict)
        seen = await self._seen(request, verdict.t)
        if seen is None:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, "Sign in first.", CHALLENGE)
        caller, asked = seen
        act = self._service.approve if verdict.approves else self._service.deny
        voted = await act(asked.id, caller, reason=verdict.reason, digest=verdict.digest)
        return answers.give(Outcome(id=voted.id, status=voted.status, message=screens.outcome(voted)))

    async def sign_in(self, request: Request) -> Response:
        token = (await _read(request, Showing)).token.strip().encode()
        caller = self._credentials.find(token) if 0 < len(token) <= MAX_TOKEN_BYTES else None
        if caller is None or caller.kind is not Kind.APPROVER:
            log.warning("sign_in_refused", who=caller.id if caller else None)
            raise HTTPException(HTTPStatus.UNAUTHORIZED, UNKNOWN, CHALLENGE)
        log.info("signed_in", approver=caller.id)
        response = answers.give(Done())
        self._sessions.begin(caller, response)
        return response

    async def sign_out(self, request: Request) -> Response:
        await _read(request, Done)
        response = answers.give(Done())
        self._sessions.end(response)
        return response

    async def _seen(self, request: Request, link: str | None) -> tuple[Caller, Confirmation] | None:
        """Who looks, and at what; None for somebody who must sign in first. A link counts before a session.

        Whether a request exists is told to nobody else.
        """
        confirmation_id = table.id_of(request)
        if link is None:
            caller = self._sessions.signed_in(request)
            return (caller, await self._service.find(confirmation_id)) if caller else None
        try:
            asked = await self._service.find(confirmation_id)
            return self._sessions.linked(link, asked), asked
        except (errors.UnknownConfirmation, errors.LinkRefused):
            log.warning("link_refused", confirmation=confirmation_id)
            raise errors.LinkRefused() from None

    async def _obstacle(self, caller: Caller, asked: Confirmation) -> str | None:
        """Why the one who looks may not decide."""
        try:
            await self._service.check_decider(asked, caller)
        except errors.NotAllowed as refusal:
            return str(refusal)
        return None


def html(title: str, body: markup.Markup, status: HTTPStatus = HTTPStatus.OK) -> Response:
    page = markup.page(title, body, script=SCRIPT, style=STYLE)
    return Response(page, int(status), HEADERS, media_type="text/html")


def _source(text: str) -> str:
    """How a content security policy names exactly this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            f"script-src {_source(SCRIPT)}",
            f"style-src {_source(STYLE)}",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def _visit(handle: Endpoint) -> Endpoint:
    """A page: what is refused is a page, too."""

    async def answer(request: Request) -> Response:
        try:
            browsers.check_visit(request)
            return await handle(request)
        except answers.REFUSALS as refusal:
            told = msgspec.json.decode(answers.refuse(refusal).body)
            status = HTTPStatus(told["status"])
            return html(status.phrase, screens.refusal(status.phrase, told["detail"]), status)

    return answer


def _act(handle: Endpoint) -> Endpoint:
    """What a page's script sends."""

    async def answer(request: Request) -> Response:
        try:
            browsers.check_page(request)
            browsers.check_type(request)
            return await handle(request)
        except answers.REFUSALS as refusal:
            return answers.refuse(refusal)

    return answer


async def _read(request: Request, kind: type[table.Record]) -> table.Record:
    body = await table.read_bytes(request, MAX_BODY_BYTES)
    return table.read_record(kind, table.read_object(body), "The body")
