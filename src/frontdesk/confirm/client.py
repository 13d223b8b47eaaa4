"""The clients: one for code that awaits, one for code that waits."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

import httpx

from frontdesk import errors
from frontdesk.confirm import answers, steps
from frontdesk.confirm.answers import Reply
from frontdesk.confirm.records import Decision, Redeemed, Ticket
from frontdesk.confirm.steps import Call, Pause, Steps, Talk, Wish
from frontdesk.formats import sse
from frontdesk.model.audit import Row

URL = "http://127.0.0.1:6000"
PATIENCE_SECONDS = 60.0
"""How long a service that is away, because it is restarted perhaps, is tried again."""
CONNECT_SECONDS = 5.0
QUIET_SECONDS = 60.0
"""A stream of events in which not even a sign of life comes for so long is broken."""
MAX_STREAM_BYTES = 2**40

T = TypeVar("T")


class Options(TypedDict, total=False):
    """What may be said about a request besides what it is for."""

    timeout_seconds: int
    """How long people may take: 30 to 3600, 300 unless told."""
    session_key: str
    """The conversation it belongs to."""
    requester: str
    """What the agent calls itself; one that has a token is known by that."""
    callback_url: str
    """Where the decision is sent to, signed, as soon as it falls."""
    idempotency_key: str
    """The same request under the same key, after a crash perhaps, is the one that was made before."""


class _Service:
    """Where the service is and who asks it."""

    def __init__(
        self,
        url: str = URL,
        token: str | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        tls: ssl.SSLContext | None = None,
        socket: str | None = None,
    ) -> None:
        """``token`` is the agent's. In mode ``solo``, on the machine of the service, none is needed. With a
        Unix socket nothing is sent to the address."""
        self.url = _checked_url(url)
        self._socket = socket
        self.patience_seconds = patience_seconds
        self._opening: dict[str, Any] = {
            "base_url": self.url,
            "headers": _credentials(token),
            "verify": tls or _default_tls(self.url),
            # A connection that was kept would fail after each restart of the service, and nobody would know
            # whether the last request was heard. No proxy has any business with what is said here.
            "limits": httpx.Limits(max_keepalive_connections=0),
            "trust_env": False,
        }

    def _unreachable(self, error: Exception) -> errors.ServiceUnreachable:
        return errors.ServiceUnreachable(url=self.url, why=str(error) or type(error).__name__)

    def _reply(self, response: httpx.Response) -> Reply:
        return Reply(url=self.url, status=response.status_code, body=response.content)


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise errors.InvalidInput(what=f"The address {url!r}", why="use http://host:port or https://host")
    return url.rstrip("/")


def _credentials(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        raise errors.InvalidInput(what="The token", why="use visible ASCII characters")
    return {"authorization": f"Bearer {token}"}


def _default_tls(url: str) -> ssl.SSLContext:
    """The usual certificates, which take a while to load, where they are needed."""
    if url.startswith("https:"):
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _request(call: Call) -> dict[str, Any]:
    headers = {"content-type": "application/json"} if call.body is not None else {}
    return {
        "method": call.method,
        "url": call.path,
        "content": call.body,
        "headers": headers | dict(call.headers),
        "timeout": httpx.Timeout(call.seconds, connect=CONNECT_SECONDS),
    }


def _following(after: int) -> dict[str, Any]:
    headers = {"last-event-id": str(after)}
    timeout = httpx.Timeout(QUIET_SECONDS, connect=CONNECT_SECONDS)
    return {"method": "GET", "url": "/events", "headers": headers, "timeout": timeout}


def _wish(action: str, description: str, details: Mapping[str, Any] | None, options: Options) -> Wish:
    return Wish(action=action, description=description, details=details or {}, **options)


class Client(_Service):
    """Asks the confirmation service, for code that awaits. One serves a whole program: nothing stays open."""

    def _open(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(uds=self._socket) if self._socket else None
        return httpx.AsyncClient(**self._opening, transport=transport)

    async def request(
        self,
        action: str,
        description: str,
        details: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Ticket:
        """Ask for an action; ``details`` is everything that it depends on. The request is on disk then."""
        wish = _wish(action, description, details, options)
        return await self.talk(steps.ask(wish, self.patience_seconds))

    async def wait(self, ticket: Ticket, seconds: float | None = None) -> Decision:
        """The decision. With ``seconds``, what is known then: perhaps that it is pending."""
        return await self.talk(steps.wait(ticket, self.patience_seconds, seconds))

    async def redeem(self, ticket: Ticket) -> Redeemed:
        """Use an approval up, once: what comes back is to be carried out, exactly."""
        return await self.talk(steps.redeem(ticket, self.patience_seconds))

    async def collect(self, ticket: Ticket) -> Redeemed:
        """Wait for the decision and redeem it. Denied or Expired when there is nothing to redeem."""
        return await self.talk(steps.collect(ticket, self.patience_seconds))

    async def obtain(
        self,
        action: str,
        description: str,
        details: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Redeemed:
        """Ask, wait and redeem."""
        wish = _wish(action, description, details, options)
        return await self.talk(steps.obtain(wish, self.patience_seconds))

    async def follow(self, after: int) -> AsyncGenerator[Row, None]:
        """The rows of the audit log after that one, as they come; for approvers. When the service ends it,
        go on after the last row."""
        reader = sse.Reader(self.url, max_stream_bytes=MAX_STREAM_BYTES)
        try:
            async with (
                self._open() as opened,
                opened.stream(**_following(after)) as told,
            ):
                if told.status_code != HTTPStatus.OK:
                    await told.aread()
                    raise answers.refusal(self._reply(told))
                async for piece in told.aiter_bytes():
                    for data in reader.feed(piece):
                        yield answers.read_row(self.url, data)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    async def talk(self, conversation: Steps[T]) -> T:
        talk, heard = Talk(conversation), None
        async with self._open() as opened:
            while step := talk.go_on(heard):
                heard = await self._do(opened, step)
        return talk.result

    async def _do(
        self, opened: httpx.AsyncClient, step: Call | Pause
    ) -> Reply | errors.ServiceUnreachable | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return self._reply(await opened.request(**_request(step)))
        except httpx.RequestError as error:
            return self._unreachable(error)


class SyncClient(_Service):
    """The same for code that waits."""

    def _open(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=self._socket) if self._socket else None
        return httpx.Client(**self._opening, transport=transport)

    def request(
        self,
        action: str,
        description: str,
        details: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Ticket:
        wish = _wish(action, description, details, options)
        return self.talk(steps.ask(wish, self.patience_seconds))

    def wait(self, ticket: Ticket, seconds: float | None = None) -> Decision:
        return self.talk(steps.wait(ticket, self.patience_seconds, seconds))

    def redeem(self, ticket: Ticket) -> Redeemed:
        return self.talk(steps.redeem(ticket, self.patience_seconds))

    def collect(self, ticket: Ticket) -> Redeemed:
        return self.talk(steps.collect(ticket, self.patience_seconds))

    def obtain(
        self,
        action: str,
        description: str,
        details: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Redeemed:
        wish = _wish(action, description, details, options)
        return self.talk(steps.obtain(wish, self.patience_seconds))

    def talk(self, conversation: Steps[T]) -> T:
        talk, heard = Talk(conversation), None
        with self._open() as opened:
            while step := talk.go_on(heard):
                heard = self._do(opened, step)
        return talk.result

    def _do(self, opened: httpx.Client, step: Call | Pause) -> Reply | errors.ServiceUnreachable | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._reply(opened.request(**_request(step)))
        except httpx.RequestError as error:
            return self._unreachable(error)
