"""Calls of the Bot API: one try each, bounded in time and size, and honest about what became of them."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
import telegram
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from frontdesk.channels.telegram.options import Options
from frontdesk.model import deliveries

MOST_ANSWER_BYTES = 32 * 1024 * 1024
MOST_CONNECTIONS = 20
UPLOAD_SECONDS = 120.0
MOST_RETRY_AFTER_SECONDS = 24 * 3600.0
REFUSED_TOKEN_SECONDS = 30.0
NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
WORTH_ANOTHER_TRY = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
TOKEN_REFUSED = "Telegram refuses the bot's token: get a new one from @BotFather"
TOKEN_IN_ADDRESS = re.compile(r"/bot[0-9]+:[A-Za-z0-9_-]+")


def hide_tokens(record: logging.LogRecord) -> bool:
    """Take tokens out of what libraries log: each address that is called has the bot's in it."""
    record.msg, record.args = TOKEN_IN_ADDRESS.sub("/bot…", record.getMessage()), ()
    return True


for _name in ("httpx", "telegram.Bot"):
    logging.getLogger(_name).addFilter(hide_tokens)


class CallRefused(TelegramError):
    """The platform said no: nothing happened."""

    def __init__(self, status: int, why: str, wait: float | None = None, moved_to: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.wait = wait
        self.moved_to = moved_to

    def says(self, *words: str) -> bool:
        return any(each in self.message.lower() for each in words)

    @property
    def token_refused(self) -> bool:
        return self.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND)


class NeverLeft(TelegramError):
    """The request did not reach the platform."""


class Unclear(TelegramError):
    """The request left, and nobody knows what became of it."""


def judge(error: TelegramError) -> deliveries.NotSent | deliveries.Unknown:
    """What is known of a message whose call failed."""
    if isinstance(error, NeverLeft):
        return deliveries.NotSent(why=error.message)
    if not isinstance(error, CallRefused) or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return deliveries.Unknown(why=error.message)
    if error.status == HTTPStatus.UNAUTHORIZED:
        return deliveries.NotSent(
            why=TOKEN_REFUSED, retry_after_seconds=REFUSED_TOKEN_SECONDS, whole_account=True
        )
    hopeless = error.wait is None and error.status not in WORTH_ANOTHER_TRY
    return deliveries.NotSent(why=error.message, retry_after_seconds=error.wait, hopeless=hopeless)


