"""What goes out: an answer as a signed callback, and what is known about its arrival."""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator
from datetime import datetime
from http import HTTPStatus

import certifi
import httpx
import msgspec

from frontdesk.channels.webhook.options import Options
from frontdesk.formats import http, webhooks
from frontdesk.model import deliveries
from frontdesk.model.sources import readable

MAX_RESPONSE_BYTES = 64 * 1024
MAX_RETRY_AFTER_SECONDS = 24 * 3600.0
MAX_CONNECTIONS = 20
WORTH_ANOTHER_TRY = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)


class Callback(msgspec.Struct, frozen=True):
    """A signed request, ready to be sent."""

    body: bytes
    headers: dict[str, str]


def build_callback(delivery: deliveries.Delivery, secret: str, now: datetime) -> Callback:
    """The request for a delivery. Its id is the delivery's at each attempt; the time is the attempt's."""
    told: dict[str, object] = {
        "in_reply_to": delivery.event_id,
        "chat_id": delivery.to.chat_id,
        "thread_id": delivery.to.thread_id,
        "session_id": delivery.session_id,
        "text": readable(delivery.text),
        "kind": delivery.kind,
        "final": delivery.final,
    }
    if draft := draft_id(delivery):
        told["draft"] = draft
    body = msgspec.json.encode(told)
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "user-agent": "frontdesk",
    }
    return Callback(body, headers | webhooks.signed_headers(secret, delivery.id, now, body))


def draft_id(delivery: deliveries.Delivery) -> str | None:
    """What the drafts of an answer, and the answer that replaces them, have in common."""
    return delivery.draft or (delivery.turn_id if delivery.kind is deliveries.DeliveryKind.DRAFT else None)


class Attempt(msgspec.Struct):
    """How far a request has come: whether its body has begun to leave, and what its receiver said."""

    began: bool = False
    answered: deliveries.Outcome | None = None

    async def leave(self, body: bytes) -> AsyncIterator[bytes]:
        """The body, which is asked for once the headers are on their way."""
        self.began = True
        yield body

    def failed(self, why: str) -> deliveries.Outcome:
        """What is known when it broke off: before its body left, it certainly did not arrive."""
        if self.answered is not None:
            return self.answered
        return deliveries.Unknown(why=why) if self.began else deliveries.NotSent(why=why)


class Callbacks:
    """The way to one receiver. Redirects are not followed, proxies of the environment not used."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: httpx.AsyncClient | None = None

    async def post(self, callback: Callback) -> deliveries.Outcome:
        attempt, url = Attempt(), self._options.callback_url
        self._client = client = self._client or _open_client(self._options)
        request = client.stream("POST", url, content=attempt.leave(callback.body), headers=callback.headers)
        try:
            async with asyncio.timeout(self._options.timeout_seconds), request as response:
                attempt.answered = judge_response(response.status_code, response.headers.get("retry-after"))
                await _drain(response)
                return attempt.answered
        except TimeoutError:
            return attempt.failed(f"no answer within {self._options.timeout_seconds:g} seconds")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return attempt.failed(f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def judge_response(status: int, retry_after: str | None = None) -> deliveries.Outcome:
    """What an answer says about the arrival. 409 is a receiver that has it already."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.CONFLICT:
        return deliveries.Sent()
    wait = http.retry_seconds(retry_after)
    refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return deliveries.NotSent(
        why=f"the receiver answered {status}",
        retry_after_seconds=None if wait is None else min(wait, MAX_RETRY_AFTER_SECONDS),
        hopeless=refused and status not in WORTH_ANOTHER_TRY,
    )


async def _drain(response: httpx.Response) -> None:
    """Read on a little, so that the connection can be used again; the answer's text is of no interest."""
    read = 0
    async for piece in response.aiter_raw():
        read += len(piece)
        if read > MAX_RESPONSE_BYTES:
            return


def _open_client(options: Options) -> httpx.AsyncClient:
    """A connection that was used before may be cut at any moment; where a repeated answer would show,
    each one gets its own. Connecting and the TLS handshake end by themselves before the whole is cut off:
    the client closes the socket only then."""
    limits = httpx.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=None if options.idempotent else 0
    )
    return httpx.AsyncClient(
        verify=_certificates(),
        timeout=httpx.Timeout(options.timeout_seconds, connect=options.timeout_seconds / 3),
        limits=limits,
        follow_redirects=False,
        trust_env=False,
    )


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The machine's certificates and, where it has none, those that come along; they take long to read."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
