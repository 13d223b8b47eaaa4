"""Answers without an end, which are written whenever there is something to say. In between they are nobody's
task: of the request nothing is left but its connection."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from frontdesk.web import bounds
from frontdesk.web.operations import Form
from frontdesk.web.pieces import STREAM_HEADERS, Stream, from_first

KEPT = ("type", "method", "path", "root_path", "query_string", "headers", "client", "server", "scheme")


def kept(request: Request) -> Request:
    """What somebody asked, and nothing of how it is answered: for as long as an answer without an end."""
    return Request({name: request.scope[name] for name in KEPT if name in request.scope})


class PushedConnection(Protocol):
    """Where an answer goes on that is under way."""

    @property
    def can_be_taken_over(self) -> bool:
        """Whether nothing else is asked on it."""

    def take_over(self, left: Callable[[], None]) -> bool:
        """Whoever answers is done, and writes from now on; ``left`` is called when nobody reads any more.
        False when that is so already."""

    def push(self, data: bytes) -> None:
        """Write a piece of the answer."""

    def end(self) -> None:
        """It was all."""


class Pushed(ABC):
    """What an answer without an end says."""

    __slots__ = ()

    @abstractmethod
    async def open(self) -> bytes:
        """The first piece. What is refused, is so here."""

    @abstractmethod
    def push_to(self, connection: PushedConnection) -> None:
        """From now on each piece is pushed."""

    @abstractmethod
    def left(self) -> None:
        """Nobody hears it any more."""

    @abstractmethod
    def pieces(self) -> AsyncGenerator[bytes, None]:
        """The same in pieces, where it cannot be pushed."""


class PushedAnswer(Response):
    """The head and the first piece; then whoever has something to say pushes it."""

    def __init__(self, first: bytes, said: Pushed, whole: Stream) -> None:
        self._first = first
        self._said = said
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: PushedConnection | None = scope.get(bounds.CONNECTION)
        if connection is None or not connection.can_be_taken_over:
            await self._whole(scope, receive, send)
            return
        head = {"type": "http.response.start", "status": self._whole.status_code}
        await send({**head, "headers": self._whole.raw_headers})
        await send({"type": "http.response.body", "body": self._first, "more_body": True})
        if connection.take_over(self._said.left):
            self._said.push_to(connection)
        else:
            self._said.left()


async def push(form: Form, said: Pushed) -> Response:
    """The answer that goes on with what is said."""
    first = await said.open()
    pieces = from_first(first, said.pieces())
    return PushedAnswer(first, said, Stream(pieces, headers=STREAM_HEADERS, media_type=form))