class OneTry(BaseRequest):
    """How the library's bot reaches the platform. Nothing is tried twice here, redirects are not followed,
    proxies of the environment not used."""

    answered: tuple[str, datetime] | None = None
    """The time by the platform's clock when it last answered, as it wrote that, and by ours."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(options.timeout_seconds, connect=options.timeout_seconds / 3),
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
            proxy=options.proxy() if options.proxy else None,
            follow_redirects=False,
            trust_env=False,
        )

    @property
    def read_timeout(self) -> float:
        return self._options.timeout_seconds

    async def initialize(self) -> None:
        pass

    async def shutdown(self) -> None:
        await self._client.aclose()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = None,
        *_: Any,
        **__: Any,
    ) -> tuple[int, bytes]:
        """The answer when the platform said yes; else one of our errors."""
        files = request_data.multipart_data if request_data else None
        told = request_data.json_parameters if request_data else None
        seconds = read_timeout if isinstance(read_timeout, float) else self._options.timeout_seconds
        request = self._client.build_request(
            method, url, data=told, files=files, timeout=self._timeout(seconds)
        )
        try:
            async with asyncio.timeout(UPLOAD_SECONDS if files else seconds):
                status, body = await self._exchange(request)
        except TimeoutError:
            raise Unclear(f"no answer within {seconds:g} seconds") from None
        except NEVER_LEFT as error:
            raise NeverLeft(str(error) or type(error).__name__) from error
        except httpx.HTTPError as error:
            raise Unclear(type(error).__name__) from error
        if status != HTTPStatus.OK:
            raise _refusal(status, body)
        return status, body

    async def _exchange(self, request: httpx.Request) -> tuple[int, bytes]:
        response = await self._client.send(request, stream=True)
        if told := response.headers.get("date"):
            self.answered = told, datetime.now(UTC)
        body = bytearray()
        try:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MOST_ANSWER_BYTES:
                    raise Unclear("the answer is too long")
        finally:
            await response.aclose()
        return response.status_code, bytes(body)

    def _timeout(self, seconds: float) -> httpx.Timeout:
        return httpx.Timeout(seconds, connect=min(seconds, self._options.timeout_seconds) / 3)

    @staticmethod
    def parse_json_payload(payload: bytes) -> Any:
        """Without a word in the log: what people write does not belong there."""
        try:
            read = json.loads(payload)
        except (ValueError, RecursionError):
            raise Unclear("the answer is not valid JSON") from None
        if not isinstance(read, dict) or "result" not in read:
            raise Unclear("the answer has no result")
        return read

    async def download(self, url: str) -> AsyncIterator[bytes]:
        """The bytes at an address of the platform."""
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code != HTTPStatus.OK:
                    raise CallRefused(response.status_code, f"status {response.status_code}")
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise Unclear(type(error).__name__) from error


def _refusal(status: int, body: bytes) -> TelegramError:
    try:
        read = json.loads(body)
        parameters = read.get("parameters") or {}
        why, wait = str(read.get("description") or status), parameters.get("retry_after")
        moved = parameters.get("migrate_to_chat_id")
        wait = min(float(wait), MOST_RETRY_AFTER_SECONDS) if wait is not None else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return CallRefused(status, f"the platform answered {status}")
    return CallRefused(status, why[:300], wait, moved if isinstance(moved, int) else None)


class Bot(telegram.Bot):
    """The library's bot, with what it does not have: updates as they came, and files in pieces."""

    def __init__(self, token: str, options: Options) -> None:
        line, host = OneTry(options), options.api_url.rstrip("/")
        super().__init__(token, base_url=f"{host}/bot", request=line, get_updates_request=line)
        self._line = line
        self._files_url = f"{host}/file/bot{token}"

    @property
    def answered(self) -> tuple[str, datetime] | None:
        return self._line.answered

    async def fetch_updates(
        self, offset: int | None, seconds: float, kinds: Sequence[str]
    ) -> Sequence[object]:
        """What is new, one by one as the platform wrote it; an offset says that what is below is taken."""
        asked = {"offset": offset, "timeout": int(seconds), "allowed_updates": list(kinds)}
        told = {name: each for name, each in asked.items() if each is not None}
        found = await self._post("getUpdates", told, read_timeout=seconds + self._line.read_timeout)
        return found if isinstance(found, list) else []

    async def call(self, method: str, **fields: Any) -> Any:
        """What the platform answers, as it came: of a message that it has taken, nothing is left to fail."""
        return await self._post(method, {name: each for name, each in fields.items() if each is not None})

    async def hang_up(self) -> None:
        await self._line.shutdown()

    async def find_file(self, file_id: str) -> str:
        """Where the platform has a file now, below its own address."""
        found = await self.call("getFile", file_id=file_id)
        path = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(path, str) or path.startswith("/") or ".." in path:
            raise Unclear("the platform names no file")
        return path

    def fetch_file(self, path: str) -> AsyncIterator[bytes]:
        return self._line.download(f"{self._files_url}/{quote(path)}")


class Bots:
    """The bot of the token as it is now: a token that was changed counts from the next call on."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._bot: Bot | None = None

    async def now(self) -> Bot:
        token = self._options.token()
        if self._bot is None or self._bot.token != token:
            await self.close()
            self._bot = Bot(token, self._options)
        return self._bot

    async def close(self) -> None:
        bot, self._bot = self._bot, None
        if bot is not None:
            await bot.hang_up()
