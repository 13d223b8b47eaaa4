"""Connections cut and servers killed while the PostgreSQL engine writes: nothing is lost or doubled."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from frontdesk import errors
from frontdesk.model import moves
from frontdesk.model.messages import pack
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.stores.postgres.engine import PostgresEngine
from frontdesk.stores.sessions import Sessions
from frontdesk.stores.transcripts import Transcripts
from frontdesk.testing import postgres
from tests import counts
from tests.integration.engines import opened
from tests.integration.proxy import Cut, Hang, proxied

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WRITERS = 6


class Writer:
    """Appends numbered messages to a session of its own: one in one statement, more in several, of which the
    last go with the commit."""

    def __init__(self, engine: PostgresEngine, name: str, at_once: int = 1) -> None:
        self.engine = engine
        self._at_once = at_once
        self._session = name
        self._transcripts = Transcripts(engine)
        self.written = 0
        self._steps = asyncio.Semaphore(0)

    async def start(self) -> None:
        entry = SessionEntry(
            session_key=self._session, session_id=self._session, created_at=NOW, updated_at=NOW
        )
        move = moves.Start(session=Session(entry=entry, owner="me", peer="me"), ends=EndReason.NEW)
        await Sessions(self.engine).settle(self._session, lambda _: move, now=NOW, new_id=lambda: "none")

    async def append(self) -> None:
        numbers = range(self.written, self.written + self._at_once)
        messages = [pack({"role": "user", "content": str(number)}) for number in numbers]
        assert await self._transcripts.append(self._session, messages, NOW) == self._at_once
        self.written += self._at_once
        self._steps.release()

    async def append_until(self, enough: Callable[[], bool]) -> None:
        while not enough():
            with suppress(errors.StoreUnavailable):  # it was not written
                await self.append()

    async def advance(self, steps: int) -> None:
        """Return when so many messages more have been written."""
        for _ in range(steps):
            await self._steps.acquire()

    async def check(self) -> None:
        """Every message that was confirmed is there, once, in its place."""
        stored = await self._transcripts.load(self._session)
        assert [message["content"] for message in stored] == list(map(str, range(self.written)))


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?schema=test_{uuid4().hex}"


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("cut", Cut)
async def test_cut_write_is_done_once(url: str, cut: Cut, at_once: int) -> None:
    async with proxied(url) as (proxy, through), opened(f"{through}&pool=1") as engine:
        writer = Writer(engine, "one", at_once)
        await writer.start()
        await writer.append()
        for _ in range(3):
            proxy.plan_once(cut)
            await writer.append()
        assert proxy.cuts == 3
        await writer.check()


@pytest.mark.prove
async def test_cuts_at_random_lose_and_double_nothing(url: str) -> None:
    wanted = counts.count(40, 1_000)
    chance = random.Random(wanted)
    async with proxied(url) as (proxy, through), opened(through) as engine:
        writers = [Writer(engine, f"writer{number}", 1 + number % 2) for number in range(WRITERS)]
        for writer in writers:
            await writer.start()
        proxy.plan = lambda: chance.choice([*Cut, *[None] * 15])
        await asyncio.gather(*(writer.append_until(lambda: proxy.cuts >= wanted) for writer in writers))
        proxy.plan = lambda: None
        for writer in writers:
            await writer.check()


async def test_cut_read_is_run_again(url: str) -> None:
    async with proxied(url) as (proxy, through), opened(through) as engine:
        await Writer(engine, "one").start()
        proxy.plan_once(Cut.AT_A_STATEMENT)
        found = await Sessions(engine).find("one")
        assert proxy.cuts == 1
        assert found is not None
        assert found.id == "one"


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """A server of the test's own, whose log reaches the disk when it must and no sooner."""
    try:
        with postgres.running(settings={"wal_writer_delay": "10s"}) as server:
            yield server
    except postgres.PostgresUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.prove
async def test_killed_server_loses_and_doubles_nothing(server: postgres.Server) -> None:
    async with opened(server.url) as engine:
        writers = [Writer(engine, f"writer{number}", 1 + number % 2) for number in range(WRITERS)]
        for writer in writers:
            await writer.start()
        over = asyncio.Event()
        work = asyncio.gather(*(writer.append_until(over.is_set) for writer in writers))
        for _ in range(counts.count(3, 40)):
            await asyncio.gather(*(writer.advance(5) for writer in writers))
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        over.set()
        await work
        for writer in writers:
            await writer.check()


@pytest.mark.parametrize("at_once", [1, 2])
async def test_number_given_again_after_a_crash_is_not_mistaken_for_a_commit(
    server: postgres.Server, at_once: int
) -> None:
    async with proxied(server.url) as (proxy, through), opened(through) as engine:
        writer = Writer(engine, "one", at_once)
        await writer.start()
        proxy.plan_once(Hang.BEFORE_COMMIT)
        work = asyncio.create_task(writer.append())
        await proxy.hanging.wait()
        proxy.refusing = True
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        async with opened(server.url) as other:
            rival = Writer(other, "rival")
            await rival.start()
            for _ in range(5):
                await rival.append()
            proxy.refusing = False
            await work
            await rival.check()
        await writer.check()


@pytest.mark.parametrize("at_once", [1, 2])
async def test_commit_survives_the_crash_that_swallowed_its_answer(
    server: postgres.Server, at_once: int
) -> None:
    async with proxied(server.url) as (proxy, through), opened(through) as engine:
        writer = Writer(engine, "one", at_once)
        await writer.start()
        proxy.plan_once(Hang.AFTER_THE_ANSWER)
        work = asyncio.create_task(writer.append())
        await proxy.hanging.wait()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await work
        await writer.check()


async def test_work_waits_while_the_server_restarts(server: postgres.Server) -> None:
    async with opened(server.url) as engine:
        writer = Writer(engine, "one")
        await writer.start()
        await asyncio.to_thread(server.stop)
        work = asyncio.create_task(writer.append())
        await asyncio.to_thread(server.start)
        await work
        await writer.check()


async def test_server_that_stays_away_is_named_and_welcome_back(server: postgres.Server) -> None:
    async with opened(server.url) as engine:
        writer = Writer(engine, "one")
        await writer.start()
        await asyncio.to_thread(server.stop)
        with pytest.raises(errors.StoreUnavailable, match="127"):
            await writer.append()
        await asyncio.to_thread(server.start)
        await writer.append()
        await writer.check()
