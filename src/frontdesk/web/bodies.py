"""Bodies of requests, read no further than they may be long."""

import asyncio

from starlette.requests import Request

BODY_SECONDS = 60.0


class TooLarge(Exception):
    """The body is longer than the address takes."""


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The body. TooLarge as soon as that is known; TimeoutError when it does not come."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most_bytes:
        raise TooLarge
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for piece in request.stream():
            if len(body) + len(piece) > most_bytes:
                raise TooLarge
            body += piece
    return bytes(body)
