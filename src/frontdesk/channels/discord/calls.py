"""RestCalls of the REST API: one try each, bounded in time and size, and honest about what became of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from io import FileIO
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from frontdesk.channels.discord.options import Options
from frontdesk.channels.discord.verdicts import RestFailure, RestNeverLeft, RestRefused, RestUnclear

AGENT = "DiscordBot (https://pypi.org/project/frontdesk, 1)"
FILE_HOSTS = ("cdn.discordapp.com", "media.discordapp.net")
MOST_ANSWER_BYTES = 32 * 1024 * 1024
MOST_WHY_CHARACTERS = 300
MOST_RETRY_AFTER_SECONDS = 24 * 3600.0
UPLOAD_SECONDS = 120.0
PIECE_BYTES = 64 * 1024
NEVER_LEFT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)

Uploads = Sequence[tuple[FileIO, str, str]]
"""Each a file that is open, its name and its kind."""


class RestCalls:
    """What is asked of the platform. Nothing is tried twice here, and no redirect followed."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise RestNeverLeft("the channel was closed")
        if self._session is None:
            seconds = self._options.timeout_seconds
            timeout = aiohttp.ClientTimeout(total=None, connect=seconds / 3)
            cookies = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(timeout=timeout, cookie_jar=cookies, trust_env=False)
        return self._session

    def token(self) -> str:
        return self._options.token()

    async def ask(
        self,
        method: str,
        path: str,
        told: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        uploads: Uploads = (),
    ) -> Any:
        """What the platform answers when it said yes; None when it had nothing to say."""
        seconds = UPLOAD_SECONDS if uploads else self._options.timeout_seconds
        headers = {"authorization": f"Bot {self.token()}", "user-agent": AGENT}
        more: dict[str, Any] = {"params": query} if query else {}
        if uploads:
            more["data"] = _form(told, uploads)
        elif told is not None:
            more["data"] = json.dumps(told).encode()
            headers["content-type"] = "application/json"
        url = self._options.api_url.rstrip("/") + path
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(method, url, headers, more)
        except TimeoutError as error:
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                raise RestNeverLeft(str(error) or type(error).__name__) from error
            raise RestUnclear(f"no answer within {seconds:g} seconds") from None
        except NEVER_LEFT as error:
            raise RestNeverLeft(str(error) or type(error).__name__) from error
        except (aiohttp.ClientError, OSError) as error:
            raise RestUnclear(type(error).__name__) from error

    async def _exchange(self, method: str, url: str, headers: dict[str, str], more: dict[str, Any]) -> Any:
        request = self.session.request(method, url, headers=headers, allow_redirects=False, **more)
        async with request as response:
            body = bytearray()
            async for piece in response.content.iter_chunked(PIECE_BYTES):
                body += piece
                if len(body) > MOST_ANSWER_BYTES:
                    raise RestUnclear("the answer is too long")
            if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                raise _refusal(response.status, bytes(body), response.headers.get("retry-after"))
        if not body:
            return None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise RestUnclear("the answer is not valid JSON") from None

    async def download(self, url: str) -> AsyncIterator[bytes]:
        """The bytes at an address of the platform; the token stays here."""
        own = urlsplit(self._options.api_url)
        parts = urlsplit(url)
        known = parts.scheme == "https" and parts.hostname in FILE_HOSTS and parts.port is None
        if not known and (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
            raise RestRefused(HTTPStatus.FORBIDDEN, "it is not on the platform's own hosts")
        try:
            timeout = aiohttp.ClientTimeout(total=None, sock_read=self._options.timeout_seconds)
            async with self.session.get(url, allow_redirects=False, timeout=timeout) as response:
                if response.status != HTTPStatus.OK:
                    raise RestRefused(response.status, f"status {response.status}")
                async for piece in response.content.iter_chunked(PIECE_BYTES):
                    yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RestUnclear(type(error).__name__) from error

    async def close(self) -> None:
        session, self._session, self._is_closed = self._session, None, True
        if session is not None:
            await session.close()


def _form(told: Any, uploads: Uploads) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)  # the platform wants the brackets as they are
    form.add_field("payload_json", json.dumps(told), content_type="application/json")
    for number, (handle, name, kind) in enumerate(uploads):
        form.add_field(f"files[{number}]", handle, filename=_plain(name), content_type=kind)
    return form


def _plain(name: str) -> str:
    """A file's name that cannot end its field."""
    return "".join("_" if each in '"\\' or not each.isprintable() else each for each in name) or "file"


def _refusal(status: int, body: bytes, after: str | None) -> RestFailure:
    why, code, wait, everywhere = f"the platform answered {status}", 0, after, False
    try:
        read = json.loads(body)
        why = str(read.get("message") or why)[:MOST_WHY_CHARACTERS]
        if problems := read.get("errors"):
            why = f"{why}: {json.dumps(problems)}"[:MOST_WHY_CHARACTERS]
        code = read.get("code") if isinstance(read.get("code"), int) else 0
        wait, everywhere = read.get("retry_after", after), read.get("global") is True
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass  # a page of something that stands before the platform
    try:
        seconds = min(max(float(wait), 0.0), MOST_RETRY_AFTER_SECONDS) if wait is not None else None
    except (ValueError, TypeError):
        seconds = None
    if status != HTTPStatus.TOO_MANY_REQUESTS:
        seconds = None
    return RestRefused(status, why, code, seconds, everywhere)
