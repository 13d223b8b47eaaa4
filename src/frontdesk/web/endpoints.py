"""Rows of the table as addresses: what comes in is read and checked here, what goes out is made."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.formats import canonical, quoting
from frontdesk.model.confirmations import STRANGER, Caller, CallerKind, Mode
from frontdesk.model.visitors import Visitor
from frontdesk.web import answers, bounds, browsers, described, openapi, passing, problems, questions, repeats
from frontdesk.web.bodies import UPLOAD, UploadedBody, read_body
from frontdesk.web.middleware import Hosts, Middleware, NamedRouter
from frontdesk.web.operations import (
    DEFAULT_BODY_BYTES,
    KEY_HEADER,
    LINK_FIELD,
    LOOKING,
    BrowserOrigin,
    Form,
    Operation,
    Proof,
    Who,
)
from frontdesk.web.passing import Endpoint
from frontdesk.web.pieces import stream
from frontdesk.web.pushing import Pushed, push
from frontdesk.web.repeats import RepeatedCalls

LONG_BODY_BYTES = 32 * 1024
"""Reading a longer body takes so long that others would notice."""
UNHEARD = 499
"""The status of an answer that nobody gets."""
ADMITTED = "frontdesk.admitted"
"""In the scope of a request whose sender may."""
ANYBODY = Caller(id=STRANGER, kind=CallerKind.ANYBODY)

MADE, TOLD = (Form.JSON, Form.PAGE), (Form.LINES, Form.TEXT)
"""What is answered in one piece, and what piece by piece from something that is held meanwhile."""
CREDENTIALED = (Who.REQUESTER, Who.READER, Who.APPROVER, Who.VISITOR)

_ID = re.compile(openapi.ID_PATTERN.strip("^$"))

Answering = TypeVar("Answering")
Record = TypeVar("Record", bound=msgspec.Struct)
NoteRefusal = Callable[[errors.NotAllowed, str, str | None], Awaitable[None]]


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose sender is known and whose form was checked."""

    request: Request
    operation: Operation
    caller: Caller
    params: Mapping[str, str]
    """What the path names."""
    query: Any
    headers: Any
    data: Mapping[str, Any]
    """The body, read strictly; empty without one."""
    visitor: Visitor | None = None
    """Who sends it, where somebody is in."""

    @property
    def key(self) -> str | None:
        """The idempotency key, if there is one."""
        return repeats.key_in(self.request.headers.getlist(KEY_HEADER))

    @property
    def id(self) -> str:
        return self.params["id"]

    @property
    def known(self) -> Visitor:
        """The visitor of a row that says what they need."""
        assert self.visitor is not None
        return self.visitor

    @property
    def upload(self) -> UploadedBody:
        """The body of a row that takes a file."""
        body: UploadedBody = self.request.scope[UPLOAD]
        return body

    def read(self, kind: type[Record]) -> Record:
        return read_record(kind, self.data, "The body")


class Served(msgspec.Struct, frozen=True):
    """Rows, and what answers them."""

    operations: Iterable[Operation]
    answering: Any
    """What the rows' functions are called with."""
    admit: Callable[[Request, Who], Caller] | None = None
    """Tells who sends a request. 401 for nobody we know, NotAllowed for somebody else than who may."""
    visit: passing.Visit | None = None
    """Tells who visits: by a token, or by a cookie and, where something is changed, its proof. 401 for nobody
    where somebody must be in, NotAllowed without the proof."""
    note: NoteRefusal | None = None
    """Is told of whom that refuses what, and which name the path has."""
    repeats: RepeatedCalls | None = None
    """Carries out what comes with an idempotency key."""


def make_app(
    served: Sequence[Served],
    hosts: Hosts | None,
    about: tuple[str, str],
    mode: Mode = Mode.TEAM,
    plain: Iterable[channels.Route] = (),
    door: passing.TokenDoor | None = None,
) -> ASGIApp:
    """Everything that one port serves: rows, their document with a title and a description, and channels' own
    addresses, whose channels ask who comes at a door. Without hosts it is the owner's socket."""
    rows = [(row, each) for each in served for row in each.operations]
    for row, each in rows:
        _check_known(row, each, is_owners=hosts is None)
    routes = _routes(((row.path, row.method, (row, each)) for row, each in rows), _endpoint)
    plain = list(plain)
    describe = partial(described.document, about, [row for row, _ in rows], mode, plain)
    routes.append(Route("/openapi.json", described.showing(describe)))
    passed = partial(passing.passing, door or passing.TokenDoor())
    routes += _routes(((route.path, route.method, route) for route in plain), passed)
    router = NamedRouter(routes)
    return Middleware(ExceptionMiddleware(router, {HTTPException: _refusing(served)}), hosts)


