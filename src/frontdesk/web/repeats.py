"""Idempotency keys: whatever changes something can be sent again with the same key, and happens once."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from frontdesk import errors
from frontdesk.contracts.clock import Clock
from frontdesk.model import repeats
from frontdesk.model.repeats import KeyedCall
from frontdesk.stores.keyed import KeyedCalls
from frontdesk.web import problems
from frontdesk.web.operations import KEY_HEADER, Form, Operation

if TYPE_CHECKING:
    from frontdesk.web.endpoints import HttpCall

REPEATED = {"idempotent-replayed": "true"}
"""The header of an answer that was given before."""
MOST_KEPT_BYTES = 4 * 1024
"""Of an answer: with the bound on keys, what one sender makes us keep."""

CarryOut = Callable[[], Awaitable[Response]]


class RepeatedCalls(msgspec.Struct, frozen=True):
    """Carries requests out that have a key: claimed first, with a short answer kept for a day."""

    calls: KeyedCalls
    clock: Clock

    async def once(self, operation: Operation, call: "HttpCall", carry_out: CarryOut) -> Response:
        """The answer of the first request with its key. KeyReused when that asked for something else,
        OutcomeUnknown when nobody knows what became of it."""
        if call.key is None or not operation.is_keyed:
            return await carry_out()
        asked = _keyed(call, call.key)
        known = await self.calls.claim(asked, self.clock.now())
        if known is not None:
            if known.request != asked.request:
                raise errors.KeyReused()
            if known.status is not None:
                return _again(known)
            # Where it happens once by itself, it is simply asked again.
            if not operation.once_by_key:
                raise errors.OutcomeUnknown()
        return await self._carry_out(operation, asked, carry_out)

    async def _carry_out(self, operation: Operation, asked: KeyedCall, carry_out: CarryOut) -> Response:
        try:
            response = await carry_out()
        except errors.StoreError:
            raise  # it may have been written: nobody knows
        except problems.REFUSALS:
            await self.calls.drop(asked.id)
            raise
        kept = operation.keeps_answer and len(response.body) <= MOST_KEPT_BYTES
        await self.calls.answer(asked.id, response.status_code, bytes(response.body) if kept else None)
        return response


def _keyed(call: "HttpCall", key: str) -> KeyedCall:
    request = call.request
    address = f"{request.url.path}?{request.url.query}"
    body = msgspec.json.encode(call.data, order="deterministic")
    return KeyedCall(
        id=repeats.call_id(call.caller.id, key),
        request=repeats.request_digest(request.method, address, body),
    )


def _again(known: KeyedCall) -> Response:
    assert known.status is not None
    if known.answer is None:
        raise errors.AnswerNotKept()
    return Response(known.answer, HTTPStatus(known.status), REPEATED, media_type=Form.JSON)


def key_in(headers: list[str]) -> str | None:
    """The key that came with a request, if one did. InvalidInput."""
    if not headers:
        return None
    (key, *more) = headers
    if more or not 0 < len(key) <= repeats.MAX_KEY_CHARACTERS or not key.isprintable():
        why = f"send one of 1 to {repeats.MAX_KEY_CHARACTERS} visible characters"
        raise errors.InvalidInput(what=KEY_HEADER, why=why)
    return key
