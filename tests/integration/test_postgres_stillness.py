"""A node that stands still in the middle of its work: the others soon go on, and so does it once awake."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

import asyncpg
import pytest

from frontdesk.contracts.store import Work
from frontdesk.stores.postgres import connections, open_store, retries
from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.engine import PostgresEngine
from frontdesk.stores.work import value as value_of
from tests.integration.engines import opened
from tests.integration.proxy import Proxy, proxied

PATIENCE_SECONDS = 20.0
"""Far less than nodes had to wait for one that stood still, and far more than they have to now."""
STALL_SECONDS = 1.5 * connections.IDLE_TRANSACTION_MILLISECONDS / 1000
MANY_BYTES = 40_000_000


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?schema=test_{uuid4().hex}"


class Sleeper:
    """A node whose connections all stand still as soon as its work has the lock, once it is tired."""

    def __init__(self, engine: PostgresEngine, proxy: Proxy) -> None:
        self.engine = engine
        self.tired = False
        self.stands = asyncio.Event()
        self._proxy = proxy

    def stand_still(self) -> None:
        if self.tired:
            self.tired = False
            self._proxy.hearing.clear()
            self.stands.set()

    def wake(self) -> None:
        self._proxy.hearing.set()

    def write(self, key: str, value: str) -> Work[str]:
        yield "lock_key", {"key": "door"}
        self.stand_still()
        yield "learn_alias", {"identifier": key, "canonical": value}
        return value

    def read_much(self) -> Work[int]:
        yield "lock_key", {"key": "door"}
        self.stand_still()
        (found,) = yield "session_locked", {"session_id": "much"}
        return max(len(each) for each in found if isinstance(each, bytes))


@asynccontextmanager
async def sleeping(url: str) -> AsyncIterator[Sleeper]:
    async with proxied(url) as (proxy, through), opened(through) as engine:
        sleeper = Sleeper(engine, proxy)
        try:
            yield sleeper
        finally:
            sleeper.wake()


def pass_door() -> Work[str]:
    yield "lock_key", {"key": "door"}
    return "passed"


def get(key: str) -> Work[str | None]:
    return value_of("canonical", identifier=key)


async def passes_soon(engine: PostgresEngine) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await engine.write(pass_door) == "passed"


@pytest.mark.parametrize("prepared", [True, False], ids=["between statements", "within a statement"])
async def test_node_that_stands_still_loses_its_locks_and_writes_when_it_wakes(
    url: str, prepared: bool
) -> None:
    """What a connection runs for the first time is sent in two parts, between which the node may stop."""
    async with opened(url) as healthy, sleeping(f"{url}&pool=1") as sleeper:
        if prepared:
            await sleeper.engine.write(partial(sleeper.write, "b", "two"))
        sleeper.tired = True
        work = asyncio.create_task(sleeper.engine.write(partial(sleeper.write, "a", "one")))
        await sleeper.stands.wait()
        await passes_soon(healthy)
        assert await healthy.read(partial(get, "a")) is None
        sleeper.wake()
        assert await work == "one"
        assert await healthy.read(partial(get, "a")) == "one"


async def test_what_a_node_waited_for_when_it_stopped_is_not_kept_for_it(url: str) -> None:
    async with opened(url) as healthy, sleeping(url) as sleeper:
        sleeper.tired = True
        waiting = [
            asyncio.create_task(sleeper.engine.write(partial(sleeper.write, str(number), "one")))
            for number in range(links_of(url))
        ]
        await sleeper.stands.wait()
        await passes_soon(healthy)
        sleeper.wake()
        assert await asyncio.gather(*waiting) == ["one"] * len(waiting)


def links_of(url: str) -> int:
    return parse_url(url).pool


async def add_much(url: str) -> None:
    """A session whose row does not fit into what a connection holds for a client that takes nothing."""
    address = parse_url(url)
    connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
    await connection.execute(
        "INSERT INTO sessions (id, session_key, owner, peer, chat_type, created_at, updated_at,"
        " active_minute, details) SELECT 'much', 'k', 'me', 'me', 'dm', 0, 0, 0,"
        f" convert_to(repeat(' ', {MANY_BYTES}), 'UTF8')"
    )
    await connection.close()


async def test_node_that_stops_in_the_middle_of_a_long_answer_loses_its_locks(url: str) -> None:
    async with opened(url) as healthy, sleeping(f"{url}&pool=1") as sleeper:
        await add_much(url)
        await sleeper.engine.write(sleeper.read_much)
        sleeper.tired = True
        work = asyncio.create_task(sleeper.engine.write(sleeper.read_much))
        await sleeper.stands.wait()
        await passes_soon(healthy)
        sleeper.wake()
        assert await work == MANY_BYTES


@pytest.mark.parametrize("slow_times", [1, 2])
async def test_work_of_a_node_that_was_too_busy_is_done_again_unnoticed(url: str, slow_times: int) -> None:
    runs: list[str] = []

    def think() -> Work[str]:
        runs.append("run")
        yield "learn_alias", {"identifier": "a", "canonical": str(len(runs))}
        if len(runs) <= slow_times:
            time.sleep(STALL_SECONDS)  # nothing else gets to run, as when the machine is busy
        yield "learn_alias", {"identifier": "b", "canonical": str(len(runs))}
        return str(len(runs))

    async with opened(url) as engine:
        last = await engine.write(think)
        assert await engine.read(partial(get, "a")) == await engine.read(partial(get, "b")) == last
        assert len(runs) == 2  # the second time it may take longer


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[Callable[[], object]]:
    """The lock is had by somebody who is at work; called, they let go."""
    async with opened(url) as other:
        gate, has_it = asyncio.Event(), asyncio.Event()

        def keep() -> Work[None]:
            yield "lock_key", {"key": "door"}
            has_it.set()
            while not gate.is_set():
                yield from get("a")

        work = asyncio.create_task(other.write(keep))
        await has_it.wait()
        try:
            yield gate.set
        finally:
            gate.set()
            await work


async def test_lock_that_others_have_for_long_is_waited_for(url: str) -> None:
    async with opened(url) as engine, locked(url) as let_go:
        waiting = asyncio.create_task(engine.write(pass_door))
        await asyncio.wait({waiting}, timeout=retries.OUTAGE_SECONDS + 2)
        assert not waiting.done()
        let_go()
        assert await waiting == "passed"


async def test_node_knows_that_others_may_have_taken_it_for_gone(url: str) -> None:
    store = await open_store(url)
    try:
        await store.nodes.join("test", datetime.now(UTC))
        before = store.nodes.standing
        assert before is not None
        await end_listener(url)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while store.nodes.standing in (None, before):  # noqa: ASYNC110 - it happens in the server
                await asyncio.sleep(0.01)
    finally:
        await store.close()


async def end_listener(url: str) -> None:
    """Cut the connection that shows that a node lives."""
    address = parse_url(url)
    connection = await asyncpg.connect(address.dsn)
    ended = await connection.fetchval(
        "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN pg_locks l USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.mode = 'ShareLock' AND l.classid = $1::bigint::oid",
        await connection.fetchval("SELECT hashtext($1)::bigint & 4294967295", f"frontdesk_{address.schema}"),
    )
    assert ended
    await connection.close()
