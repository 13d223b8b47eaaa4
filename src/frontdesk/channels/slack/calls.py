"""Calls of the platform's methods: one try each, bounded in time, and honest about what became of them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from frontdesk.channels import clocks
from frontdesk.channels.slack.faults import SlackError, SlackRefusal, SlackUnclear, SlackUnreached
from frontdesk.channels.slack.options import Options

UPLOAD_SECONDS = 120.0
HEARTBEAT_SECONDS = 20.0
MOST_ENVELOPE_BYTES = 4 * 1024 * 1024
MOST_RETRY_AFTER_SECONDS = 24 * 3600.0
PIECE_BYTES = 64 * 1024
NEVER_LEFT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
UNFINISHED = frozenset({"internal_error", "fatal_error", "service_unavailable"})
"""Part of the call may have been carried out, as the platform's pages say."""

QUIET = logging.getLogger(f"{__name__}.library")
"""The library writes what people say into its log, where that is on."""
QUIET.setLevel(logging.WARNING)


class SlackLine:
    """How the platform is reached. Nothing is tried twice here, redirects are not followed, proxies of the
    environment not used."""

    answered: clocks.Answered = None
    """The time by the platform's clock when it last answered, as it wrote that, and by ours."""
    scopes: str = ""
    """What the token may do, as the platform last said."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._session: aiohttp.ClientSession | None = None

    def skew(self) -> timedelta:
        """How far our clock is ahead of the platform's, as far as that can be told."""
        return clocks.skew(self.answered)

    def now(self) -> float:
        """The time by the platform's clock: what it keeps is found by that."""
        return (datetime.now(UTC) - self.skew()).timestamp()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(self, method: str, **fields: Any) -> Mapping[str, Any]:
        """Call with what is written in a form; what is None is left out."""
        told = {name: each for name, each in fields.items() if each is not None}
        return await self._call(self._client(self._options.bot_token()), method, data=told)

    async def write(self, method: str, **fields: Any) -> Mapping[str, Any]:
        """Call with fields that are more than texts."""
        told = {name: each for name, each in fields.items() if each is not None}
        return await self._call(self._client(self._options.bot_token()), method, json=told)

    async def socket_address(self) -> str:
        """A new place to get what happens from."""
        assert self._options.app_token is not None
        opened = await self._call(self._client(self._options.app_token()), "apps.connections.open", data={})
        return self._checked(opened.get("url"), ("wss", "ws"))

    @asynccontextmanager
    async def socket(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        url = await self.socket_address()
        async with self._reaching(self._options.timeout_seconds):
            socket = await self._now().ws_connect(
                url,
                heartbeat=HEARTBEAT_SECONDS,
                max_msg_size=MOST_ENVELOPE_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
                proxy=self._proxy(),
            )
        try:
            yield socket
        finally:
            await socket.close()

    async def upload(self, url: object, path: str) -> None:
        """Bring the bytes of a file to where the platform wants them. No token goes along."""
        address = self._checked(url)
        with await asyncio.to_thread(Path(path).open, "rb") as file:
            async with (
                self._reaching(UPLOAD_SECONDS),
                self._now().post(address, data=file, allow_redirects=False, proxy=self._proxy()) as answer,
            ):
                if answer.status != HTTPStatus.OK:
                    raise SlackRefusal(f"the upload was answered {answer.status}")

    async def download(self, url: object, page_wanted: bool) -> AsyncIterator[bytes]:
        """The bytes at an address of the platform's. Instead of what the token may not see, a page comes."""
        headers = {"authorization": f"Bearer {self._options.bot_token()}"}
        address, limit = self._checked(url), aiohttp.ClientTimeout(total=UPLOAD_SECONDS)
        try:
            async with self._now().get(
                address, headers=headers, allow_redirects=False, proxy=self._proxy(), timeout=limit
            ) as answer:
                if answer.status != HTTPStatus.OK:
                    raise SlackRefusal(f"the file was answered {answer.status}")
                if answer.content_type == "text/html" and not page_wanted:
                    raise SlackRefusal("missing_scope", needed="files:read")
                async for piece in answer.content.iter_chunked(PIECE_BYTES):
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUnclear(type(error).__name__) from error

    async def answer_at(self, url: str, told: Mapping[str, Any]) -> None:
        """Answer a command at the address that came with it."""
        async with (
            self._reaching(self._options.timeout_seconds),
            self._now().post(
                self._checked(url), json=told, allow_redirects=False, proxy=self._proxy()
            ) as answer,
        ):
            if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise SlackUnclear(f"the platform answered {answer.status}")
            if answer.status != HTTPStatus.OK:
                raise SlackRefusal(f"the answer was answered {answer.status}")

    async def _call(self, client: AsyncWebClient, method: str, **how: Any) -> Mapping[str, Any]:
        async with self._reaching(self._options.timeout_seconds):
            try:
                answer = await client.api_call(method, **how)
            except SlackApiError as error:
                raise _refusal(error.response) from None
            except (SlackClientError, ValueError, TypeError, AttributeError):
                raise SlackUnclear("the answer cannot be read") from None
            if told := answer.headers.get("date"):
                self.answered = str(told), datetime.now(UTC)
            self.scopes = str(answer.headers.get("x-oauth-scopes") or self.scopes)
            if not isinstance(answer.data, dict):
                raise SlackUnclear("the answer is not one of the platform's")
            return answer.data

    def _client(self, token: str) -> AsyncWebClient:
        """The library's client of the token as it is now."""
        client = AsyncWebClient(
            token, base_url=self._options.api_url, session=self._now(), retry_handlers=[], logger=QUIET
        )
        client.proxy = self._proxy()
        return client

    def _now(self) -> aiohttp.ClientSession:
        if self._session is None:
            seconds = self._options.timeout_seconds
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=seconds / 3)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        return self._session

    def _proxy(self) -> str | None:
        return self._options.proxy() if self._options.proxy else None

    def _checked(self, url: object, schemes: tuple[str, str] = ("https", "http")) -> str:
        """An address that the platform names, if it is one of its own hosts."""
        ours = urlsplit(self._options.api_url)
        try:
            parts = urlsplit(url if isinstance(url, str) else "")
            host = parts.hostname or ""
        except ValueError:
            raise SlackRefusal("the platform names an address that is none") from None
        home = ours.hostname or ""
        secure = parts.scheme == (schemes[0] if ours.scheme == "https" else schemes[1])
        if not secure or not (host == home or host.endswith(f".{home}")):
            raise SlackRefusal(f"the platform names an address that is not its own, {host[:100]}")
        return parts.geturl()

    def _reaching(self, seconds: float) -> "_Reaching":
        return _Reaching(seconds)