def _check_known(row: Operation, served: Served, *, is_owners: bool) -> None:
    """A row is served only where it can be told who asks: a word in its column alone keeps nobody out."""
    if row.who is Who.OWNER and not is_owners:
        raise ValueError(f"{row.path} is for the owner, and not on the owner's socket")
    if row.is_keyed and served.repeats is None:
        raise ValueError(f"{row.path} takes an idempotency key, and nobody looks at it")
    if row.need and row.who is not Who.VISITOR:
        raise ValueError(f"{row.path} is for those who can {row.need}, and not for visitors")
    looks = served.visit if row.who is Who.VISITOR else served.admit
    if row.who in CREDENTIALED and looks is None:
        raise ValueError(f"{row.path} is for a {row.who}, and nobody looks at credentials")


def _refusing(served: Sequence[Served]) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Tells that there is no such address, or not with this method: somebody with a browser, where there are
    pages, by a page."""
    pages = [each.answering for each in served if any(row.form is Form.PAGE for row in each.operations)]

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        refused = problems.refuse(error)
        visits = request.headers.get("sec-fetch-dest") == "document"
        shown: Response = pages[0].show_refusal(refused) if pages and visits else refused
        return shown

    return refuse


def _routes(
    named: Iterable[tuple[str, str, Answering]], make: Callable[[Mapping[str, Answering]], Endpoint]
) -> list[Route]:
    """A route for each path, with all its methods."""
    by_path: dict[str, dict[str, Answering]] = defaultdict(dict)
    for path, method, answering in named:
        by_path[path][method] = answering
    return [Route(path, make(each), methods=list(each), name=path) for path, each in by_path.items()]


def _endpoint(methods: Mapping[str, tuple[Operation, Served]]) -> Endpoint:
    known = {
        operation.method: frozenset().union(
            *problems.kinds_by_status(openapi.problems_of(operation)).values()
        )
        for operation, _ in methods.values()
    }

    async def answer(request: Request) -> Response:
        operation, served = methods.get(request.method) or methods["GET"]
        try:
            if operation.uploads:
                return await _answer_upload(operation, served, request)
            answering = _answer(operation, served, request)
            return await (_unless_gone(request, answering) if operation.waits else answering)
        except problems.REFUSALS as refusal:
            if operation.who is Who.OWNER:
                return problems.refuse_owner(refusal)
            refused = problems.refuse(refusal, known[operation.method])
            return served.answering.show_refusal(refused) if operation.form is Form.PAGE else refused

    return answer


async def _answer_upload(operation: Operation, served: Served, request: Request) -> Response:
    """The answer to whoever sends a file, when all of it has come: before that nobody would hear it. A
    stranger's is not waited for."""
    request.scope[UPLOAD] = body = UploadedBody(request, partial(_admitted, operation, served, request))
    try:
        return await _answer(operation, served, request)
    except problems.REFUSALS:
        if request.scope.get(ADMITTED):
            await body.pass_over()
        raise


async def _answer(operation: Operation, served: Served, request: Request) -> Response:
    if request.method == "HEAD" and operation.form is Form.EVENTS:
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "It has no end.", {"allow": "GET"})
    call = await _call(operation, served, request)
    carry_out = partial(_carry_out, operation, served, call)
    return await (served.repeats.once(operation, call, carry_out) if served.repeats else carry_out())


async def _carry_out(operation: Operation, served: Served, call: HttpCall) -> Response:
    """What the row's function gives. What visitors look at may be long, and asked for many times."""
    room = answers.room_of(call.request.scope) if call.visitor else None
    handle = partial(operation.handle, served.answering, call)
    if room is None or operation.form not in MADE:
        result = await handle()
        if room and operation.form in TOLD and isinstance(result, AsyncGenerator):
            result = room.telling(call.caller.id, result)
        return await _respond(operation, result)
    if operation.method not in LOOKING:
        return await _respond(operation, await handle())
    async with room.making(call.caller.id):
        response = await _respond(operation, await handle())
        return await room.keep(call.caller.id, response, len(response.body))


async def _call(operation: Operation, served: Served, request: Request) -> HttpCall:
    """Checked in this order: where it comes from, who sends it, its form, and again who sends it."""
    # A page of another origin learns nothing, not even whether its user has a token; a body is read last, so
    # that nobody unknown makes us read one.
    browsers.check_origin(request, operation.origin)
    early = await _data(operation, request) if operation.proof is Proof.LINK else None
    # Whoever comes with a link is nobody yet: what it names, and for whom, is told by the row's function.
    linked = early is not None and early.get(LINK_FIELD) is not None
    caller, visitor = (ANYBODY, None) if linked else await _admitted(operation, served, request)
    params, query, headers = _params(request), _query(operation, request), _headers(operation, request)
    data = await _data(operation, request) if early is None else early
    if operation.body and early is None:
        # A body may come long after its header: who was sent away meanwhile does nothing with it.
        caller, visitor = await _admitted(operation, served, request)
    return HttpCall(
        request=request,
        operation=operation,
        caller=caller,
        visitor=visitor,
        params=params,
        query=query,
        headers=headers,
        data=data,
    )


