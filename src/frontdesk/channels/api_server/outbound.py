"""What goes out: completions, chunks and errors in the form of the chat-completions API."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.channels.api_server import shapes
from frontdesk.contracts import channels
from frontdesk.contracts.ticks import Ticker, Waker, with_ticks
from frontdesk.logs import get_logger
from frontdesk.model import deliveries, events, turns
from frontdesk.model.sources import SessionSource

log = get_logger(__name__)

RETRY_AFTER_SECONDS = 5
DONE = b"data: [DONE]\n\n"
STILL_HERE = b": the turn is not finished\n\n"
"""A comment of the event stream: it keeps the connection, and clients pass it over."""

Json = dict[str, Any]

STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}

Step = TypeVar("Step")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    status: HTTPStatus
    message: str
    code: str
    type: str = "server_error"
    param: str | None = None
    again: bool = False
    """Whether the client may by itself send the request again: it was not taken in."""
    is_outcome: bool = False
    """Whether it is what became of the turn."""

    @property
    def form(self) -> shapes.ErrorForm:
        return shapes.ErrorForm(
            error=shapes.ErrorFacts(message=self.message, type=self.type, param=self.param, code=self.code)
        )


class AnswerForm(Protocol):
    """An answer in the form of one API."""

    hint: str
    """How a client that was cut off gets it."""

    def count(self, used: events.Used) -> None:
        """A call to the model used so much."""

    def whole(self, text: str, turn: turns.Turn) -> object: ...

    def opening(self) -> bytes:
        """How a stream begins."""

    def piece(self, text: str) -> bytes: ...

    def ending(self, text: str, turn: turns.Turn) -> bytes:
        """How a stream ends that has brought this text."""

    def failing(self, failure: Failure, turn: turns.Turn | None) -> bytes:
        """How a stream ends that brings no answer."""


class Completion(AnswerForm):
    """A chat completion."""

    hint = "the same request with the same Idempotency-Key gets its answer"

    def __init__(self, turn_id: str, model: str, created: datetime, *, shows_usage: bool = False) -> None:
        self._head: Json = {"id": f"chatcmpl-{turn_id}", "created": int(created.timestamp()), "model": model}
        self._shows_usage = shows_usage
        self._used: list[events.Used] = []

    def count(self, used: events.Used) -> None:
        self._used.append(used)

    def whole(self, text: str, turn: turns.Turn) -> shapes.ChatCompletion:  # noqa: ARG002
        choice = shapes.CompletionChoice(message=shapes.CompletionMessage(content=text))
        return shapes.ChatCompletion(**self._head, choices=[choice], usage=self.usage)

    def opening(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def ending(self, text: str, turn: turns.Turn) -> bytes:  # noqa: ARG002
        ending = self._chunk({}, "stop")
        if self._shows_usage:
            ending += event_of(self._chunk_of([], self.usage))
        return ending + DONE

    def failing(self, failure: Failure, turn: turns.Turn | None) -> bytes:  # noqa: ARG002
        return event_of(failure.form)

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return event_of(self._chunk_of([choice], None))

    def _chunk_of(self, choices: list[Json], usage: shapes.CompletionUsage | None) -> Json:
        chunk: Json = {**self._head, "object": "chat.completion.chunk", "choices": choices}
        return {**chunk, "usage": usage} if self._shows_usage else chunk

    @property
    def usage(self) -> shapes.CompletionUsage:
        """What the turn used as far as it was seen here; zeros when it ran on another node."""
        taken, given, cached = count_tokens(self._used)
        return shapes.CompletionUsage(
            prompt_tokens=taken,
            completion_tokens=given,
            total_tokens=taken + given,
            prompt_tokens_details=shapes.CachedTokens(cached_tokens=cached),
        )


def count_tokens(used: Sequence[events.Used]) -> tuple[int, int, int]:
    """How many a model read, wrote, and had read before."""
    calls = [each.usage for each in used]
    taken, given = sum(each.input_tokens for each in calls), sum(each.output_tokens for each in calls)
    return taken, given, sum(each.cache_read_tokens for each in calls)


def answer_of(found: Sequence[deliveries.Delivery]) -> str:
    """What was said: the replies, or what the gateway said itself when there are none."""
    return "\n\n".join(_replies(found) or [each.text for each in found])


def _replies(found: Sequence[deliveries.Delivery]) -> list[str]:
    return [each.text for each in found if each.kind is deliveries.DeliveryKind.REPLY]


def failure_of(turn: turns.Turn, found: Sequence[deliveries.Delivery]) -> Failure | None:
    """Why a finished turn has no answer; None when it has one, such as what was said before a stop."""
    if turn.state in (turns.TurnState.DONE, turns.TurnState.SILENT):
        return None
    if turn.state is turns.TurnState.INTERRUPTED and _replies(found):
        return None
    told = "\n\n".join(each.text for each in found if each.kind is deliveries.DeliveryKind.NOTICE)
    message = told or f"The turn ended as {turn.state}."
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return Failure(status=status, message=message, code=str(turn.state), is_outcome=True)


def event_of(data: object) -> bytes:
    """A server-sent event."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def respond_json(data: object, status: int = HTTPStatus.OK) -> channels.Response:
    return channels.Response(
        status=int(status), body=msgspec.json.encode(data), headers={"content-type": "application/json"}
    )


