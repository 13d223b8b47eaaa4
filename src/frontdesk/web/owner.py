"""The owner's socket: talking to the agent, and the office, over HTTP for our own user alone."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, TypeVar, get_type_hints

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from frontdesk import errors
from frontdesk.app import sockets
from frontdesk.app.gateway import Gateway
from frontdesk.app.office import Office
from frontdesk.app.terminal import CLI, Plain, Terminal
from frontdesk.formats.bodies import read_json
from frontdesk.logs import get_logger
from frontdesk.web import bodies, problems, routes
from frontdesk.web.doors import Door

MAX_BODY_BYTES = 8 * 1024 * 1024
LINES = "application/x-ndjson"

log = get_logger(__name__)

Read = TypeVar("Read")
Ask = Callable[..., Awaitable[Any]]


class OwnerProtocol(HttpToolsProtocol):
    """HTTP for processes of our own user; others are cut off before they say anything."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not sockets.is_own(transport.get_extra_info("socket")):
            log.warning("owner_socket_refused")
            transport.abort()


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    chat: str = CLI
    event_id: str | None = None
    follow: bool = False
    """Whether the answer is the stream of what happens, from the first moment on."""


class Collected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ids: list[str]
    chat: str = CLI


def make_app(gateway: Gateway) -> ASGIApp:
    counter = Counter(Terminal.of_gateway(gateway), Office.of_gateway(gateway))
    app = Starlette(
        routes=[
            Route("/", counter.greet),
            Route("/messages", counter.take_message, methods=["POST"]),
            Route("/turns/{turn_id}/events", counter.follow_turn),
            Route("/uncollected", counter.list_uncollected),
            Route("/collected", counter.note_collected, methods=["POST"]),
            Route("/titles", counter.list_titles),
            Route("/office/export_session", counter.export_session, methods=["POST"]),
            Route("/office/{method}", counter.ask_office, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: routes.refuse,
            errors.FrontdeskError: refuse,
            bodies.TooLarge: refuse_length,
            Exception: routes.apologise,
        },
    )
    return Door(app)


async def refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, errors.FrontdeskError)
    return problems.respond_error(error)


async def refuse_length(request: Request, error: Exception) -> Response:  # noqa: ARG001
    detail = f"The body is longer than {MAX_BODY_BYTES} bytes."
    return problems.respond(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


class Counter:
    def __init__(self, terminal: Terminal, office: Office) -> None:
        self._terminal = terminal
        self._office = office

    async def greet(self, request: Request) -> Response:  # noqa: ARG002
        return _json({"program": "frontdesk"})

    async def take_message(self, request: Request) -> Response:
        message = await _read(request, Message)
        if not message.follow:
            return _json(await self._terminal.accept(message.text, message.chat, message.event_id))
        happening = self._terminal.say(message.text, message.chat, message.event_id)
        return await _stream(_lines(happening), LINES)

    async def follow_turn(self, request: Request) -> Response:
        return await _stream(_lines(self._terminal.follow(request.path_params["turn_id"])), LINES)

    async def list_uncollected(self, request: Request) -> Response:
        return _json(await self._terminal.uncollected(request.query_params.get("chat", CLI)))

    async def note_collected(self, request: Request) -> Response:
        seen = await _read(request, Collected)
        await self._terminal.collected(seen.ids, seen.chat)
        return _json({})

    async def list_titles(self, request: Request) -> Response:
        return _json(await self._terminal.titles(request.query_params.get("chat", CLI)))

    async def export_session(self, request: Request) -> Response:
        arguments = await _read(request, arguments_of(Office.export_session))
        pieces = self._office.export_session(**msgspec.structs.asdict(arguments))
        return await _stream(_encoded(pieces), "text/plain; charset=utf-8")

    async def ask_office(self, request: Request) -> Response:
        method = request.path_params["method"]
        if method not in QUESTIONS:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        ask: Ask = getattr(self._office, method)
        arguments = await _read(request, QUESTIONS[method])
        return _json(await ask(**msgspec.structs.asdict(arguments)))


def arguments_of(method: Callable[..., object]) -> type[msgspec.Struct]:
    """The arguments of a method of the office as a record."""
    hints = get_type_hints(method)
    _, *parameters = inspect.signature(method).parameters.values()
    fields = [
        (each.name, hints[each.name])
        if each.default is each.empty
        else (each.name, hints[each.name], each.default)
        for each in parameters
    ]
    return msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True, kw_only=True)


QUESTIONS = {
    name: arguments_of(method)
    for name, method in vars(Office).items()
    if inspect.iscoroutinefunction(method) and not name.startswith("_")
}
"""What the office can be asked, with the arguments of each question."""


async def _read(request: Request, kind: type[Read]) -> Read:
    return read_json(kind, await bodies.read_body(request, MAX_BODY_BYTES) or b"{}")


async def _lines(happening: AsyncGenerator[Plain, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(happening):
        async for happened in happening:
            yield msgspec.json.encode(happened) + b"\n"


async def _encoded(pieces: AsyncGenerator[str, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece.encode()


async def _stream(pieces: AsyncGenerator[bytes, None], kind: str) -> Response:
    """The pieces as they come. What is refused, is so before the first one, with a status of its own."""
    first = await anext(pieces, b"")
    return routes.Stream(_from(first, pieces), HTTPStatus.OK, {"content-type": kind})


async def _from(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


def _json(data: object) -> Response:
    return Response(msgspec.json.encode(data), media_type="application/json")