class _Reaching:
    """Bounds a call in time, and tells errors of the network in our words."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        ended: BaseException | None = error
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            ended = late
        if isinstance(ended, NEVER_LEFT):
            raise SlackUnreached(str(ended) or type(ended).__name__) from None
        if isinstance(ended, TimeoutError):
            raise SlackUnclear(f"no answer within {self._seconds:g} seconds") from None
        if isinstance(ended, aiohttp.ClientError):
            raise SlackUnclear(type(ended).__name__) from None


def _refusal(response: Any) -> SlackError:
    """What the platform said, from whatever the library has kept of it."""
    status = getattr(response, "status_code", None) or getattr(response, "status", None) or 0
    data = getattr(response, "data", None)
    told = data if isinstance(data, dict) else {}
    code = str(told.get("error") or f"status {status}")[:200]
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return SlackRefusal("ratelimited", _seconds(getattr(response, "headers", {})))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or code in UNFINISHED:
        return SlackUnclear(f"the platform answered {code}")
    if status == HTTPStatus.OK and "error" not in told:
        return SlackUnclear("the answer is not one of the platform's")
    needed = told.get("needed")
    return SlackRefusal(code, needed=needed[:100] if isinstance(needed, str) else None)


def _seconds(headers: Mapping[str, str]) -> float:
    try:
        return min(max(float(headers.get("Retry-After") or 1), 0.0), MOST_RETRY_AFTER_SECONDS)
    except ValueError:
        return 1.0
