"""A client of chat-completions endpoints: streams an answer, within bounds, and tries again while it may."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from http import HTTPStatus
from typing import Any, TypeVar

import httpx
import msgspec

from frontdesk import errors
from frontdesk.formats import completions, http, quoting, sse
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

MAX_CONNECTIONS = 1000
MAX_ERROR_BYTES = 64 * 1024
MAX_RETRY_AFTER_SECONDS = 60.0
MAX_BACKOFF_SECONDS = 30.0
DRAIN_SECONDS = 0.05
STREAM = "text/event-stream"
CREDENTIALS = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
PASSING = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
NO_QUOTA = "insufficient_quota"
BLAMES: Mapping[type[errors.FrontdeskError], str] = {
    errors.EndpointBusy: "the model takes no more requests for now; try again later",
    errors.EndpointTroubled: "the model's endpoint is in trouble; try again later",
    errors.EndpointUnavailable: "the model does not answer",
    errors.EndpointRefused: "the model's endpoint refused the request",
    errors.BrokenStream: "the model's answer cannot be read",
    errors.MissingSecret: "the agent lacks a secret that it needs",
}
BROKE_DOWN = "the agent broke down"

Value = TypeVar("Value")


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    connect_seconds: float = 10.0
    silence_seconds: float = 120.0
    """The longest time without a byte."""
    request_seconds: float = 900.0
    """The longest time of a request in all."""
    retries: int = 3
    backoff_seconds: float = 1.0
    """The first wait before another try; each further one is twice as long."""


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of an endpoint, whose address is that of its API: ``https://host/v1``."""

    base_url: str
    body: Mapping[str, Any]
    token: str | None = None
    headers: Mapping[str, str] = {}
    token_setting: str = "api_key_env or api_key_file"

    @property
    def endpoint(self) -> str:
        return label(self.base_url)


def label(base_url: str) -> str:
    """The address's host and port, as messages name it."""
    try:
        return httpx.URL(base_url).netloc.decode("ascii") or "the endpoint"
    except httpx.InvalidURL:
        return "the endpoint"


class ChatClient:
    def __init__(self, bounds: Bounds, *, trust_env: bool, max_idle_connections: int = 20) -> None:
        """``trust_env``: heed the machine's proxy and certificate settings."""
        self._bounds = bounds
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(bounds.silence_seconds, connect=bounds.connect_seconds),
            limits=httpx.Limits(
                max_connections=MAX_CONNECTIONS, max_keepalive_connections=max_idle_connections
            ),
            trust_env=trust_env,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def answer(self, request: ChatRequest) -> AsyncGenerator[str | completions.AnswerBuilder]:
        """The pieces of the text as they come, and at the end the whole answer.

        Tried again while no piece was given. Raises EndpointUnavailable, EndpointRefused or BrokenStream.
        Closing the iterator closes the connection.
        """
        for attempt in range(self._bounds.retries + 1):
            given = False
            try:
                async with aclosing(self._attempt(request)) as pieces:
                    async for piece in pieces:
                        given = True
                        yield piece
                return
            except errors.EndpointUnavailable as error:
                wait_seconds = self._wait_seconds(error, attempt)
                if given or wait_seconds is None:
                    raise
                log.warning("endpoint_retried", error=str(error), wait_seconds=round(wait_seconds, 3))
            await asyncio.sleep(wait_seconds)

    def _wait_seconds(self, error: errors.EndpointUnavailable, attempt: int) -> float | None:
        """How long to wait for another try, if there is to be one."""
        if attempt >= self._bounds.retries:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= MAX_RETRY_AFTER_SECONDS else None
        longest = min(self._bounds.backoff_seconds * 2**attempt, MAX_BACKOFF_SECONDS)
        return random.uniform(longest / 2, longest)

    async def _attempt(self, request: ChatRequest) -> AsyncGenerator[str | completions.AnswerBuilder]:
        answer = completions.AnswerBuilder(request.endpoint)
        try:
            async with aclosing(self._data(request)) as stream:
                async for data in stream:
                    if data.strip() == completions.END:
                        # The end of what is finished is read, so that the connection can be used again.
                        with suppress(TimeoutError, errors.AgentFailed):
                            async with asyncio.timeout(DRAIN_SECONDS):
                                await anext(stream, None)
                        answer.finish_reason = answer.finish_reason or "stop"
                        break
                    chunk = completions.read_chunk(data, request.endpoint)
                    _check_chunk(chunk, request)
                    if text := answer.add(chunk):
                        yield text
        except errors.EndpointUnavailable:
            if answer.finish_reason is None:
                raise
        if answer.finish_reason is None:
            raise errors.EndpointUnavailable(endpoint=request.endpoint, why="the answer was cut off")
        yield answer

    async def _data(self, request: ChatRequest) -> AsyncGenerator[str]:
        """The data of each event."""
        reader = sse.SseReader(request.endpoint)
        deadline = asyncio.get_running_loop().time() + self._bounds.request_seconds
        response = await _in_time(self._send(request), deadline, request.endpoint)
        try:
            await _check_response(response, request, deadline)
            async with aclosing(_pieces(response)) as pieces:
                while piece := await _in_time(anext(pieces, b""), deadline, request.endpoint):
                    for data in reader.feed(piece):
                        yield data
        finally:
            await response.aclose()

    async def _send(self, request: ChatRequest) -> httpx.Response:
        headers = {"accept": STREAM, "accept-encoding": "identity", "content-type": "application/json"}
        url = f"{request.base_url.rstrip('/')}/chat/completions"
        built = self._http.build_request(
            "POST", url, content=_encode(request), headers=headers_of(request) | headers
        )
        return await self._http.send(built, stream=True)


