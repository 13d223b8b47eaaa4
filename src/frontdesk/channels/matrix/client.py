"""The way to a homeserver: plain calls, none of which is repeated behind our back."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
from mautrix.api import HTTPAPI, Method
from mautrix.errors import MatrixConnectionError, MatrixError, MatrixRequestError, MNotFound

from frontdesk import errors
from frontdesk.channels.matrix import answers, outbound
from frontdesk.channels.matrix.inbound import Event, Us
from frontdesk.channels.matrix.options import Options
from frontdesk.logs import get_logger
from frontdesk.model.deliveries import NotSent, Outcome, Unknown

ROOT = "/_matrix/client/v3"
SYNC_SECONDS = 30
TIMELINE_EVENTS = 50
MOST_PAGES = 50
PAGE_EVENTS = 100
PIECE_BYTES = 64 * 1024
LONGEST_WAIT_SECONDS = 24 * 3600.0
MEDIA = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]+)/([A-Za-z0-9_=-]+)", re.ASCII)
"""Where a homeserver keeps a file: the server's name, and the file's."""
FILTER = json.dumps(
    {
        "presence": {"types": []},
        "room": {
            "timeline": {"limit": TIMELINE_EVENTS},
            "state": {"lazy_load_members": True},
            "ephemeral": {"types": []},
        },
    }
)
GONE = ("M_NOT_FOUND", "M_FORBIDDEN", "M_USER_DEACTIVATED", "M_TOO_LARGE")
"""What a homeserver says of a room that we are not in, or no more; and of what it will never take."""
REVOKED = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED")

FAILURES = (MatrixError, aiohttp.ClientError, TimeoutError, sqlite3.Error)
"""What calls may end in, those to the file with the keys included."""
REFUSALS = (MatrixRequestError,)
"""What the homeserver answers when it does not do what it is asked for."""
UNEXPECTED = (ValueError, TypeError, LookupError, AttributeError, RuntimeError)
"""What the library raises for an answer that makes no sense, or once it is closed."""


def place(*parts: str) -> str:
    """A path of the client API. What others have named stays one part of it, whatever is in it."""
    return "/".join((ROOT, *("%2E" if each in (".", "..") else quote(each, safe="") for each in parts)))


log = get_logger(__name__)


class Throttled(MatrixError):
    """The homeserver wants to be left alone for a while."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__("the homeserver says that this was too much")
        self.seconds = seconds


