"""Addresses as rows of a table: each is served, checked and documented from its one row."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk import errors
from frontdesk.flow.confirmations.service import ConfirmationService
from frontdesk.formats import canonical, quoting
from frontdesk.model.confirmations import Caller
from frontdesk.web import bodies, problems
from frontdesk.web.confirmations import answers, browsers, records
from frontdesk.web.confirmations.admission import Admission, Who
from frontdesk.web.confirmations.streams import Streams

MAX_BODY_BYTES = 1024 * 1024
LONG_BODY_BYTES = 32 * 1024
"""Reading a longer body takes so long that others would notice."""
MAX_ID_CHARACTERS = 64
UNHEARD = 499
"""The status of an answer that nobody gets."""
ID_PATTERN = "^[A-Za-z0-9_-]+$"

_ID = re.compile(ID_PATTERN.strip("^$"))

Record = TypeVar("Record", bound=msgspec.Struct)


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are answered with."""

    service: ConfirmationService
    streams: Streams
    page_url: str | None = None
    """Where the pages for people are."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose sender is known and whose form was checked."""

    caller: Caller
    id: str
    """The part of the path that names something; empty where there is none."""
    query: Any
    headers: Any
    data: Mapping[str, Any]
    """The body, read strictly; empty without one."""

    def read(self, kind: type[Record]) -> Record:
        return read_record(kind, self.data, "The body")


Handle = Callable[[Desk, Call], Coroutine[Any, Any, Response]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    handle: Handle
    summary: str
    who: Who
    answers: Mapping[HTTPStatus, tuple[type[msgspec.Struct], ...]]
    """What comes back, by status; empty for no body."""
    problems: tuple[HTTPStatus, ...] = ()
    """Besides those that every address has."""
    query: type[msgspec.Struct] = records.Nothing
    headers: type[msgspec.Struct] = records.Nothing
    body: type[msgspec.Struct] | None = None
    needs_body: bool = False
    media_type: str = browsers.JSON

    @property
    def names_one(self) -> bool:
        return "{id}" in self.path

    @property
    def waits(self) -> bool:
        """Whether somebody may want to wait for the answer."""
        return issubclass(self.headers, records.Waits)

    @property
    def is_endless(self) -> bool:
        return self.media_type != browsers.JSON


def routes(operations: Iterable[Operation], admission: Admission, desk: Desk) -> list[Route]:
    """A route for each path, with all its methods."""
    by_path: dict[str, dict[str, Operation]] = defaultdict(dict)
    for operation in operations:
        by_path[operation.path][operation.method] = operation
    return [
        Route(path, _endpoint(methods, admission, desk), methods=list(methods), name=path)
        for path, methods in by_path.items()
    ]


def _endpoint(
    methods: Mapping[str, Operation], admission: Admission, desk: Desk
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        operation = methods.get(request.method) or methods["GET"]
        if request.method == "HEAD" and operation.is_endless:
            return problems.respond(HTTPStatus.METHOD_NOT_ALLOWED, "It has no end.", {"allow": "GET"})
        try:
            call = await _call(operation, request, admission)
            answering = operation.handle(desk, call)
            return await (_unless_gone(request, answering) if operation.waits else answering)
        except answers.REFUSALS as refusal:
            return answers.refuse(refusal)

    return answer


async def _unless_gone(request: Request, answering: Coroutine[Any, Any, Response]) -> Response:
    """The answer. When nobody is there to hear it any more, nothing waits for it either."""
    answer, gone = asyncio.create_task(answering), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else Response(status_code=UNHEARD)
    finally:
        answer.cancel()
        gone.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _call(operation: Operation, request: Request, admission: Admission) -> Call:
    """Checked in this order: where it comes from, who sends it, its form."""
    browsers.check_origin(request)
    caller = admission.admit(request, operation.who)
    return Call(
        caller=caller,
        id=id_of(request) if operation.names_one else "",
        query=_query(operation, request),
        headers=_headers(operation, request),
        data=await _data(operation, request),
    )


def id_of(request: Request) -> str:
    """What the path names; none of ours has other characters."""
    given: str = request.path_params["id"]
    if len(given) > MAX_ID_CHARACTERS or not _ID.fullmatch(given):
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is nothing of that name.")
    return given


def _query(operation: Operation, request: Request) -> msgspec.Struct:
    given = request.query_params.multi_items()
    values = dict(given)
    if len(values) < len(given):
        raise errors.InvalidInput(what="The address", why="a part after the question mark is there twice")
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
    browsers.check_type(request)
    body = await read_bytes(request, MAX_BODY_BYTES)
    if not body and not operation.needs_body:
        return {}
    return await read_object(body)


async def read_bytes(request: Request, most_bytes: int) -> bytes:
    """The body. 413 when it is too long, 408 when it does not come."""
    try:
        return await bodies.read_body(request, most_bytes)
    except bodies.TooLarge:
        detail = f"The body is longer than {most_bytes} bytes."
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail) from None
    except TimeoutError:
        detail = f"The body did not come within {bodies.BODY_SECONDS:.0f} seconds."
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, detail, {"connection": "close"}) from None


async def read_object(body: bytes) -> Mapping[str, Any]:
    """The object in a body. InvalidInput for whatever is none, or could be read in more than one way."""
    return await asyncio.to_thread(_object_in, body) if len(body) > LONG_BODY_BYTES else _object_in(body)


def _object_in(body: bytes) -> Mapping[str, Any]:
    data = canonical.read_strict(body)
    if not isinstance(data, Mapping):
        raise errors.InvalidInput(what="The body", why="it is not an object")
    return data


def read_record(kind: type[Record], values: Mapping[str, Any], what: str, *, strict: bool = True) -> Record:
    try:
        return msgspec.convert(values, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise errors.InvalidInput(what=what, why=quoting.clean_text(str(error))) from None
