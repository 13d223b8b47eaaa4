"""Who visits: by a token that a program sends, or by the cookie of a browser in which somebody signed in."""

import time
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from itertools import islice
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.config.confirm import OWNER
from frontdesk.flow.passes import Admitted, BegunPage, PassBook
from frontdesk.model import passes
from frontdesk.model.access import Role
from frontdesk.model.confirmations import TOKEN, Caller, CallerKind
from frontdesk.model.passes import PassKind
from frontdesk.model.visitors import Visitor
from frontdesk.web import addresses
from frontdesk.web.bodies import VISITED
from frontdesk.web.credentials import UNKNOWN, Credentials
from frontdesk.web.guesses import MAX_TOKEN_BYTES, token_in
from frontdesk.web.operations import PROOF_HEADER, VISITOR_HEADER, Operation
from frontdesk.web.problems import CHALLENGE

COOKIE = "frontdesk"
MOST_COOKIES = 20
"""So many of one name are looked at: any port of the host can add some to ours."""
IN_ADDRESSES = ("access_token", "api_key", "authorization", "proof", "token")
"""What addresses do not have after the question mark: proxies and browsers keep those."""
LOOK_AGAIN_SECONDS = 5.0
"""A pass that is ended on another node lets a stream that is not told of it go on for no longer."""
SIGN_IN_FIRST = "Sign in first. A program sends its token: Authorization: Bearer TOKEN."
NOBODY = "Nobody is known by this. The code of a link counts once, and for some minutes only."
KEEP_OUT = "A token does not belong in an address. Send it as the header Authorization: Bearer TOKEN."


