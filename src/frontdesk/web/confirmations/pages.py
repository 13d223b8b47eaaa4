"""The pages for approvers: they see the whole action and decide. Looking never changes anything."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus

import msgspec
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import cards
from frontdesk.formats.folding import CardLine
from frontdesk.formats.headlines import HeadlinePart
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Caller, CallerKind, Confirmation, RequesterPause, Status
from frontdesk.web.confirmations import views
from frontdesk.web.confirmations.api import seen_payload
from frontdesk.web.confirmations.credentials import MAX_TOKEN_BYTES, Credentials
from frontdesk.web.confirmations.records import Digest, LiftBody, Text
from frontdesk.web.confirmations.sessions import PATH, SIGN_IN_FIRST, PageSessions
from frontdesk.web.confirmations.waiting import Streams
from frontdesk.web.endpoints import HttpCall, give
from frontdesk.web.operations import BrowserOrigin, Form, Proof, Table, Who
from frontdesk.web.pages import rendering
from frontdesk.web.problems import CHALLENGE, ProblemDocument

MAX_BODY_BYTES = 64 * 1024
MOST_SHOWN = 200

LINK_REFUSED = (
    "This link cannot be used: its time is over, or it was made for something else. Sign in instead."
)

LIFT = (
    " {pause} To have people asked again: the button on the list of approvals, frontdesk confirm lift {who},"
    " or /lift {who} in a chat."
)
NOT_ENDED = "The session cannot be ended: the service cannot write in its folder. It ends after some hours."
CHANGED = b"data: changed\n\n"

log = get_logger(__name__)

OPERATIONS = Table(who=Who.VISITOR, max_body_bytes=MAX_BODY_BYTES)
PAGE = {"form": Form.PAGE, "origin": BrowserOrigin.LINK}
SCRIPT = {"origin": BrowserOrigin.SCRIPT, "needs_body": True}
BY_LINK = SCRIPT | {"proof": Proof.LINK}


class PageLook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wish to see what is hidden."""

    t: str | None = None
    """The link's token, when the page was opened with one."""


class PageVote(PageLook, frozen=True, kw_only=True):
    """A decision made on the page, about the action that was shown there."""

    approves: bool
    digest: Digest
    reason: Text | None = None
    target: Text | None = None
    """What was typed, for one of the ten."""
    seen: str | None = None
    """The proof that what is hidden was looked at."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What else is in an address is passed over."""

    t: str | None = None
    """The token of the link that led here."""


class SignIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: str


