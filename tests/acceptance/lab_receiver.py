"""The laboratory's receiver of callbacks: it verifies what it is sent, and is not always well."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from frontdesk.formats import webhooks
from tests.acceptance.lab_checks import Arrived

SLOW_SECONDS = 0.2
TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"
TROUBLED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"


class Mood(StrEnum):
    """What the receiver does with a callback. One that it did not answer well may have been taken or not."""

    WELL = "well"
    SLOW = "slow"
    TROUBLED = "troubled"
    """Not taken, and said so."""
    CUT_BEFORE = "cut before"
    """Not taken, and nothing said."""
    CUT_AFTER = "cut after"
    """Taken, and nothing said."""


BAD_MOODS = tuple(mood for mood in Mood if mood is not Mood.WELL)


class Receiver:
    def __init__(self, secret: str, trouble: float) -> None:
        """``trouble`` is the share of callbacks that are not met well."""
        self.arrived: list[Arrived] = []
        self.answered: Counter[str] = Counter()
        """The number of the latest message in each chat that was answered."""
        self.trouble = trouble
        self._secret = secret
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The address of the receiver."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/answers"
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._answer(reader, writer):
                    await writer.drain()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(": ") for line in head if line)
        headers = {name.lower(): value for name, _, value in pairs}
        body = await reader.readexactly(int(headers["content-length"]))
        mood = random.choice(BAD_MOODS) if random.random() < self.trouble else Mood.WELL
        if mood in (Mood.WELL, Mood.SLOW, Mood.CUT_AFTER):
            self._take(headers, body)  # before it rests: the next one may come meanwhile, from another life
        if mood is Mood.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
        if mood in (Mood.CUT_BEFORE, Mood.CUT_AFTER):
            return False
        writer.write(TROUBLED if mood is Mood.TROUBLED else TAKEN)
        return True

    def _take(self, headers: dict[str, str], body: bytes) -> None:
        signed_at = datetime.fromtimestamp(
            int(headers["webhook-timestamp"]), UTC
        )  # by a clock that may be off
        delivery_id = webhooks.verify([self._secret], headers, body, now=signed_at)
        told = msgspec.json.decode(body)
        if told["final"] and told["in_reply_to"]:
            chat, _, number = told["in_reply_to"].rpartition("-")
            self.answered[chat] = max(self.answered[chat], int(number))
        self.arrived.append(
            Arrived(
                delivery_id=delivery_id,
                chat=told["chat_id"],
                event_id=told["in_reply_to"],
                kind=told["kind"],
                text=told["text"],
                final=told["final"],
            )
        )
