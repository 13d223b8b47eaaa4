"""Signing in and out: the one way in for every page."""

from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.model.visitors import Need
from frontdesk.web import addresses
from frontdesk.web.endpoints import HttpCall, NoteRefusal, give
from frontdesk.web.operations import BrowserOrigin, Form, Proof, Table, Who
from frontdesk.web.pages import rendering
from frontdesk.web.problems import CHALLENGE, ProblemDocument
from frontdesk.web.visitors import NOBODY, Visitors

PATH = "/login"
HOME = "/"
"""Where somebody is led who has come for nothing else."""
PACKAGE = "frontdesk.web.pages"
MAX_BODY_BYTES = 64 * 1024

log = get_logger(__name__)

OPERATIONS = Table(who=Who.VISITOR, max_body_bytes=MAX_BODY_BYTES)


class SignIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is typed, pasted, or part of a link that no browser sends."""

    token: str


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    proof: str
    """To be kept where this page alone can read it, and sent as a header with whatever changes something."""
    role: str
    still_in: list[str] = []
    """Who else came along with a cookie, but without its proof: their sessions go on."""


class SignedOut(msgspec.Struct, frozen=True, kw_only=True):
    done: bool = True


class LoginPages(msgspec.Struct, frozen=True, kw_only=True):
    """Who is let in."""

    visitors: Visitors
    note: NoteRefusal

    @OPERATIONS.add("GET", PATH, form=Form.PAGE, origin=BrowserOrigin.LINK)
    async def show_login(self, call: HttpCall) -> Response:
        """The page on which somebody signs in, with a link, a code or a token."""
        return show(who=call.visitor.name if call.visitor else None)

    @OPERATIONS.add(
        "POST",
        PATH,
        SignedIn,
        proof=Proof.SIGN_IN,
        body=SignIn,
        needs_body=True,
        origin=BrowserOrigin.SCRIPT,
        problems=(429,),
    )
    async def sign_in(self, call: HttpCall) -> Response:
        """Begin a session; one that there was ends: somebody else's if its proof comes along."""
        secret = call.read(SignIn).token.strip()
        try:
            begun, still_in = await self.visitors.sign_in(secret, call.request)
        except HTTPException:
            log.warning("sign_in_refused")
            raise
        except errors.NotAllowed as refusal:
            log.warning("sign_in_refused", who=refusal.who)
            await self.note(refusal, "sign_in", None)
            raise HTTPException(HTTPStatus.UNAUTHORIZED, NOBODY, CHALLENGE) from None
        log.info("signed_in", who=begun.held.person, role=str(begun.held.role), id=begun.held.id)
        response = give(SignedIn(proof=begun.proof, role=begun.held.role, still_in=still_in))
        self.visitors.keep(begun, response)
        return response

    @OPERATIONS.add(
        "POST",
        f"{PATH}/end",
        SignedOut,
        need=Need.LOOK,
        body=SignedOut,
        needs_body=True,
        origin=BrowserOrigin.SCRIPT,
    )
    async def sign_out(self, call: HttpCall) -> Response:
        """End the session."""
        call.read(SignedOut)
        await self.visitors.sign_out(call.known.id, call.request)
        response = give(SignedOut())
        self.visitors.forget(response)
        return response

    def show_refusal(self, problem: Response) -> Response:
        return show_refusal(problem)


def show(note: str | None = None, status: HTTPStatus = HTTPStatus.OK, who: str | None = None) -> Response:
    """The page on which somebody signs in. At whatever address it stands, that one is shown afterwards.
    Who is in already is told what becomes of that."""
    values = {"note": note, "home": addresses.link(HOME), "in_already": who}
    return rendering.render(PACKAGE, "login.html", values, status)


def show_refusal(problem: Response) -> Response:
    """What is refused, as a page; whoever must sign in first can do so there."""
    told = msgspec.json.decode(problem.body, type=ProblemDocument)
    if told.status == HTTPStatus.UNAUTHORIZED:
        return show(status=HTTPStatus.UNAUTHORIZED)
    values = {"title": told.title, "detail": told.detail, "home": addresses.link(HOME)}
    return rendering.render(PACKAGE, "refusal.html", values, HTTPStatus(told.status))
