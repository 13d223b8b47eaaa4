"""Answers that are sent piece by piece, as they come."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from frontdesk.web.operations import Form

STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Stream(StreamingResponse):
    """An answer as it comes. When the client leaves it is ended, and what it read from is closed."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()


async def stream(form: Form, pieces: AsyncGenerator[Any, None]) -> Response:
    """The pieces as they come. What is refused, is so before the first one, with a status of its own."""
    # The head of an answer cannot be taken back, so it is sent when the first piece is there.
    written = _written(form, pieces)
    first = await anext(written, b"")
    return Stream(from_first(first, written), HTTPStatus.OK, STREAM_HEADERS, media_type=form)


async def _written(form: Form, pieces: AsyncGenerator[Any, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        async for piece in pieces:
            match form:
                case Form.LINES:
                    yield msgspec.json.encode(piece) + b"\n"
                case Form.TEXT:
                    yield piece.encode()
                case _:
                    yield piece


async def from_first(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece
