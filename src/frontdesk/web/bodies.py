"""Bodies of requests, read no further and no longer than they may be: whole, or piece by piece where they are
files."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from frontdesk.web import bounds
from frontdesk.web.keeping import SHORT_BODY_BYTES

BODY_SECONDS = 60.0
UPLOAD = "frontdesk.upload"
"""Where the scope of a request has it."""
UPLOAD_SECONDS = 900.0
FULL_SECONDS = 5
FULL = "Too many long requests are under way. Send this one again when others are answered."
LATE_SECONDS = 0.1
"""A body that takes longer may have been waited for: what was known of its sender before does not count."""
VISITED = "frontdesk.visited"
"""Where the scope of a request has who sent it, once that was looked up."""
PIECE_SECONDS = 30.0
PIECE_BYTES = 64 * 1024
PASSED_OVER_BYTES = 32 * 1024 * 1024
PASSED_OVER_SECONDS = 60.0
"""Of a body that nobody wants any more: browsers hear an answer only when they have sent everything."""


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The body, read no further than it may be long. 413 when it is too long, 408 when it does not come, 503
    when too much of other bodies is kept."""
    said = request.headers.get("content-length", "")
    declared = int(said) if said.isdecimal() else most_bytes
    if declared > most_bytes:
        raise _too_large(most_bytes)
    body, has_room = bytearray(), declared <= SHORT_BODY_BYTES
    began = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                if len(body) + len(piece) > most_bytes:
                    raise _too_large(most_bytes)
                if not has_room and len(body) + len(piece) > SHORT_BODY_BYTES:
                    await _take_room(request, declared)
                    has_room = True
                body += piece
    except TimeoutError:
        detail = f"The body did not come within {BODY_SECONDS:.0f} seconds."
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, detail, {"connection": "close"}) from None
    if len(body) > SHORT_BODY_BYTES:  # what is no longer has taken no room
        bounds.shorten(request.scope, len(body))
    if asyncio.get_running_loop().time() - began > LATE_SECONDS:
        look_anew(request)
    return bytes(body)


def look_anew(request: Request) -> None:
    """Whoever sent it is looked up again, however lately that was done."""
    request.scope.pop(VISITED, None)


async def _take_room(request: Request, size: int) -> None:
    try:
        await bounds.take_room(request.scope, size)
    except TimeoutError:
        headers = {"connection": "close", "retry-after": str(FULL_SECONDS)}
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, FULL, headers) from None


def _too_large(most_bytes: int) -> HTTPException:
    return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is longer than {most_bytes} bytes.")


class UploadedBody:
    """A body whose bytes are read by the function of its row."""

    def __init__(self, request: Request, check_again: Callable[[], Awaitable[object]]) -> None:
        """``check_again`` refuses whoever would not be let in any more when all has come."""
        self._request = request
        self._check_again = check_again
        self._until = asyncio.get_running_loop().time() + UPLOAD_SECONDS
        self._is_over = False

    @property
    def size(self) -> int | None:
        """How long the sender says that it is."""
        said = self._request.headers.get("content-length", "")
        return int(said) if said.isascii() and said.isdecimal() else None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The bytes, many at a time. 408 when they do not come, ClientDisconnect when their sender leaves."""
        gathered = b""
        while not self._is_over:
            gathered += await self._next()
            if len(gathered) >= PIECE_BYTES:
                yield gathered
                gathered = b""
        look_anew(self._request)
        await self._check_again()
        if gathered:
            yield gathered

    async def pass_over(self) -> None:
        """Read what is left of it, as far as that is not too much and comes soon."""
        if (self.size or 0) > PASSED_OVER_BYTES:
            return
        passed = 0
        self._until = min(self._until, asyncio.get_running_loop().time() + PASSED_OVER_SECONDS)
        with suppress(HTTPException, ClientDisconnect):  # the answer is on its way, heard or not
            while not self._is_over and passed <= PASSED_OVER_BYTES:
                passed += len(await self._next())

    async def _next(self) -> bytes:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(now + PIECE_SECONDS, self._until)):
                message = await self._request.receive()
        except TimeoutError:
            self._is_over = True
            detail = "The file did not come in time."
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, detail, {"connection": "close"}) from None
        if message["type"] == "http.disconnect":
            self._is_over = True
            raise ClientDisconnect
        self._is_over = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body