async def _admitted(operation: Operation, served: Served, request: Request) -> tuple[Caller, Visitor | None]:
    visitor = None
    try:
        if operation.who is Who.VISITOR and served.visit:
            visitor = await served.visit(request, operation)
            caller = visitor.caller if visitor else ANYBODY
        else:
            caller = served.admit(request, operation.who) if served.admit else ANYBODY
        if operation.need and visitor:
            visitor.require(operation.need)
    except errors.NotAllowed as refusal:
        if served.note is not None:
            named = request.path_params.get("id", "")
            await served.note(refusal, operation.name, named if _is_id(named) else None)
        raise
    if visitor or caller.kind is not CallerKind.ANYBODY:
        bounds.prove(request.scope, caller.id)
        request.scope[ADMITTED] = True
    return caller, visitor


def _params(request: Request) -> Mapping[str, str]:
    """What the path names; none of ours has other characters."""
    params: Mapping[str, str] = request.path_params
    if all(map(_is_id, params.values())):
        return params
    raise HTTPException(HTTPStatus.NOT_FOUND, "There is nothing of that name.")


def _is_id(given: str) -> bool:
    return len(given) <= openapi.MAX_ID_CHARACTERS and _ID.fullmatch(given) is not None


def _query(operation: Operation, request: Request) -> msgspec.Struct:
    given = request.query_params.multi_items()
    values = dict(given)
    if len(values) < len(given):
        raise errors.InvalidInput(what="The address", why="a part after the question mark is there twice")
    if not operation.uploads:  # a file may be called anything
        questions.check_texts(values, "The address")
    return read_record(operation.query, values, "The address", strict=False)


def _headers(operation: Operation, request: Request) -> msgspec.Struct:
    """The headers that the address knows; one that is sent several times is one with commas."""
    given = {
        name: ", ".join(request.headers.getlist(name))
        for name in operation.headers.__struct_encode_fields__
        if name in request.headers
    }
    return read_record(operation.headers, given, "A header", strict=False)


async def _data(operation: Operation, request: Request) -> Mapping[str, Any]:
    if operation.body is None:
        return {}
    if operation.origin is not BrowserOrigin.ANYWHERE:
        browsers.check_type(request)
    body = await read_body(request, operation.max_body_bytes)
    if not body and not operation.needs_body:
        return {}
    return await asyncio.to_thread(_object_in, body) if len(body) > LONG_BODY_BYTES else _object_in(body)


def _object_in(body: bytes) -> Mapping[str, Any]:
    """The object in a body. InvalidInput for whatever is none, or could be read in more than one way."""
    data = canonical.read_strict(body)
    if not isinstance(data, Mapping):
        raise errors.InvalidInput(what="The body", why="it is not an object")
    return data


def read_record(kind: type[Record], values: Mapping[str, Any], what: str, *, strict: bool = True) -> Record:
    try:
        return msgspec.convert(values, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise errors.InvalidInput(what=what, why=quoting.clean_text(str(error))) from None


async def _unless_gone(request: Request, answering: Awaitable[Response]) -> Response:
    """The answer. When nobody is there to hear it any more, nothing waits for it either."""
    answer, gone = asyncio.ensure_future(answering), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        # Where both have happened the answer counts: what it tells may be done already.
        return answer.result() if answer.done() else Response(status_code=UNHEARD)
    finally:
        answer.cancel()
        gone.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    """The end of the connection, or of our patience with somebody who sends what nobody asked for."""
    unasked = 0
    while unasked <= DEFAULT_BODY_BYTES and (message := await request.receive())["type"] != "http.disconnect":
        unasked += len(message.get("body", b""))


async def _respond(operation: Operation, result: Any) -> Response:
    """What a row's function gave, in the form that the row says."""
    status = next(iter(operation.answers))
    match result:
        case Response():
            return result
        case AsyncGenerator():
            return await stream(operation.form, result)
        case Pushed():
            return await push(operation.form, result)
        case None if status is HTTPStatus.NO_CONTENT:
            return Response(status_code=status)
    if operation.goes_on and operation.goes_on(result):
        status = HTTPStatus.ACCEPTED
    return give({} if result is None else result, status)


def give(
    record: object, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(msgspec.json.encode(record), status, headers, media_type=Form.JSON)
