"""Streams of events over real HTTP: pushed to their connections, and nobody's task in between."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.flow.harness import PATIENCE_SECONDS, House, open_house, poll
from tests.siting import ANN, BEN, ServedSite, serving_site

REQUEST = b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\ncookie: who=%s\r\n\r\n"
COUNT = 30


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(f"sqlite:///{tmp_path}/state.db") as opened:
        yield opened


@pytest.fixture
async def site(house: House) -> AsyncIterator[ServedSite]:
    async with serving_site(house) as served:
        yield served


class Connection:
    """Somebody who follows, on a connection of their own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._reader = reader

    async def until(self, sign: bytes) -> bytes:
        """All that comes up to a sign."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._reader.readuntil(sign)

    async def rest(self) -> bytes:
        """All that still comes, to the end of the connection, however it ends."""
        came = b""
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(ConnectionResetError):
                while piece := await self._reader.read(1_000):
                    came += piece
        return came


@asynccontextmanager
async def following(site: ServedSite, who: bytes = b"ann", then: bytes = b"") -> AsyncIterator[Connection]:
    address = urlsplit(site.url)
    made = Connection(*await asyncio.open_connection(address.hostname, address.port))
    try:
        made.writer.write(REQUEST % who + then)
        await made.until(b"id: ")
        yield made
    finally:
        made.writer.transport.abort()
        with suppress(ConnectionResetError):
            await made.writer.wait_closed()


async def count_of(site: ServedSite, count: int) -> None:
    """Until so many streams are open."""

    async def look() -> bool | None:
        return len(site.streams) == count or None

    await poll(look)


async def test_idle_streams_are_nobodys_tasks_and_hear_what_is_theirs(house: House, site: ServedSite) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(following(site))
        await count_of(site, 1)
        tasks = len(asyncio.all_tasks())

        async def is_quiet() -> bool | None:
            return len(asyncio.all_tasks()) <= tasks or None

        async with AsyncExitStack() as crowd:
            others = [await crowd.enter_async_context(following(site, b"ben")) for _ in range(COUNT)]
            await poll(is_quiet)
            receipt = await house.say("hello", "ann")
            assert receipt.turn_id.encode() in await first.until(b'"state":"sent"')
            await house.say("hello", "ben")
            for each in others:
                assert b"matrix:ann" not in await each.until(b'"state":"sent"')
        await count_of(site, 1)


async def test_streams_end_whole_when_we_close(house: House) -> None:
    async with serving_site(house) as served, following(served) as connection:
        async with served.visiting(BEN) as ben, ben.stream("GET", "/api/v1/events") as answer:
            pieces = answer.aiter_text()
            assert "id: " in await anext(pieces)
            served.streams.close()
            assert [piece async for piece in pieces] == []
        assert (await connection.rest()).endswith(b"0\r\n\r\n")
        await count_of(served, 0)


async def test_who_knows_no_pieces_is_told_to_the_end_of_the_connection(house: House) -> None:
    async with serving_site(house) as served:
        address = urlsplit(served.url)
        old = Connection(*await asyncio.open_connection(address.hostname, address.port))
        old.writer.write((REQUEST % b"ann").replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, first = await old.until(b"\r\n\r\n"), await old.until(b"\n\n")
        assert b"connection: close" in head
        assert b"transfer-encoding" not in head
        assert first.startswith(b": here\n")
        await count_of(served, 1)
        receipt = await house.say("hello", "ann")
        told = await old.until(b'"state":"sent"')
        assert receipt.turn_id.encode() in told
        served.streams.close()
        assert b"\r\n" not in first + told + await old.rest()
        old.writer.close()


async def test_who_knows_no_pieces_gets_any_stream_to_the_end_of_the_connection(
    house: House, site: ServedSite
) -> None:
    receipt = await house.say("hello", "ann")
    await house.finished(receipt.turn_id)
    address = urlsplit(site.url)
    for path in (f"/api/v1/turns/{receipt.turn_id}/events", "/api/v1/sessions"):
        old = Connection(*await asyncio.open_connection(address.hostname, address.port))
        asked = (REQUEST % b"ann").replace(b"/api/v1/events HTTP/1.1", path.encode() + b" HTTP/1.0")
        old.writer.write(asked)
        head, body = await old.until(b"\r\n\r\n"), await old.rest()
        assert head.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in head
        assert b"transfer-encoding" not in head
        assert b"\r\n" not in body
        assert body.endswith(b"\n\n" if b"event-stream" in head else b"}")
        old.writer.close()


async def test_stream_before_another_request_is_like_any_answer(house: House, site: ServedSite) -> None:
    async with following(site, then=REQUEST % b"ben") as connection:
        await house.say("hello", "ann")
        assert b"matrix:ann" in await connection.until(b'"state":"sent"')
    await count_of(site, 0)


async def test_what_is_sent_behind_a_stream_is_not_listened_to(house: House, site: ServedSite) -> None:
    async with following(site) as connection:
        await count_of(site, 1)
        connection.writer.write(REQUEST % b"ben")
        await house.say("hello", "ann")
        assert b"HTTP/1.1" not in await connection.until(b'"state":"sent"')
        connection.writer.write(b"x" * 200_000)
        assert b"HTTP/1.1" not in await connection.rest()
        await count_of(site, 0)


async def test_stream_goes_on_where_it_was_cut(house: House, site: ServedSite) -> None:
    async with site.visiting(ANN) as ann:
        async with ann.stream("GET", "/api/v1/events") as answer:
            opening = await anext(answer.aiter_text())
        place = opening.rpartition("id: ")[2].strip()
        receipt = await house.say("hello", "ann")
        await house.finished(receipt.turn_id)
        async with ann.stream("GET", "/api/v1/events", headers={"last-event-id": place}) as answer:
            assert receipt.turn_id in await anext(answer.aiter_text())


async def test_stream_about_several_things_tells_of_these_alone(house: House, site: ServedSite) -> None:
    async with site.visiting(ANN) as ann:
        twice = await ann.get("/api/v1/events?about=turn&about=delivery")
        assert twice.status_code == 400
        async with ann.stream("GET", "/api/v1/events?about=turn,delivery") as answer:
            pieces = answer.aiter_text()
            told = await anext(pieces)
            await house.say("hello", "ann")
            while '"state":"sent"' not in told:
                told += await anext(pieces)
    assert set(re.findall("^event: (.*)$", told, re.MULTILINE)) == {"here", "turn", "delivery"}
