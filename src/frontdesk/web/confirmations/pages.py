"""The pages for approvers: they see the whole action and decide. Looking never changes anything."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from frontdesk import errors
from frontdesk.app.office import Office
from frontdesk.contracts.clock import Clock
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.formats import cards
from frontdesk.formats.folding import CardLine
from frontdesk.formats.headlines import HeadlinePart
from frontdesk.logs import get_logger
from frontdesk.model.confirmations import Caller, Confirmation, RequesterPause, Status
from frontdesk.model.feed import FeedKind
from frontdesk.model.visitors import Need, Visitor
from frontdesk.web import addresses, login, problems
from frontdesk.web.confirmations import views
from frontdesk.web.confirmations.api import seen_payload
from frontdesk.web.confirmations.linking import DecisionLinks
from frontdesk.web.confirmations.records import Digest, LiftBody, Text
from frontdesk.web.confirmations.views import PATH
from frontdesk.web.confirmations.waiting import STILL_HERE, Streams
from frontdesk.web.endpoints import HttpCall
from frontdesk.web.operations import BrowserOrigin, Form, Proof, Table, Who
from frontdesk.web.pages import frame, rendering
from frontdesk.web.pages.frame import SitePlace, Values
from frontdesk.web.pages.wording import say
from frontdesk.web.visitors import SIGN_IN_FIRST, Visitors

MAX_BODY_BYTES = 64 * 1024
MOST_SHOWN = 200

EVENTS = "/api/v1/events"
"""Of a gateway, where there is one."""
CHANGED = b"data: changed\n\n"
HERE = b"event: here\ndata: {}\n\n"
"""A sign of life that a browser tells its page of."""

log = get_logger(__name__)

OPERATIONS = Table(who=Who.VISITOR, max_body_bytes=MAX_BODY_BYTES)
PAGE = {"form": Form.PAGE, "origin": BrowserOrigin.LINK}
SCRIPT = {"origin": BrowserOrigin.SCRIPT, "needs_body": True}
BY_LINK = SCRIPT | {"proof": Proof.LINK}
ALONE = Table(who=Who.VISITOR, need=Need.LOOK, **PAGE)
"""Where no gateway has other pages."""


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


class OpenedList(Opened, frozen=True, kw_only=True):
    after: str = ""
    """Where its page begins."""


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
    message: str


class PageDone(msgspec.Struct, frozen=True, kw_only=True):
    done: bool = True


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages are made from."""

    service: ConfirmationService
    visitors: Visitors
    links: DecisionLinks
    streams: Streams
    clock: Clock
    places: Sequence[SitePlace] = frame.PLACES
    office: Office | None = None
    """Of the gateway whose agents ask, where there is one."""

    @ALONE.add("GET", "/", query=Opened)
    async def show_beginning(self, _: HttpCall) -> Response:
        """Where somebody begins."""
        return RedirectResponse(views.home(), HTTPStatus.SEE_OTHER)

    @OPERATIONS.add("GET", PATH, query=OpenedList, need=Need.LOOK_AT_REQUESTS, **PAGE)
    async def list_waiting(self, call: HttpCall) -> Response:
        """What waits for a decision."""
        caller = call.caller
        page = await self.service.page(Status.PENDING, MOST_SHOWN, call.query.after or None)
        pauses, now = await self.service.pauses(), self.clock.now()
        total = await self.service.pending_count()
        askers = await self._askers(call.known, page.items)
        around = await self._around(call.known, FeedKind.CONFIRMATION)
        around |= {
            "older": page.next and f"?{urlencode({'after': page.next})}",
            "is_first": not call.query.after,
        }
        return await _page(
            "list.html", lambda: views.waiting(page.items, pauses, caller, now, total, askers) | around
        )

    @OPERATIONS.add("GET", f"{PATH}/events", query=Opened, need=Need.LOOK_AT_REQUESTS, form=Form.EVENTS)
    async def follow_list(self, call: HttpCall) -> AsyncGenerator[bytes, None]:
        """That something happened, as server-sent events: the page looks again."""
        return self._changes(partial(self.visitors.is_in, call.request, call.operation))

    @OPERATIONS.add(
        "POST",
        f"{PATH}/pauses/lift",
        PageDone,
        need=Need.DECIDE,
        body=LiftBody,
        problems=(404,),
        **SCRIPT,
    )
    async def lift(self, call: HttpCall) -> PageDone:
        """Have people asked for a requester again."""
        requester = call.read(LiftBody).requester
        if not await self.service.lift_pause(requester, call.caller):
            raise HTTPException(HTTPStatus.NOT_FOUND, say("approvals.not_paused"))
        return PageDone()

    @OPERATIONS.add("GET", f"{PATH}/{{id}}", query=Opened, **PAGE)
    async def show(self, call: HttpCall) -> Response:
        """A request, all of it but what is hidden."""
        link = call.query.t
        try:
            caller, asked = await self._seen(call, link, Need.LOOK_AT_REQUESTS)
        except errors.LinkRefused:
            return login.show(say("login.link_refused"), HTTPStatus.FORBIDDEN)
        obstacle, now = await self.obstacle(caller, asked), self.clock.now()
        card = await self.service.card(asked)
        if card and link is not None:  # which shows the request that it names, and nothing of another
            card = replace(card, comparison=())
        follows = asked.id if views.can_change(asked, now) else None
        around: Values = {}
        if link is None:
            around = await self._around(call.known, follows)
            around["asker"] = (await self._askers(call.known, [asked])).get(asked.turn_id or "")
        return await _page(
            "request.html",
            lambda: views.request(asked, card, caller, now, link=link, obstacle=obstacle) | around,
        )

    async def _around(self, visitor: Visitor, follows: str | None) -> Values:
        """The places and who looks, for somebody who is in, and what the page follows beside a gateway."""
        asked, now = await self.service.pending_count(), self.clock.now()
        around = frame.frame(
            visitor, frame.APPROVALS, addresses.link(""), now, asked=asked, among=self.places
        )
        if follows and self.places is not frame.ALONE:
            around["events"] = addresses.link(f"{EVENTS}?about={follows}")
        return around | {"may_decide": visitor.may(Need.DECIDE)}

    async def _askers(self, visitor: Visitor, found: Sequence[Confirmation]) -> views.Askers:
        """The conversations that ask, those that the one who looks may see."""
        if self.office is None:
            return {}
        asking = await self.office.seen_by(visitor).sessions_of(
            [asked.turn_id for asked in found if asked.turn_id]
        )
        return {turn_id: views.asking(row) for turn_id, row in asking.items()}

    @OPERATIONS.add("GET", f"{PATH}/{{id}}/events", query=Opened, form=Form.EVENTS)
    async def follow(self, call: HttpCall) -> AsyncGenerator[bytes, None]:
        """The same for the page of one request, until nothing can change there any more."""
        link, about = call.query.t, call.id
        await self._seen(call, link, Need.LOOK_AT_REQUESTS)
        if link is None:
            return self._changes(partial(self.visitors.is_in, call.request, call.operation), about)

        async def counts() -> bool:
            try:
                return bool(self.links.caller(link, await self.service.find(about)))
            except (errors.UnknownConfirmation, errors.LinkRefused):
                return False

        return self._changes(counts, about)

    @OPERATIONS.add("POST", f"{PATH}/{{id}}/reveal", Uncovered, body=PageLook, problems=(410,), **BY_LINK)
    async def reveal(self, call: HttpCall) -> Uncovered:
        """What is hidden, for whoever may decide; the log says who looked."""
        caller, asked = await self._seen(call, call.read(PageLook).t, Need.DECIDE)
        return await self.uncover(caller, asked)

    async def uncover(self, caller: Caller, asked: Confirmation) -> Uncovered:
        """What is hidden in a request, with the proof that somebody has looked."""
        revealed = await self.service.reveal(asked.id, caller)
        show = partial(cards.make, seen_payload(revealed), asked.description, asked.requester, reveal=True)
        card = await asyncio.to_thread(show)
        return Uncovered(
            lines=card.lines,
            matters=card.matters,
            headline=card.headline,
            repeated=views.repeated(card.headline),
            seen=self.links.note_look(caller, revealed),
            message=say("approvals.revealed"),
        )

    @OPERATIONS.add(
        "POST", f"{PATH}/{{id}}/decision", PageOutcome, body=PageVote, problems=problems.OF_A_VOTE, **BY_LINK
    )
    async def decide(self, call: HttpCall) -> PageOutcome:
        """Allow or refuse the action that was shown."""
        verdict = call.read(PageVote)
        caller, asked = await self._seen(call, verdict.t, Need.DECIDE)
        return await self.vote(verdict, caller, asked)

    async def vote(self, verdict: PageVote, caller: Caller, asked: Confirmation) -> PageOutcome:
        """NotLookedAt, TargetMissing; else it counts."""
        if verdict.approves and asked.status is Status.PENDING:
            await self._check_care(verdict, caller, asked)
        act = self.service.approve if verdict.approves else self.service.deny
        voted = await act(asked.id, caller, reason=verdict.reason, digest=verdict.digest)
        pause = await self.service.pause_after(voted)
        message = views.outcome(voted)
        if pause:
            message += f" {say('approvals.pause', pause=pause, who=pause.requester)}"
        return PageOutcome(id=voted.id, status=voted.status, message=message, pause=pause)

    async def _check_care(self, verdict: PageVote, caller: Caller, asked: Confirmation) -> None:
        """NotLookedAt, TargetMissing: nobody approves what they have not seen, or one of the ten without
        typing its target."""
        card = await self.service.card(asked)
        if card:
            looked = self.links.has_looked(verdict.seen, caller, asked)
            card.check_looked(asked.id, looked, say("approvals.look_first"))
            card.check_typed(asked.id, verdict.target)

    async def _changes(
        self, may_look: Callable[[], Awaitable[bool]], about: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Tells a page that something happened, as long as it may look, and never what: it looks again. That
        nobody used a yes in time is in no row of the log: whoever follows one request is told of it here."""
        async with aclosing(self.streams.events(None, lambda _: CHANGED)) as pieces:
            async for piece in pieces:
                if not await may_look():
                    break
                is_over = about and piece is STILL_HERE and await self._is_over(about)
                yield CHANGED if is_over else HERE if piece is STILL_HERE else piece

    async def _is_over(self, confirmation_id: str) -> bool:
        try:
            return not views.can_change(await self.service.find(confirmation_id), self.clock.now())
        except errors.UnknownConfirmation:
            return True

    async def _seen(self, call: HttpCall, link: str | None, need: Need) -> tuple[Caller, Confirmation]:
        """Who looks, and at what; 401 for somebody who must sign in first. A link counts before a session.

        Whether a request exists is told to nobody else.
        """
        if link is None:
            if call.visitor is None:
                raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, problems.CHALLENGE)
            call.visitor.require(need)
            return call.caller, await self.service.find(call.id)
        try:
            asked = await self.service.find(call.id)
            return self.links.caller(link, asked), asked
        except (errors.UnknownConfirmation, errors.LinkRefused):
            log.warning("link_refused", confirmation=call.id)
            raise errors.LinkRefused() from None

    def show_refusal(self, problem: Response) -> Response:
        return login.show_refusal(problem)

    async def obstacle(self, caller: Caller, asked: Confirmation) -> str | None:
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