def respond_failure(failure: Failure) -> channels.Response:
    response = respond_json(failure.form, failure.status)
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


class Reply:
    """A client that goes away ends its reply, not its turn: the answer stays to be collected."""

    def __init__(
        self,
        desk: channels.Desk,
        source: SessionSource,
        receipt: channels.Receipt,
        form: AnswerForm,
        wait_seconds: float,
    ) -> None:
        self._desk = desk
        self._source = source
        self._receipt = receipt
        self._form = form
        self._wait_seconds = wait_seconds
        self._streams = False
        self._said = ""
        self._missed = False
        self._found: list[deliveries.Delivery] = []
        self._turn: turns.Turn | None = None
        self._failure: Failure | None = None

    async def whole(self) -> channels.Response:
        """The answer in one piece, once the turn is finished."""
        async for _ in self._pieces():
            pass
        failure, turn = self._failure, self._turn
        if failure is None and turn is not None:
            body = msgspec.json.encode(self._form.whole(answer_of(self._found) or self._said, turn))
        else:
            failure = failure or self._unfinished("and this node stops")
            body = msgspec.json.encode(failure.form)
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        headers |= turn_header(self._receipt.turn_id) | failure_headers(failure)
        status = failure.status if failure else HTTPStatus.OK
        return channels.Response(status=int(status), body=self._once(body), headers=headers)

    def stream(self) -> channels.Response:
        """The answer as it comes."""
        self._streams = True
        headers = STREAM_HEADERS | turn_header(self._receipt.turn_id)
        return channels.Response(status=int(HTTPStatus.OK), body=self._events(), headers=headers)

    async def _once(self, body: bytes) -> AsyncIterator[bytes]:
        yield body
        await self._mark_collected()

    async def _events(self) -> AsyncIterator[bytes]:
        yield self._form.opening()
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                yield STILL_HERE if piece is None else self._form.piece(piece)
        rest = None if self._failure else self._rest()
        if rest is None or self._turn is None:
            failure = self._failure or self._torn("was not streamed as it was answered in the end")
            yield self._form.failing(failure, self._turn)
        else:
            last = self._form.piece(rest) if rest else b""
            yield last + self._form.ending(self._said + rest, self._turn)
        if self._failure or rest is not None:
            await self._mark_collected()

    def _rest(self) -> str | None:
        """What belongs to the answer and was not streamed: all of it, when the turn ran elsewhere.

        None when what was streamed neither ends with the answer nor begins it.
        """
        answer, said = answer_of(self._found), self._said.lstrip()
        if not self._missed and said.rstrip().endswith(answer.strip()):
            return ""
        return answer[len(said) :] if answer.startswith(said) else None

    async def _pieces(self) -> AsyncGenerator[str | None, None]:
        """What is said while the turn runs, None where it is quiet. At the end the outcome is known."""
        steps = watch(self._desk.follow(self._receipt.turn_id), self._wait_seconds)
        try:
            async with aclosing(steps):
                async for step in steps:
                    match step:
                        case events.Text(text=text) if text:
                            self._said += text
                            yield text
                        case None:
                            yield None
                        case events.Restarted() if self._streams and self._said:
                            self._failure = self._torn("failed in the middle and is tried again")
                            return
                        case turns.Turn():
                            self._turn = step
                        case _:
                            self._note_step(step)
            await self._settle(self._turn)
        except TimeoutError:
            self._failure = self._unfinished(f"after {self._wait_seconds:g} seconds")
        except errors.StoreError as error:
            log.warning("api_answer_unreachable", turn=self._receipt.turn_id, why=error)
            self._failure = self._unfinished("as far as we can see: the store does not answer")

    def _note_step(self, step: events.Event) -> None:
        match step:
            case events.Used():
                self._form.count(step)
            case events.Restarted():
                self._said = ""
            case events.Missed():
                self._missed = True

    async def _settle(self, turn: turns.Turn | None) -> None:
        if turn is None:
            self._failure = self._unfinished("and this node stops")
            return
        self._found = await self._answers()
        self._failure = failure_of(turn, self._found)

    async def _answers(self) -> list[deliveries.Delivery]:
        if self._receipt.repeated:
            return await self._desk.answers(self._receipt.turn_id)
        return await self._desk.uncollected(self._source, turn_id=self._receipt.turn_id)

    def _unfinished(self, when: str) -> Failure:
        return Failure(
            status=HTTPStatus.GATEWAY_TIMEOUT,
            message=f"Turn {self._receipt.turn_id} is not finished {when}. It goes on: {self._form.hint}.",
            code="turn_not_finished",
        )

    async def _mark_collected(self) -> None:
        waiting = [each.id for each in self._found if each.state is not deliveries.DeliveryState.SENT]
        await mark_collected(self._desk, waiting)

    def _torn(self, what: str) -> Failure:
        return Failure(
            status=HTTPStatus.INTERNAL_SERVER_ERROR,
            message=f"Turn {self._receipt.turn_id} {what}: what was streamed is not its answer. It goes on: "
            f"{self._form.hint}.",
            code="stream_torn",
        )


async def mark_collected(desk: channels.Desk, waiting: Sequence[str]) -> None:
    """The answer has been handed to the connection. Who left before is cut off at the first wait."""
    await asyncio.sleep(0)
    if waiting:
        # A client that has everything may hang up before this is written down.
        await asyncio.shield(asyncio.ensure_future(_note(desk, waiting)))


async def _note(desk: channels.Desk, waiting: Sequence[str]) -> None:
    try:
        await desk.collected(waiting)
    except errors.StoreError as error:
        log.warning("api_collection_not_noted", deliveries=len(waiting), why=error)


async def watch(
    steps: AsyncIterator[Step], wait_seconds: float, ticks: Ticker | None = None
) -> AsyncGenerator[Step | None, None]:
    """Each step as it comes, and None whenever there was none for a while. TimeoutError after the wait."""
    loop, waker = asyncio.get_running_loop(), Waker()
    deadline = loop.time() + wait_seconds
    ending = loop.call_at(deadline, waker.ring)
    try:
        async with aclosing(with_ticks(steps, waker, ticks)) as ticking:
            async for step in ticking:
                if step is None and loop.time() >= deadline:
                    raise TimeoutError
                yield step
    finally:
        ending.cancel()
