"""Addresses of channels: their requests are read here, and handed to them."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from frontdesk.contracts import channels
from frontdesk.model.visitors import Need, Visitor
from frontdesk.web import bounds
from frontdesk.web.bodies import read_body
from frontdesk.web.guesses import Guesses, token_in
from frontdesk.web.operations import Operation, Who
from frontdesk.web.pieces import Stream

Endpoint = Callable[[Request], Awaitable[Response]]
Visit = Callable[[Request, Operation], Awaitable[Visitor | None]]


class TokenDoor(msgspec.Struct, frozen=True, kw_only=True):
    """What tokens that come to channels are asked of."""

    guesses: Guesses = msgspec.field(default_factory=Guesses)
    visit: Visit | None = None
    """Tells who has a token that the gateway has given out."""


def passing(door: TokenDoor, methods: Mapping[str, channels.Route]) -> Endpoint:
    """Hands requests for an address of a channel to it."""

    async def answer(request: Request) -> Response:
        route = methods.get(request.method) or methods["GET"]
        unread = channels.Request(
            method=request.method,
            path=request.url.path,
            params=request.path_params,
            query=dict(request.query_params),
            headers=dict(request.headers),
            body=b"",
            client=request.client.host if request.client else None,
            prove=partial(bounds.prove, request.scope),
            visitor=partial(_visitor, door, request),
        )
        response = await route.admit(unread) if route.admit else None
        if response is None:
            body = await read_body(request, route.max_body_bytes)
            response = await route.handle(msgspec.structs.replace(unread, body=body))
            bounds.shorten(request.scope)
        if isinstance(response.body, bytes):
            return Response(response.body, response.status, response.headers)
        return Stream(response.body, response.status, response.headers)

    return answer


async def _visitor(door: TokenDoor, request: Request, own: channels.Recognise) -> str | None:
    """Who sends a request for a channel with a token of its own, or of ours. NotAllowed for who may only
    look, 429 after too many wrong ones."""
    token = token_in(request.headers.getlist("authorization"))
    if not token:
        return None
    door.guesses.check(token, request)
    if user := own():
        door.guesses.count(token, request, right=True)
        return user
    if door.visit is None:
        door.guesses.count(token, request, right=False)
        return None
    try:
        visitor = await door.visit(request, TALKING)
    except HTTPException as refusal:
        if refusal.status_code != HTTPStatus.UNAUTHORIZED:
            raise
        return None
    if visitor is None:
        return None
    visitor.require(Need.ACT)
    return visitor.user


TALKING = Operation(
    method="POST", path="", handle=_visitor, summary="", who=Who.VISITOR, need=Need.ACT, answers={}
)
"""What a visitor does who says something through an address of a channel's."""