class NotSigned(MatrixError):
    """The recovery key does not sign our device. It is tried again: another one may be set meanwhile."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The recovery key cannot be used: {why}")


async def check_pace(response: aiohttp.ClientResponse) -> None:
    """Told of every answer: the library forgets how long to wait."""
    if response.status != HTTPStatus.TOO_MANY_REQUESTS:
        return
    told: object = None
    with suppress(aiohttp.ClientError, ValueError):
        told = await response.json()
    raise Throttled(waiting_seconds(told, response.headers.get("retry-after", "")))


def waiting_seconds(told: object, header: str) -> float | None:
    """How long the homeserver wants to be left alone; None where it does not say."""
    wait = answers.table(told).get("retry_after_ms")
    if isinstance(wait, int | float) and 0 <= wait <= LONGEST_WAIT_SECONDS * 1000:
        return wait / 1000
    return min(float(header), LONGEST_WAIT_SECONDS) if header.isascii() and header.isdecimal() else None


def judge(error: Exception) -> Outcome:
    """What an error says about the arrival. Whatever is sent again under its number arrives once."""
    match error:
        case Throttled():
            return NotSent(why=str(error), retry_after_seconds=error.seconds)
        case MatrixConnectionError() if isinstance(error.__cause__, aiohttp.ClientConnectorError):
            return NotSent(why=f"the homeserver cannot be reached: {error}")
        case MatrixRequestError() if error.http_status < HTTPStatus.INTERNAL_SERVER_ERROR:
            told = error.message or f"status {error.http_status}"
            return NotSent(why=f"the homeserver refused it: {told}", hopeless=error.errcode in GONE)
    return Unknown(why=f"{type(error).__name__}: {error}")


def is_revoked(error: Exception) -> bool:
    """Whether the access token is good for nothing any more."""
    return isinstance(error, MatrixRequestError) and error.errcode in REVOKED


def is_lost(error: Exception) -> bool:
    """Whether the homeserver does not know the place that we have read to: it may have lost its data."""
    if not isinstance(error, MatrixRequestError) or error.http_status != HTTPStatus.BAD_REQUEST:
        return False
    return "stream token" in str(error.message).lower()


class Homeserver:
    """One account on it, with its access token."""

    def __init__(self, options: Options, account: str | None) -> None:
        # Our calls say where they are made how long they may take; the library's own may take so long.
        timeout = aiohttp.ClientTimeout(
            total=SYNC_SECONDS + options.timeout_seconds, sock_connect=options.timeout_seconds / 3
        )
        session = aiohttp.ClientSession(
            timeout=timeout, raise_for_status=check_pace, headers={"user-agent": "frontdesk"}
        )
        self.api = HTTPAPI(
            options.homeserver, options.access_token(), client_session=session, default_retry_count=0
        )
        self._account = account
        self._timeout_seconds = options.timeout_seconds

    async def who(self) -> Us:
        """Who we are, by the token."""
        told = await self.get("account", "whoami")
        user_id, device_id = str(told.get("user_id", "")), str(told.get("device_id", ""))
        with suppress(MNotFound):
            profile = await self.get("profile", user_id, "displayname")
            return Us(
                user_id=user_id,
                device_id=device_id,
                display_name=profile.get("displayname"),
                account=self._account,
            )
        return Us(user_id=user_id, device_id=device_id, account=self._account)

    async def sync(self, since: str | None) -> Mapping[str, Any]:
        """What is new since then; waits a while for something. The first time, only where we are."""
        query = {
            "timeout": str(SYNC_SECONDS * 1000 if since else 0),
            "filter": FILTER,
            "set_presence": "offline",
        }
        if since:
            query["since"] = since
        patience = SYNC_SECONDS + self._timeout_seconds
        return await self.request(Method.GET, place("sync"), patience_seconds=patience, query_params=query)

    async def before(self, room_id: str, token: str, until: str | None) -> list[Event]:
        """What happened in a room between two places of its history, oldest first."""
        found: list[Event] = []
        for _ in range(MOST_PAGES):
            query = {"dir": "b", "from": token, "limit": str(PAGE_EVENTS)} | ({"to": until} if until else {})
            path = place("rooms", room_id, "messages")
            page, token = answers.page_of(await self.request(Method.GET, path, query_params=query))
            found += page
            if not token:
                return found[::-1]
        log.warning("matrix_history_cut", room=room_id, read=len(found))
        return found[::-1]

    async def event(self, room_id: str, event_id: str) -> Event:
        return await self.get("rooms", room_id, "event", event_id)

    async def put(self, room_id: str, kind: str, number: str, content: outbound.Content) -> str:
        """Send an event under a number; the same number sends it once."""
        told = await self.request(Method.PUT, place("rooms", room_id, "send", kind, number), content)
        return str(told.get("event_id", ""))

    async def redact(self, room_id: str, event_id: str) -> None:
        """Take back an event of ours; once, however often this is asked."""
        number = quote(f"redact-{event_id}", safe="")
        await self.request(Method.PUT, f"{ROOT}/rooms/{quote(room_id)}/redact/{quote(event_id)}/{number}", {})

    async def show_typing(self, us: Us, room_id: str, seconds: float) -> None:
        path = place("rooms", room_id, "typing", us.user_id)
        await self.request(Method.PUT, path, {"typing": True, "timeout": int(seconds * 1000)})

    async def join(self, room_id: str) -> None:
        await self.request(Method.POST, place("join", room_id), {})

    async def members(self, room_id: str) -> list[str]:
        told = await self.get("rooms", room_id, "joined_members")
        return [each for each in answers.table(told.get("joined")) if answers.is_id(each)]

    async def keys_of(self, user_id: str) -> Mapping[str, Any]:
        """The public keys of somebody's devices, and of their account."""
        return await self.request(Method.POST, place("keys", "query"), {"device_keys": {user_id: []}})

    async def upload(self, data: bytes, kind: str, name: str | None) -> str:
        """Where the homeserver keeps it."""
        query = {"filename": name} if name else {}
        headers = {"Content-Type": kind}
        told = await self.request(
            Method.POST, "/_matrix/media/v3/upload", data, headers=headers, query_params=query
        )
        return str(told.get("content_uri", ""))

    async def download(self, kept_at: str, most_bytes: int) -> AsyncIterator[bytes]:
        """From our own homeserver alone, whichever one it came from first. No redirect is followed: it would
        take the token along."""
        found = MEDIA.fullmatch(kept_at)
        if found is None or not found[1].strip("."):
            raise errors.FileUnavailable(why="it is nowhere")
        url = self.api.base_url / f"_matrix/client/v1/media/download/{found[1]}/{found[2]}"
        headers, read = {"authorization": f"Bearer {self.api.token}"}, 0
        slow = aiohttp.ClientTimeout(total=None, sock_read=self._timeout_seconds)
        async with self.api.session.get(
            url, headers=headers, allow_redirects=False, timeout=slow
        ) as response:
            if response.status != HTTPStatus.OK:
                raise errors.FileUnavailable(why=f"the homeserver answered {response.status}")
            async for piece in response.content.iter_chunked(PIECE_BYTES):
                read += len(piece)
                if read > most_bytes:
                    raise errors.FileUnavailable(why=f"it is larger than {most_bytes} bytes")
                yield piece

    async def get(self, *parts: str) -> Mapping[str, Any]:
        return await self.request(Method.GET, place(*parts))

    async def request(
        self, method: Method, path: str, content: Any = None, *, patience_seconds: float = 0.0, **more: Any
    ) -> Mapping[str, Any]:
        """What the homeserver answers, which is always an object."""
        async with asyncio.timeout(patience_seconds or self._timeout_seconds):
            try:
                told = await self.api.request(method, path, content, **more)
            except UNEXPECTED as error:
                raise MatrixConnectionError(f"there is no answer that makes sense: {error!r}") from error
        if not isinstance(told, Mapping):
            raise MatrixConnectionError("the homeserver answered with something that is no object")
        return told

    async def close(self) -> None:
        await self.api.session.close()
