"""What goes out: an answer as a signed callback, and what is known about its arrival."""

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
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
    """The way to one receiver. Redirects are not followed, proxies of the environment not used, cookies not
    kept: so it goes without a client, which looks after these."""

    def __init__(self, options: Options) -> None:
        self._options = options
        # Connecting and the TLS handshake end by themselves before the whole is cut off: the socket is closed
        # only then.
        seconds = httpx.Timeout(options.timeout_seconds, connect=options.timeout_seconds / 3)
        self._bounds = {"timeout": seconds.as_dict()}
        self._way: httpx.AsyncHTTPTransport | None = None
        self._url: httpx.URL | None = None

    async def post(self, callback: Callback) -> deliveries.Outcome:
        attempt, headers = Attempt(), callback.headers
        self._way = way = self._way or _open_way(self._options)
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                self._url = url = self._url or httpx.URL(self._options.callback_url)
                body = attempt.leave(callback.body)
                request = httpx.Request("POST", url, headers=headers, content=body, extensions=self._bounds)
                async with aclosing(await way.handle_async_request(request)) as response:
                    wait = response.headers.get("retry-after")
                    attempt.answered = judge_response(response.status_code, wait)
                    await _drain(response)
                return attempt.answered
        except TimeoutError:
            return attempt.failed(f"no answer within {self._options.timeout_seconds:g} seconds")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return attempt.failed(f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        way, self._way = self._way, None
        if way is not None:
            await way.aclose()


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


def _open_way(options: Options) -> httpx.AsyncHTTPTransport:
    """A connection that was used before may be cut at any moment; where a repeated answer would show,
    each one gets its own."""
    limits = httpx.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=None if options.idempotent else 0
    )
    return httpx.AsyncHTTPTransport(verify=_certificates(), limits=limits, trust_env=False)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The machine's certificates and, where it has none, those that come along; they take long to read."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
