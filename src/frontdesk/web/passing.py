"""Addresses of channels: their requests are read here, and handed to them."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.model.visitors import Need, Visitor
from frontdesk.web import answers, bounds
from frontdesk.web.bodies import read_body
from frontdesk.web.guesses import Guesses, token_in
from frontdesk.web.keeping import SHORT_BODY_BYTES
from frontdesk.web.operations import Operation, Who
from frontdesk.web.pieces import Stream
from frontdesk.web.problems import CHALLENGE

LOOK_AGAIN_SECONDS = 5.0
"""A token that is changed in the settings lets an answer go on for no longer."""
ENDED = "The token does not hold any more. What was asked is done; its answer is in the conversation."

Endpoint = Callable[[Request], Awaitable[Response]]
Visit = Callable[[Request, Operation], Awaitable[Visitor | None]]


class TokenDoor(msgspec.Struct, frozen=True, kw_only=True):
    """What tokens that come to channels are asked of."""

    guesses: Guesses = msgspec.field(default_factory=Guesses)
    visit: Visit | None = None
    """Tells who has a token that the gateway has given out."""


class ChannelSender(msgspec.Struct, eq=False):
    """Whoever sends a request to a channel, as far as they have shown a token."""

    _door: TokenDoor
    _request: Request
    _own: channels.Recognise | None = None
    user: str | None = None
    _looked_at: float = 0.0

    async def find(self, own: channels.Recognise) -> str | None:
        """Who it is, by a token of the channel's own, or of ours. NotAllowed for who may only look, 429 after
        too many wrong ones."""
        self.user, self._looked_at = await self._find(own), time.monotonic()
        self._own = own if self.user is not None and self.user == own() else None
        return self.user

    async def is_in(self) -> bool:
        """Whether whoever was let in still would be. Those whom the channel knows by something else are."""
        if self.user is None:
            return True
        if self._own:
            if time.monotonic() < self._looked_at + LOOK_AGAIN_SECONDS:
                return True
            self._looked_at = time.monotonic()
            return self._own() == self.user
        try:
            return await self._visitor() == self.user
        except errors.NotAllowed:
            return False

    async def _find(self, own: channels.Recognise) -> str | None:
        token = token_in(self._request.headers.getlist("authorization"))
        if not token:
            return None
        guesses = self._door.guesses
        guesses.check(token, self._request)
        user = own()
        if user or self._door.visit is None:
            guesses.count(token, self._request, right=user is not None)
            return user
        return await self._visitor()

    async def _visitor(self) -> str | None:
        assert self._door.visit is not None
        try:
            visitor = await self._door.visit(self._request, TALKING)
        except HTTPException as refusal:
            if refusal.status_code != HTTPStatus.UNAUTHORIZED:
                raise
            return None
        if visitor is None:
            return None
        visitor.require(Need.ACT)
        return visitor.user


def passing(door: TokenDoor, methods: Mapping[str, channels.Route]) -> Endpoint:
    """Hands requests for an address of a channel to it."""

    async def answer(request: Request) -> Response:
        route = methods.get(request.method) or methods["GET"]
        sender = ChannelSender(door, request)
        unread = channels.Request(
            method=request.method,
            path=request.scope["path"],
            params=request.path_params,
            query=dict(request.query_params) if request.scope["query_string"] else {},
            headers=dict(request.headers),
            body=b"",
            client=request.client.host if request.client else None,
            prove=partial(bounds.prove, request.scope),
            visitor=sender.find,
        )
        response = await route.admit(unread) if route.admit else None
        if response is None:
            body = await read_body(request, route.max_body_bytes)
            response = await route.handle(msgspec.structs.replace(unread, body=body))
            if len(body) > SHORT_BODY_BYTES:
                bounds.shorten(request.scope)
        if isinstance(response.body, bytes):
            whole = Response(response.body, response.status, response.headers)
            return await _kept(sender, request, whole, len(response.body))
        if not await sender.is_in():
            raise HTTPException(HTTPStatus.UNAUTHORIZED, ENDED, CHALLENGE)
        if size := response.headers.get("content-length"):
            told = Stream(response.body, response.status, response.headers)
            return await _kept(sender, request, told, int(size))
        return Stream(_while_in(sender, response.body), response.status, response.headers)

    return answer


async def _kept(sender: ChannelSender, request: Request, answer: Response, size: int) -> Response:
    """The answer, with room for it where it is long. What was asked is done by now: who hears that there is
    none is told not to ask the same again by themselves."""
    room = answers.room_of(request.scope)
    if room is None or sender.user is None:
        return answer
    try:
        return await room.keep(sender.user, answer, size)
    except HTTPException as refusal:
        headers = {**(refusal.headers or {}), "x-should-retry": "false"}
        raise HTTPException(refusal.status_code, refusal.detail, headers) from None


async def _while_in(sender: ChannelSender, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """An answer as it comes, for as long as whoever gets it has a token that holds; without its end else."""
    try:
        async for piece in pieces:
            if not await sender.is_in():
                return
            yield piece
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


TALKING = Operation(
    method="POST", path="", handle=ChannelSender.find, summary="", who=Who.VISITOR, need=Need.ACT, answers={}
)
"""What a visitor does who says something through an address of a channel's."""
