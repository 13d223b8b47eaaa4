"""What goes out: completions, chunks and errors in the form of the chat-completions API."""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from frontdesk.contracts import channels
from frontdesk.model import deliveries, events, turns

RETRY_AFTER_SECONDS = 5
DONE = b"data: [DONE]\n\n"
STILL_HERE = b": the turn is not finished\n\n"
"""A comment of the event stream: it keeps the connection, and clients pass it over."""

Json = dict[str, Any]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    status: HTTPStatus
    message: str
    code: str
    type: str = "server_error"
    param: str | None = None
    again: bool = False
    """Whether the client may by itself send the request again: it was not taken in."""

    @property
    def plain(self) -> Json:
        fields = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": fields}


class Completion:
    """The answer to one request, in its various forms."""

    def __init__(self, turn_id: str, model: str, created: datetime, *, shows_usage: bool = False) -> None:
        self._head = {"id": f"chatcmpl-{turn_id}", "created": int(created.timestamp()), "model": model}
        self._shows_usage = shows_usage
        self._used: list[events.Used] = []

    def count(self, used: events.Used) -> None:
        self._used.append(used)

    def whole(self, text: str) -> Json:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self.usage}

    def opening(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def ending(self) -> bytes:
        ending = self._chunk({}, "stop")
        if self._shows_usage:
            ending += event_of(self._chunk_of([], self.usage))
        return ending + DONE

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return event_of(self._chunk_of([choice], None))

    def _chunk_of(self, choices: list[Json], usage: Json | None) -> Json:
        chunk: Json = {**self._head, "object": "chat.completion.chunk", "choices": choices}
        return {**chunk, "usage": usage} if self._shows_usage else chunk

    @property
    def usage(self) -> Json:
        """What the turn used as far as it was seen here; zeros when it ran on another node."""
        taken = sum(used.usage.input_tokens for used in self._used)
        given = sum(used.usage.output_tokens for used in self._used)
        cached = sum(used.usage.cache_read_tokens for used in self._used)
        return {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


def answer_of(found: Sequence[deliveries.Delivery]) -> str:
    """What was said: the replies, or what the gateway said itself when there are none."""
    return "\n\n".join(_replies(found) or [each.text for each in found])


def _replies(found: Sequence[deliveries.Delivery]) -> list[str]:
    return [each.text for each in found if each.kind is deliveries.DeliveryKind.REPLY]


def failure_of(turn: turns.Turn, found: Sequence[deliveries.Delivery]) -> Failure | None:
    """Why a finished turn has no answer; None when it has one, such as what was said before a stop."""
    if turn.state is turns.TurnState.DONE or (turn.state is turns.TurnState.INTERRUPTED and _replies(found)):
        return None
    told = "\n\n".join(each.text for each in found if each.kind is deliveries.DeliveryKind.NOTICE)
    message = told or f"The turn ended as {turn.state}."
    return Failure(status=HTTPStatus.INTERNAL_SERVER_ERROR, message=message, code=str(turn.state))


def event_of(data: Json) -> bytes:
    """A server-sent event."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def respond_json(data: Json, status: int = HTTPStatus.OK) -> channels.Response:
    return channels.Response(
        status=int(status), body=msgspec.json.encode(data), headers={"content-type": "application/json"}
    )


def respond_failure(failure: Failure) -> channels.Response:
    response = respond_json(failure.plain, failure.status)
    return msgspec.structs.replace(response, headers={**response.headers, **failure_headers(failure)})


def turn_header(turn_id: str) -> dict[str, str]:
    return {"x-frontdesk-turn": turn_id}


def failure_headers(failure: Failure | None) -> dict[str, str]:
    """Clients repeat what failed by themselves; a message that was taken in would then be said twice."""
    if failure is None:
        return {}
    if failure.status == HTTPStatus.UNAUTHORIZED:
        return {"www-authenticate": "Bearer"}
    return {"retry-after": str(RETRY_AFTER_SECONDS)} if failure.again else {"x-should-retry": "false"}