async def _pieces(response: httpx.Response) -> AsyncGenerator[bytes]:
    """The body as it comes; an empty piece would look like its end."""
    async with aclosing(response.aiter_raw()) as raw:  # type: ignore[type-var]
        async for piece in raw:
            if piece:
                yield piece


async def _in_time(waiting: Awaitable[Value], deadline: float, endpoint: str) -> Value:
    with translated_errors(endpoint):
        async with asyncio.timeout_at(deadline):
            return await waiting


@contextmanager
def translated_errors(endpoint: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise errors.EndpointUnavailable(endpoint=endpoint, why="the answer takes too long") from error
    except httpx.TimeoutException as error:
        why = f"nothing came in time ({type(error).__name__})"
        raise errors.EndpointUnavailable(endpoint=endpoint, why=why) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise errors.EndpointRefused(endpoint=endpoint, why="the address cannot be used") from error
    except httpx.LocalProtocolError:
        # What it says may hold a header's value.
        raise errors.EndpointRefused(endpoint=endpoint, why="a header cannot be sent") from None
    except httpx.TransportError as error:
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise errors.EndpointUnavailable(endpoint=endpoint, why=why) from error


def _encode(request: ChatRequest) -> bytes:
    try:
        return msgspec.json.encode(request.body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        why = f"the conversation cannot be written as JSON ({error})"
        raise errors.EndpointRefused(endpoint=request.endpoint, why=why) from error


def headers_of(request: ChatRequest) -> dict[str, str]:
    """The headers that are set, and the token, when a header can hold it."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    if request.token is None:
        return headers
    if not http.is_token(request.token):
        why = f"the secret in {request.token_setting} is no key: check it for line ends and blanks"
        raise errors.EndpointRefused(endpoint=request.endpoint, why=why)
    return headers | {"authorization": f"Bearer {request.token}"}


async def _check_response(response: httpx.Response, request: ChatRequest, deadline: float) -> None:
    if response.status_code != HTTPStatus.OK:
        body = await _in_time(read_some(response), deadline, request.endpoint)
        raise refusal_of(response, request, body)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != STREAM:
        why = f"it is {quoting.quote(kind or 'nothing')} instead of {STREAM}"
        raise errors.BrokenStream(endpoint=request.endpoint, why=why)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise errors.BrokenStream(endpoint=request.endpoint, why="it is compressed, which we did not ask for")


async def read_some(response: httpx.Response, most_bytes: int = MAX_ERROR_BYTES) -> bytes:
    """The beginning of the body."""
    body = bytearray()
    async with aclosing(_pieces(response)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) >= most_bytes:
                break
    return bytes(body[:most_bytes])


def refusal_of(response: httpx.Response, request: ChatRequest, body: bytes) -> errors.AgentFailed:
    status = response.status_code
    if status in CREDENTIALS:
        why = f"it does not accept the credentials (HTTP {status}): check {request.token_setting}"
        return errors.EndpointRefused(endpoint=request.endpoint, why=why)
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        told = body.decode("utf-8", "replace")
    return _failure(told, status, request, http.retry_seconds(response.headers.get("retry-after")))


def _check_chunk(chunk: completions.Chunk, request: ChatRequest) -> None:
    """An error that the endpoint met after it had begun to answer."""
    if chunk.error:
        code = chunk.error.get("code") if isinstance(chunk.error, dict) else None
        status = code if isinstance(code, int) else HTTPStatus.INTERNAL_SERVER_ERROR
        raise _failure({"error": chunk.error}, status, request, None)


def _failure(told: object, status: int, request: ChatRequest, wait: float | None) -> errors.AgentFailed:
    error = told.get("error", told) if isinstance(told, dict) else told
    fields = error if isinstance(error, dict) else {"message": error}
    text = str(fields.get("message") or "").replace(request.token or "\0", "…")
    why = f"HTTP {status}" + (f", {quoting.quote(text)}" if quoting.clean_text(text) else "")
    passing = status in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if passing and NO_QUOTA not in (fields.get("code"), fields.get("type")):
        kind = errors.EndpointBusy if status == HTTPStatus.TOO_MANY_REQUESTS else errors.EndpointTroubled
        return kind(endpoint=request.endpoint, why=why, retry_after=wait)
    return errors.EndpointRefused(endpoint=request.endpoint, why=why)


def failed_of(error: errors.FrontdeskError, *, retryable: bool) -> events.Failed:
    """The failure, in words of our own; what endpoint, program or setting is to blame is in the detail."""
    message = next((words for kind, words in BLAMES.items() if isinstance(error, kind)), BROKE_DOWN)
    return events.Failed(message=message, retryable=retryable, detail=str(error))


def origin(base_url: str) -> tuple[str, str, int | None]:
    """Who gets what is sent there: scheme, host and port."""
    url = httpx.URL(base_url)
    return url.scheme, url.host, url.port
