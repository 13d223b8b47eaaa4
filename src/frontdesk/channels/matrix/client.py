"""The way to a homeserver: plain calls, none of which is repeated behind our back."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
from mautrix.api import HTTPAPI, Method
from mautrix.client import Client
from mautrix.errors import MatrixConnectionError, MatrixError, MatrixRequestError, MNotFound

from frontdesk import errors
from frontdesk.channels.matrix import outbound
from frontdesk.channels.matrix.inbound import Event, Us
from frontdesk.channels.matrix.options import Options
from frontdesk.model.deliveries import NotSent, Outcome, Unknown

ROOT = "/_matrix/client/v3"
SYNC_SECONDS = 30
TIMELINE_EVENTS = 50
MOST_PAGES = 50
PAGE_EVENTS = 100
PIECE_BYTES = 64 * 1024
FILTER = {
    "presence": {"types": []},
    "room": {
        "timeline": {"limit": TIMELINE_EVENTS},
        "state": {"lazy_load_members": True},
        "ephemeral": {"types": []},
    },
}
GONE = ("M_NOT_FOUND", "M_FORBIDDEN", "M_USER_DEACTIVATED")
"""What a homeserver says of a room that we are not in, or no more."""
REVOKED = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED")

FAILURES = (MatrixError, aiohttp.ClientError, TimeoutError)
"""What calls may end in."""


class Throttled(MatrixError):
    """The homeserver wants to be left alone for a while."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__("the homeserver says that this was too much")
        self.seconds = seconds


async def check_pace(response: aiohttp.ClientResponse) -> None:
    """Told of every answer: the library forgets how long to wait."""
    if response.status != HTTPStatus.TOO_MANY_REQUESTS:
        return
    told: object = None
    with suppress(aiohttp.ClientError, ValueError):
        told = await response.json()
    wait = told.get("retry_after_ms") if isinstance(told, Mapping) else None
    header = response.headers.get("retry-after", "")
    seconds = float(header) if header.isdecimal() else None
    raise Throttled(wait / 1000 if isinstance(wait, int | float) else seconds)


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


class Homeserver:
    """One account on it, with its access token."""

    def __init__(self, options: Options, account: str | None) -> None:
        # How long each call may take is said where it is made: one of them waits for news.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=options.timeout_seconds / 3)
        session = aiohttp.ClientSession(
            timeout=timeout, raise_for_status=check_pace, headers={"user-agent": "frontdesk"}
        )
        self.api = HTTPAPI(
            options.homeserver, options.access_token(), client_session=session, default_retry_count=0
        )
        self._account = account
        self._timeout_seconds = options.timeout_seconds
        self.client: Client | None = None

    async def who(self) -> Us:
        """Who we are, by the token."""
        told = await self._get("/account/whoami")
        user_id, device_id = str(told.get("user_id", "")), str(told.get("device_id", ""))
        with suppress(MNotFound):
            profile = await self._get(f"/profile/{quote(user_id)}/displayname")
            return Us(
                user_id=user_id,
                device_id=device_id,
                display_name=profile.get("displayname"),
                account=self._account,
            )
        return Us(user_id=user_id, device_id=device_id, account=self._account)

    async def sync(self, since: str | None, filter_id: str) -> Mapping[str, Any]:
        """What is new since then; waits a while for something. The first time, only where we are."""
        query = {
            "timeout": str(SYNC_SECONDS * 1000 if since else 0),
            "filter": filter_id,
            "set_presence": "offline",
        }
        if since:
            query["since"] = since
        patience = SYNC_SECONDS + self._timeout_seconds
        return await self.request(Method.GET, f"{ROOT}/sync", patience_seconds=patience, query_params=query)

    async def make_filter(self, us: Us) -> str:
        told = await self.request(Method.POST, f"{ROOT}/user/{quote(us.user_id)}/filter", FILTER)
        return str(told.get("filter_id", "0"))

    async def before(self, room_id: str, token: str, until: str | None) -> list[Event]:
        """What happened in a room between two places of its history, oldest first."""
        found: list[Event] = []
        for _ in range(MOST_PAGES):
            query = {"dir": "b", "from": token, "limit": str(PAGE_EVENTS)} | ({"to": until} if until else {})
            page = await self.request(
                Method.GET, f"{ROOT}/rooms/{quote(room_id)}/messages", query_params=query
            )
            found += [each for each in page.get("chunk", ()) if isinstance(each, Mapping)]
            if not (token := page.get("end", "")) or not page.get("chunk"):
                break
        return found[::-1]

    async def event(self, room_id: str, event_id: str) -> Event:
        return await self._get(f"/rooms/{quote(room_id)}/event/{quote(event_id)}")

    async def put(self, room_id: str, kind: str, number: str, content: outbound.Content) -> str:
        """Send an event under a number; the same number sends it once."""
        path = f"{ROOT}/rooms/{quote(room_id)}/send/{kind}/{quote(number, safe='')}"
        told = await self.request(Method.PUT, path, content)
        return str(told.get("event_id", ""))

    async def show_typing(self, us: Us, room_id: str, seconds: float) -> None:
        path = f"{ROOT}/rooms/{quote(room_id)}/typing/{quote(us.user_id)}"
        await self.request(Method.PUT, path, {"typing": True, "timeout": int(seconds * 1000)})

    async def join(self, room_id: str) -> None:
        await self.request(Method.POST, f"{ROOT}/join/{quote(room_id)}", {})

    async def members(self, room_id: str) -> list[str]:
        told = await self._get(f"/rooms/{quote(room_id)}/joined_members")
        joined = told.get("joined")
        return list(joined) if isinstance(joined, Mapping) else []

    async def upload(self, data: bytes, kind: str, name: str | None) -> str:
        """Where the homeserver keeps it."""
        query = {"filename": name} if name else {}
        headers = {"Content-Type": kind}
        told = await self.request(
            Method.POST, "/_matrix/media/v3/upload", data, headers=headers, query_params=query
        )
        return str(told.get("content_uri", ""))

    async def download(self, place: str, most_bytes: int) -> AsyncIterator[bytes]:
        """From our own homeserver alone, whichever one it came from first. No redirect is followed: it would
        take the token along."""
        try:
            server, media = self.api.parse_mxc_uri(place)
        except ValueError:
            raise errors.FileUnavailable(why="it is nowhere") from None
        url = self.api.base_url / f"_matrix/client/v1/media/download/{server}/{media}"
        headers, read = {"authorization": f"Bearer {self.api.token}"}, 0
        async with self.api.session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status != HTTPStatus.OK:
                raise errors.FileUnavailable(why=f"the homeserver answered {response.status}")
            async for piece in response.content.iter_chunked(PIECE_BYTES):
                read += len(piece)
                if read > most_bytes:
                    raise errors.FileUnavailable(why=f"it is larger than {most_bytes} bytes")
                yield piece

    async def _get(self, path: str) -> Mapping[str, Any]:
        return await self.request(Method.GET, f"{ROOT}{path}")

    async def request(
        self, method: Method, path: str, content: Any = None, *, patience_seconds: float = 0.0, **more: Any
    ) -> Mapping[str, Any]:
        """What the homeserver answers, which is always an object."""
        async with asyncio.timeout(patience_seconds or self._timeout_seconds):
            told = await self.api.request(method, path, content, **more)
        if not isinstance(told, Mapping):
            raise MatrixConnectionError("the homeserver answered with something that is no object")
        return told

    async def close(self) -> None:
        await self.api.session.close()
