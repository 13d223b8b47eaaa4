"""The pages for approvers: they see the whole action and decide. Looking never changes anything."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from importlib import resources
from pathlib import Path

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk import errors
from frontdesk.contracts.clock import Clock, SystemClock
from frontdesk.flow.confirmations.service import ConfirmationService
from frontdesk.formats import actions, links
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, Status
from frontdesk.web.confirmations import answers, browsers, markup, screens, streams, table, views
from frontdesk.web.confirmations.admission import CHALLENGE, MAX_TOKEN_BYTES
from frontdesk.web.confirmations.credentials import Credentials
from frontdesk.web.confirmations.endings import Endings
from frontdesk.web.confirmations.records import Digest, Text
from frontdesk.web.confirmations.sessions import PATH, Sessions
from frontdesk.web.confirmations.streams import Streams
from frontdesk.web.routes import Stream

MAX_BODY_BYTES = 64 * 1024
MOST_SHOWN = 200

_FILES = resources.files(__package__)
SCRIPT = _FILES.joinpath("page.js").read_text(encoding="utf-8")
STYLE = _FILES.joinpath("page.css").read_text(encoding="utf-8")

UNKNOWN = "This token is not an approver’s."
LINK_REFUSED = (
    "This link cannot be used: its time is over, or it was made for something else. Sign in instead."
)

SIGN_IN_FIRST = "Sign in first."
NOT_ENDED = "The session cannot be ended: the service cannot write in its folder. It ends after some hours."
CHANGED = b"data: changed\n\n"

Endpoint = Callable[[Request], Awaitable[Response]]

log = get_logger(__name__)


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision made on the page, about the action that was shown there."""

    approves: bool
    digest: Digest
    reason: Text | None = None
    t: str | None = None
    """The link's token, when the page was opened with one."""