class _Visited(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent a request, when that was looked up, and how often who may come in had changed."""

    visitor: Visitor | None
    changes: int
    at: float


class Visitors:
    """Everybody with a pass, or with an approver's token of the settings.

    A cookie lets somebody look. Whatever else they do takes the page's proof, too: it is given to whoever
    signs in, once, and nothing that a cookie opens has it.
    """

    def __init__(self, book: PassBook, credentials: Credentials) -> None:
        self._book = book
        self._credentials = credentials

    async def visit(self, request: Request, operation: Operation) -> Visitor | None:
        """Who it is; nobody where the row takes nobody. 401 without a pass, Unproven without its proof,
        WrongVisitor when the page that sends it was made for somebody else.

        Asked again of the same request, as streams do before each event, it looks only once in a while, or
        after it was changed here who may come in, or as whom.
        """
        known: _Visited | None = request.scope.get(VISITED)
        changes, now = self._book.changes, time.monotonic()
        if known and known.changes == changes and now - known.at < LOOK_AGAIN_SECONDS:
            return known.visitor
        visitor = await self._visit(request, operation)
        request.scope[VISITED] = _Visited(visitor=visitor, changes=changes, at=now)
        return visitor

    async def _visit(self, request: Request, operation: Operation) -> Visitor | None:
        if any(name.lower() in IN_ADDRESSES for name in request.query_params):
            raise HTTPException(HTTPStatus.BAD_REQUEST, KEEP_OUT)
        given = request.headers.getlist("authorization")
        if given:
            return await self._bearer(token_in(given), request)
        pages = [each async for each in self._pages(request)]
        if pages and operation.needs_proof:
            return _proven(request, pages)
        # Any port of the host can add a cookie of somebody else to ours: which one is meant nobody can tell.
        if len({each.visitor.id for each in pages}) == 1:
            return pages[0].visitor
        if operation.need or operation.needs_proof:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, SIGN_IN_FIRST, CHALLENGE)
        return None

    async def is_in(self, request: Request, operation: Operation) -> bool:
        """Whether whoever was let in with the request still would be."""
        try:
            return await self.visit(request, operation) is not None
        except (HTTPException, errors.FrontdeskError):
            return False

    async def sign_in(self, secret: str, request: Request) -> tuple[BegunPage, list[str]]:
        """A page for whoever shows a link, a token, or an approver's token of the settings, and the names of
        who is still in. Their own pages that came along end, and others' whose proof did, too.
        401 for any other, 429 after too many, NotAllowed for an agent."""
        token = secret.encode()
        usable = 0 < len(token) <= MAX_TOKEN_BYTES
        if usable:
            self._credentials.guesses.check(token, request)
        begun = await self._begun(secret, token) if usable else None
        if usable:
            self._credentials.guesses.count(token, request, right=begun is not None)
        if begun is None:
            raise HTTPException(HTTPStatus.UNAUTHORIZED, NOBODY, CHALLENGE)
        return begun, await self.sign_out(begun.held.person, request)

    async def sign_out(self, who: str, request: Request) -> list[str]:
        """They are in no more with the cookies that came along, wherever those were copied to; others' end
        with their proof. The names of the others who are still in."""
        proof, still_in = _proof_in(request), set()
        async for each in self._pages(request):
            if each.visitor.id == who or each.held.fits_proof(proof):
                await self._book.revoke(each.held.id, by=who)
            else:
                # Every port of the host gets their cookie, and a program sends whatever origin it likes:
                # with a way in of its own it would throw them out.
                still_in.add(each.visitor.name)
        return sorted(still_in)

    def keep(self, begun: BegunPage, response: Response) -> None:
        """Give the cookie to the browser. It comes with links from elsewhere, too: with it one only looks."""
        address = addresses.here.get()
        response.set_cookie(
            cookie_name(address),
            begun.secret,
            max_age=passes.PAGE_SECONDS,
            path=address.root or "/",
            secure=address.is_secure,
            httponly=True,
            samesite="lax",
        )

    def forget(self, response: Response) -> None:
        """Take the cookie from the browser."""
        address = addresses.here.get()
        response.delete_cookie(
            cookie_name(address),
            path=address.root or "/",
            secure=address.is_secure,
            httponly=True,
            samesite="lax",
        )

    async def _begun(self, secret: str, token: bytes) -> BegunPage | None:
        if entry := await self._book.recognise(secret, PassKind.LINK, PassKind.TOKEN):
            if entry.held.kind is PassKind.LINK:
                return await self._book.redeem(secret)
            return await self._book.begin(entry.visitor, parent=entry.held)
        caller = self._credentials.find(token)
        if caller is None:
            return None
        return await self._book.begin(await self._visitor(caller), bound_to=self._credentials.mark(caller))

    async def _bearer(self, token: bytes, request: Request) -> Visitor:
        if token:
            self._credentials.guesses.check(token, request)
            visitor = await self._by_token(token)
            self._credentials.guesses.count(token, request, right=visitor is not None)
            if visitor:
                return visitor
        raise HTTPException(HTTPStatus.UNAUTHORIZED, UNKNOWN, CHALLENGE)

    async def _by_token(self, token: bytes) -> Visitor | None:
        entry = await self._book.recognise(token.decode("latin-1"), PassKind.TOKEN)
        if entry:
            return entry.visitor
        caller = self._credentials.find(token)
        return await self._visitor(caller) if caller else None

    async def _visitor(self, caller: Caller) -> Visitor:
        """Somebody with a token of the settings. NotAllowed for an agent."""
        if caller.kind is not CallerKind.APPROVER:
            raise errors.NotAllowed(who=caller.id, rule="this takes an approver's credential")
        role = Role.ADMINISTRATOR if caller.id == f"{TOKEN}{OWNER}" else Role.APPROVER
        people = await self._book.names_of(caller.names)
        name = caller.id.removeprefix(TOKEN)
        return Visitor(id=caller.id, name=name, role=role, people=people - {caller.id})

    async def _pages(self, request: Request) -> AsyncIterator[Admitted]:
        """Those that hold, of all whose cookies came along."""
        for value in islice(_cookies(request), MOST_COOKIES):
            entry = await self._book.recognise(value, PassKind.PAGE)
            if entry and entry.held.bound_to is not None:
                entry = await self._bound(entry)
            if entry:
                yield entry

    async def _bound(self, entry: Admitted) -> Admitted | None:
        """The same for as long as the token that the page was begun with is still the same one."""
        caller = self._credentials.approver(entry.held.person)
        if caller is None or self._credentials.mark(caller) != entry.held.bound_to:
            return None
        return replace(entry, visitor=await self._visitor(caller))


def cookie_name(address: addresses.PublicAddress) -> str:
    """With TLS browsers take one of that name from nobody else, and no other path."""
    if not address.is_secure:
        return COOKIE
    return f"__Secure-{COOKIE}" if address.root else f"__Host-{COOKIE}"


def _proven(request: Request, pages: list[Admitted]) -> Visitor:
    """Who signed in with this very browser."""
    proof = _proof_in(request)
    found = next((each for each in pages if each.held.fits_proof(proof)), None)
    if found is None:
        raise errors.Unproven(who=pages[0].visitor.id, rule="the session's proof did not come along")
    if any(unquote(each) != found.visitor.id for each in request.headers.getlist(VISITOR_HEADER)):
        raise errors.WrongVisitor()
    return found.visitor


def _proof_in(request: Request) -> str:
    given = request.headers.getlist(PROOF_HEADER)
    return given[0] if len(given) == 1 else ""


def _cookies(request: Request) -> Iterator[str]:
    """All of our name, in the order in which they came."""
    wanted = cookie_name(addresses.here.get())
    for header in request.headers.getlist("cookie"):
        for each in header.split(";"):
            name, _, value = each.strip().partition("=")
            if name == wanted:
                yield value
