"""Answers to those who have shown a credential: how many are made at a time for each of them, and how much of
them lies ready that nobody has read yet."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from frontdesk.web import bounds, keeping
from frontdesk.web.keeping import KeptBodies

AT_ONCE = 4
"""So many are made for one sender at a time, and as many go on piece by piece; others of theirs wait."""
LONG_BYTES = 256 * 1024
"""A shorter one never waits for room."""
KEPT_BYTES = 256 * 1024 * 1024
"""Of all long ones that are not read yet; one sender has a part of it, or a single one."""
LATER_SECONDS = 5
FULL = "Too many long answers of yours are not read yet. Ask again when others are."

Piece = TypeVar("Piece")


class Slots:
    """So many at a time for each sender, one after the other."""

    def __init__(self) -> None:
        self._free: dict[str, asyncio.Semaphore] = {}
        self._wanted: Counter[str] = Counter()

    @asynccontextmanager
    async def one(self, sender: str, seconds: float | None = None) -> AsyncIterator[None]:
        """For as long as the block lasts. 503 when none is free in time."""
        free = self._free.setdefault(sender, asyncio.Semaphore(AT_ONCE))
        self._wanted[sender] += 1
        try:
            try:
                async with asyncio.timeout(seconds):
                    await free.acquire()
            except TimeoutError:
                raise _later() from None
            try:
                yield
            finally:
                free.release()
        finally:
            self._wanted[sender] -= 1
            if not self._wanted[sender]:
                del self._wanted[sender], self._free[sender]


class AnswerRoom:
    """The answers of one port."""

    def __init__(self) -> None:
        self._kept = KeptBodies(KEPT_BYTES)
        self._made = Slots()
        self._told = Slots()

    @asynccontextmanager
    async def making(self, sender: str) -> AsyncIterator[None]:
        """While an answer is made, and waits for room: others of the same sender are made after it."""
        async with self._made.one(sender):
            yield

    async def telling(self, sender: str, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
        """What is answered piece by piece, from something that is held until the last was read. 503 when too
        many of the sender's are."""
        async with aclosing(pieces), self._told.one(sender, keeping.WAITING_SECONDS):
            async for piece in pieces:
                yield piece

    async def keep(self, sender: str, answer: Response, size: int) -> Response:
        """The answer, with room for as long as it is not read. 503 when there is none in time."""
        if size <= LONG_BYTES:
            return answer
        kept = RoomyAnswer(answer, self._kept)
        try:
            await self._kept.take(kept, sender, size)
        except TimeoutError:
            raise _later() from None
        return kept


class RoomyAnswer(Response):
    """A long answer: it has room until nearly all of it was read, or whoever asked has left."""

    def __init__(self, answer: Response, room: KeptBodies) -> None:
        self._answer = answer
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_on(message: Any) -> None:
            is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if is_last and message.get("body"):
                # What is sent next waits until this was read.
                await send({**message, "more_body": True})
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        try:
            await self._answer(scope, receive, send_on)
        finally:
            self._room.let_go(self)


def room_of(scope: Mapping[str, Any]) -> AnswerRoom | None:
    """That of the port which a request came to."""
    connection = scope.get(bounds.CONNECTION)
    return connection.answers if connection else None


def _later() -> HTTPException:
    return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, FULL, {"retry-after": str(LATER_SECONDS)})