class Looking(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wish to see what is hidden."""

    t: str | None = None
    """The link's token, when the page was opened with one."""


class Showing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    message: str


class Uncovered(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    """The action as it is shown, with nothing hidden in it."""
    message: str = screens.REVEALED


class Done(msgspec.Struct, frozen=True, kw_only=True):
    done: bool = True


def page_routes(
    service: ConfirmationService,
    credentials: Credentials,
    link_key: bytes,
    ended: Path,
    following: Streams,
    *,
    page_url: str | None = None,
    clock: Clock | None = None,
) -> list[Route]:
    """The pages, for a server whose door has checked the host. Sessions that were ended are remembered in the
    folder ``ended``."""
    clock = clock or SystemClock()
    secure = (page_url or "").startswith("https://")
    sessions = Sessions(credentials, link_key, clock, Endings(ended), secure=secure)
    pages = Pages(service, credentials, sessions, following, clock)
    return [
        Route(PATH, _visit(pages.list_waiting)),
        Route(f"{PATH}/events", _follow(pages.follow_list)),
        Route(f"{PATH}/session", _act(pages.sign_in), methods=["POST"]),
        Route(f"{PATH}/session/end", _act(pages.sign_out), methods=["POST"]),
        Route(f"{PATH}/{{id}}", _visit(pages.show)),
        Route(f"{PATH}/{{id}}/events", _follow(pages.follow)),
        Route(f"{PATH}/{{id}}/reveal", _act(pages.reveal), methods=["POST"]),
        Route(f"{PATH}/{{id}}/decision", _act(pages.decide), methods=["POST"]),
    ]


class Pages:
    def __init__(
        self,
        service: ConfirmationService,
        credentials: Credentials,
        sessions: Sessions,
        following: Streams,
        clock: Clock,
    ) -> None:
        self._service = service
        self._credentials = credentials
        self._sessions = sessions
        self._streams = following
        self._clock = clock

    async def list_waiting(self, request: Request) -> Response:
        caller = self._sessions.signed_in(request)
        if caller is None:
            return html(screens.SIGN_IN, screens.sign_in(), HTTPStatus.UNAUTHORIZED)
        found = await self._service.list(MOST_SHOWN, Status.PENDING)
        return html(screens.list_title(found), screens.waiting(found, caller, self._clock.now()))

    async def show(self, request: Request) -> Response:
        link = request.query_params.get(links.PARAMETER)
        try:
            seen = await self._seen(request, link)
        except errors.LinkRefused:
            return html(screens.SIGN_IN, screens.sign_in(LINK_REFUSED), HTTPStatus.FORBIDDEN)
        if seen is None:
            return html(screens.SIGN_IN, screens.sign_in(), HTTPStatus.UNAUTHORIZED)
        caller, asked = seen
        obstacle = await self._obstacle(caller, asked)
        show = partial(screens.request, asked, caller, self._clock.now(), link=link, obstacle=obstacle)
        body = await asyncio.to_thread(show)
        return html(screens.title(asked), body)

    async def reveal(self, request: Request) -> Response:
        """What is hidden, for whoever may decide; the log says who looked."""
        caller, asked = await self._known(request, (await _read(request, Looking)).t)
        payload = views.seen_payload(await self._service.reveal(asked.id, caller))
        shown = await asyncio.to_thread(actions.render, payload, reveal=True)
        return answers.give(Uncovered(text=shown.text))

    async def decide(self, request: Request) -> Response:
        verdict = await _read(request, Verdict)
        caller, asked = await self._known(request, verdict.t)
        act = self._service.approve if verdict.approves else self._service.deny
        voted = await act(asked.id, caller, reason=verdict.reason, digest=verdict.digest)
        return answers.give(Outcome(id=voted.id, status=voted.status, message=screens.outcome(voted)))

    async def sign_in(self, request: Request) -> Response:
        token = (await _read(request, Showing)).token.strip().encode()
        caller = self._credentials.find(token) if 0 < len(token) <= MAX_TOKEN_BYTES else None
        if caller is None or caller.kind is not CallerKind.APPROVER:
            log.warning("sign_in_refused", who=caller.id if caller else None)
            raise HTTPException(HTTPStatus.UNAUTHORIZED, UNKNOWN, CHALLENGE)
        log.info("signed_in", approver=caller.id)
        response = answers.give(Done())
        self._sessions.begin(caller, response)
        return response

    async def sign_out(self, request: Request) -> Response:
        await _read(request, Done)
        try:
            await asyncio.to_thread(self._sessions.end, request)
        except OSError as error:
            log.exception("session_not_ended")
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, NOT_ENDED) from error
        response = answers.give(Done())
        self._sessions.forget(response)
        return response

    async def follow_list(self, request: Request) -> Response:
        return self._changes(partial(self._sessions.signed_in, request))

    async def follow(self, request: Request) -> Response:
        link = request.query_params.get(links.PARAMETER)
        if link is None:
            return await self.follow_list(request)
        seen = await self._seen(request, link)
        return self._changes(lambda: seen is not None and self._clock.now() < seen[1].expires_at)

    def _changes(self, may_look: Callable[[], object]) -> Response:
        """Tells a page that something happened, as long as it may look, and never what: it looks again."""
        if not may_look():
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        return Stream(self._changed(may_look), headers=streams.HEADERS)

    async def _changed(self, may_look: Callable[[], object]) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._streams.events(None, lambda _: CHANGED)) as pieces:
            async for piece in pieces:
                if not may_look():
                    break
                yield piece

    async def _known(self, request: Request, link: str | None) -> tuple[Caller, Confirmation]:
        seen = await self._seen(request, link)
        if seen is None:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        return seen

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
            f"img-src {markup.ICON_SOURCE}",
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


def _follow(handle: Endpoint) -> Endpoint:
    """What a page's script listens to."""

    async def answer(request: Request) -> Response:
        try:
            browsers.check_origin(request)
            if request.method == "HEAD":
                raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "It has no end.", {"allow": "GET"})
            return await handle(request)
        except answers.REFUSALS as refusal:
            return answers.refuse(refusal)

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
    return table.read_record(kind, await table.read_object(body), "The body")
