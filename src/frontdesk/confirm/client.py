"""The clients: one for code that awaits, one for code that waits."""

import asyncio
import functools
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing
from http import HTTPStatus
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import urlsplit

import httpx

from frontdesk import errors
from frontdesk.confirm import answers, steps
from frontdesk.confirm.answers import ServiceReply
from frontdesk.confirm.steps import Heard, Pause, ServiceCall, Steps
from frontdesk.formats import http, sse
from frontdesk.model.audit import Row

URL = "http://127.0.0.1:6000"
PATIENCE_SECONDS = 60.0
"""How long a service that is away, because it is restarted perhaps, is tried again."""
CONNECT_SECONDS = 5.0
MAX_STREAM_BYTES = 2**40

_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
"""What the system calls an error, which is of use to nobody."""

P = ParamSpec("P")
T = TypeVar("T")


class _Method(Generic[P, T]):
    """A conversation as a method of both clients: what one waits for, the other awaits."""

    def __init__(self, conversation: Callable[P, Steps[T]]) -> None:
        self._conversation = conversation
        self.__doc__ = conversation.__doc__

    @overload
    def __get__(self, client: "Client", owner: type["Client"]) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, client: "SyncClient", owner: type["SyncClient"]) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: None, owner: type["_Service"]) -> Self: ...

    def __get__(self, client: "Client | SyncClient | None", owner: type["_Service"]) -> Any:
        if client is None:
            return self

        @functools.wraps(self._conversation)
        def talk(*arguments: P.args, **named: P.kwargs) -> Any:
            return client.talk(self._conversation(*arguments, **named))

        return talk


class _Service:
    """Where the service is, who asks it, and what can be asked."""

    request = _Method(steps.request)
    wait = _Method(steps.wait)
    redeem = _Method(steps.redeem)
    collect = _Method(steps.collect)
    obtain = _Method(steps.obtain)

    def __init__(
        self,
        url: str = URL,
        token: str | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``token`` is the agent's. In mode ``solo``, on the machine of the service, none is needed."""
        self.url = _checked_url(url)
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
        why = _NUMBER.sub("", str(error)) or type(error).__name__
        return errors.ServiceUnreachable(url=self.url, why=why)

    def _reply(self, response: httpx.Response) -> ServiceReply:
        return ServiceReply(url=self.url, status=response.status_code, body=response.content)


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
    if not http.is_token(token):
        raise errors.InvalidInput(what="The token", why="use visible ASCII characters")
    return {"authorization": f"Bearer {token}"}


def _default_tls(url: str) -> ssl.SSLContext:
    """The usual certificates, which take a while to load, where they are needed."""
    if url.startswith("https:"):
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _request(call: ServiceCall) -> dict[str, Any]:
    headers = {"content-type": "application/json"} if call.body is not None else {}
    return {
        "method": call.method,
        "url": call.path,
        "content": call.body,
        "headers": headers | dict(call.headers),
        "timeout": httpx.Timeout(call.seconds, connect=CONNECT_SECONDS),
    }


class Client(_Service):
    """Asks the confirmation service, for code that awaits. One serves a whole program: nothing stays open."""

    def _open(self) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return httpx.AsyncClient(**self._opening)

    async def follow(self, after: int) -> AsyncGenerator[Row, None]:
        """The rows of the audit log after that one, as they come; for approvers. When the service ends it,
        go on after the last row."""
        reader = sse.SseReader(self.url, max_stream_bytes=MAX_STREAM_BYTES)
        async with aclosing(self._pieces(steps.following(after))) as pieces:
            async for piece in pieces:
                for data in reader.feed(piece):
                    yield answers.read_row(self.url, data)

    async def talk(self, conversation: Steps[T]) -> T:
        talking, heard = steps.patient(conversation, self.patience_seconds), None
        try:
            while True:
                heard = await self._do(talking.send(heard))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _do(self, step: ServiceCall | Pause) -> Heard:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._send(step)
        except errors.ServiceUnreachable as error:
            return error

    async def _send(self, call: ServiceCall) -> ServiceReply:
        try:
            async with self._open() as opened:
                return self._reply(await opened.request(**_request(call)))
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    async def _pieces(self, call: ServiceCall) -> AsyncGenerator[bytes, None]:
        """The answer as it comes; what the service refuses is raised."""
        try:
            async with self._open() as opened, opened.stream(**_request(call)) as told:
                if told.status_code != HTTPStatus.OK:
                    await told.aread()
                    raise answers.refusal(self._reply(told))
                async for piece in told.aiter_bytes():
                    yield piece
        except httpx.RequestError as error:
            raise self._unreachable(error) from error


class SyncClient(_Service):
    """The same for code that waits."""

    def talk(self, conversation: Steps[T]) -> T:
        talking, heard = steps.patient(conversation, self.patience_seconds), None
        with httpx.Client(**self._opening) as opened:
            try:
                while True:
                    heard = self._do(opened, talking.send(heard))
            except StopIteration as end:
                result: T = end.value
                return result

    def _do(self, opened: httpx.Client, step: ServiceCall | Pause) -> Heard:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._reply(opened.request(**_request(step)))
        except httpx.RequestError as error:
            return self._unreachable(error)