class PageOutcome(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    message: str
    pause: RequesterPause | None = None
    """What this denial, one of several in a row, has led to."""


class Uncovered(msgspec.Struct, frozen=True, kw_only=True):
    lines: tuple[CardLine, ...]
    """The arguments as they are shown, with nothing hidden in them."""
    matters: tuple[cards.Matter, ...]
    """The action and its target."""
    headline: tuple[HeadlinePart, ...]
    repeated: tuple[HeadlinePart, ...]
    """The same, as it stands above the buttons."""
    seen: str
    """The proof of it, which a yes takes."""
    message: str = views.REVEALED


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    proof: str
    """To be kept where this page alone can read it, and sent as a header with whatever changes something."""


class PageDone(msgspec.Struct, frozen=True, kw_only=True):
    done: bool = True


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages are made from."""

    service: ConfirmationService
    credentials: Credentials
    sessions: PageSessions
    streams: Streams
    clock: Clock

    @OPERATIONS.add("GET", PATH, query=Opened, **PAGE)
    async def list_waiting(self, call: HttpCall) -> Response:
        """What waits for a decision."""
        caller = self._signed_in(call)
        listed = await self.service.list(MOST_SHOWN, Status.PENDING)
        found = [await self.service.with_precedent(asked) for asked in listed]
        pauses, now = await self.service.pauses(), self.clock.now()
        return await _page("list.html", lambda: views.waiting(found, pauses, caller, now))

    @OPERATIONS.add("GET", f"{PATH}/events", query=Opened, form=Form.EVENTS)
    async def follow_list(self, call: HttpCall) -> AsyncGenerator[bytes, None]:
        """That something happened, as server-sent events: the page looks again."""
        return self._changes(partial(self.sessions.signed_in, call.request))

    @OPERATIONS.add(
        "POST", f"{PATH}/session", SignedIn, proof=Proof.SIGN_IN, body=SignIn, problems=(429,), **SCRIPT
    )
    async def sign_in(self, call: HttpCall) -> Response:
        """Begin a session with an approver's token; one that there was ends."""
        token = call.read(SignIn).token.strip().encode()
        usable = 0 < len(token) <= MAX_TOKEN_BYTES
        caller = self.credentials.recognise(token, call.request) if usable else None
        if caller is None or caller.kind is not CallerKind.APPROVER:
            log.warning("sign_in_refused", who=caller.id if caller else None)
            if caller is not None:
                refusal = errors.NotAllowed(who=caller.id, rule="this takes an approver's credential")
                await self.service.note_refusal(refusal, "sign_in")
            raise HTTPException(HTTPStatus.UNAUTHORIZED, "This token is not an approver’s.", CHALLENGE)
        await self._end(call)
        log.info("signed_in", approver=caller.id)
        cookie, proof = self.sessions.begin(caller)
        response = give(SignedIn(proof=proof))
        self.sessions.keep(cookie, response)
        return response

    @OPERATIONS.add("POST", f"{PATH}/session/end", PageDone, body=PageDone, **SCRIPT)
    async def sign_out(self, call: HttpCall) -> Response:
        """End the session."""
        call.read(PageDone)
        await self._end(call)
        response = give(PageDone())
        self.sessions.forget(response)
        return response

    async def _end(self, call: HttpCall) -> None:
        """503 where it cannot be remembered."""
        # The end is written before the browser has another cookie, or none: a copy of this one is worth
        # nothing then, also where we die in between.
        try:
            await asyncio.to_thread(self.sessions.end, call.request)
        except OSError as error:
            log.exception("session_not_ended")
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, NOT_ENDED) from error

    @OPERATIONS.add("POST", f"{PATH}/pauses/lift", PageDone, body=LiftBody, problems=(404,), **SCRIPT)
    async def lift(self, call: HttpCall) -> PageDone:
        """Have people asked for a requester again."""
        requester = call.read(LiftBody).requester
        if not await self.service.lift_pause(requester, self._signed_in(call)):
            raise HTTPException(HTTPStatus.NOT_FOUND, "Nobody of that name is paused.")
        return PageDone()

    @OPERATIONS.add("GET", f"{PATH}/{{id}}", query=Opened, **PAGE)
    async def show(self, call: HttpCall) -> Response:
        """A request, all of it but what is hidden."""
        link = call.query.t
        try:
            caller, asked = await self._seen(call, link)
        except errors.LinkRefused:
            return _show("sign-in.html", views.sign_in(LINK_REFUSED), HTTPStatus.FORBIDDEN)
        obstacle, now = await self._obstacle(caller, asked), self.clock.now()
        card = await self.service.card(asked)
        if card and link is not None:  # which shows the request that it names, and nothing of another
            card = replace(card, comparison=())
        return await _page(
            "request.html", lambda: views.request(asked, card, caller, now, link=link, obstacle=obstacle)
        )

    @OPERATIONS.add("GET", f"{PATH}/{{id}}/events", query=Opened, form=Form.EVENTS)
    async def follow(self, call: HttpCall) -> AsyncGenerator[bytes, None]:
        """The same for the page of one request."""
        if call.query.t is None:
            return await self.follow_list(call)
        _, asked = await self._seen(call, call.query.t)
        return self._changes(lambda: self.clock.now() < asked.expires_at)

    @OPERATIONS.add("POST", f"{PATH}/{{id}}/reveal", Uncovered, body=PageLook, problems=(410,), **BY_LINK)
    async def reveal(self, call: HttpCall) -> Uncovered:
        """What is hidden, for whoever may decide; the log says who looked."""
        caller, asked = await self._seen(call, call.read(PageLook).t)
        revealed = await self.service.reveal(asked.id, caller)
        show = partial(cards.make, seen_payload(revealed), asked.description, asked.requester, reveal=True)
        card = await asyncio.to_thread(show)
        return Uncovered(
            lines=card.lines,
            matters=card.matters,
            headline=card.headline,
            repeated=views.repeated(card.headline),
            seen=self.sessions.note_look(caller, revealed),
        )

    @OPERATIONS.add(
        "POST", f"{PATH}/{{id}}/decision", PageOutcome, body=PageVote, problems=(409, 412), **BY_LINK
    )
    async def decide(self, call: HttpCall) -> PageOutcome:
        """Allow or refuse the action that was shown."""
        verdict = call.read(PageVote)
        caller, asked = await self._seen(call, verdict.t)
        if verdict.approves and asked.status is Status.PENDING:
            await self._check_care(verdict, caller, asked)
        act = self.service.approve if verdict.approves else self.service.deny
        voted = await act(asked.id, caller, reason=verdict.reason, digest=verdict.digest)
        pause = await self.service.pause_after(voted)
        message = views.outcome(voted) + (LIFT.format(pause=pause, who=pause.requester) if pause else "")
        return PageOutcome(id=voted.id, status=voted.status, message=message, pause=pause)

    async def _check_care(self, verdict: PageVote, caller: Caller, asked: Confirmation) -> None:
        """NotLookedAt, TargetMissing: nobody approves what they have not seen, or one of the ten without
        typing its target."""
        card = await self.service.card(asked)
        if card:
            looked = self.sessions.has_looked(verdict.seen, caller, asked)
            card.check_looked(asked.id, looked, views.LOOK_FIRST)
            card.check_typed(asked.id, verdict.target)

    async def _changes(self, may_look: Callable[[], object]) -> AsyncGenerator[bytes, None]:
        """Tells a page that something happened, as long as it may look, and never what: it looks again."""
        if not may_look():
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        async with aclosing(self.streams.events(None, lambda _: CHANGED)) as pieces:
            async for piece in pieces:
                if not may_look():
                    break
                yield piece

    def _signed_in(self, call: HttpCall) -> Caller:
        if call.caller.kind is not CallerKind.APPROVER:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        return call.caller

    async def _seen(self, call: HttpCall, link: str | None) -> tuple[Caller, Confirmation]:
        """Who looks, and at what; 401 for somebody who must sign in first. A link counts before a session.

        Whether a request exists is told to nobody else.
        """
        if link is None:
            return self._signed_in(call), await self.service.find(call.id)
        try:
            asked = await self.service.find(call.id)
            return self.sessions.linked(link, asked), asked
        except (errors.UnknownConfirmation, errors.LinkRefused):
            log.warning("link_refused", confirmation=call.id)
            raise errors.LinkRefused() from None

    def show_refusal(self, problem: Response) -> Response:
        """What is refused, as a page; whoever must sign in first can do so there."""
        told = msgspec.json.decode(problem.body, type=ProblemDocument)
        if told.status == HTTPStatus.UNAUTHORIZED:
            return _show("sign-in.html", views.sign_in(), HTTPStatus.UNAUTHORIZED)
        return _show("refusal.html", views.refusal(told.title, told.detail), HTTPStatus(told.status))

    async def _obstacle(self, caller: Caller, asked: Confirmation) -> str | None:
        """Why the one who looks may not decide."""
        try:
            await self.service.check_decider(asked, caller)
        except errors.NotAllowed as refusal:
            return str(refusal)
        return None


def _show(template: str, values: views.Values, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return rendering.render(__package__, template, values, status)


async def _page(template: str, values: Callable[[], views.Values]) -> Response:
    """A page for which much may have to be read: nobody else waits meanwhile."""
    return await asyncio.to_thread(lambda: _show(template, values()))
