"""The PostgreSQL engine on a real server."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.stores.postgres import connections, retries
from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.sql import load_queries
from frontdesk.stores.work import value as value_of
from tests.integration.engines import opened
from tests.integration.proxy import proxied

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database address with a schema of its own."""
    return f"{postgres_url}?schema=test_{uuid4().hex}"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Another client of the same schema, which never loses a deadlock."""
    address = parse_url(url)
    settings = {"search_path": address.schema, "deadlock_timeout": "1h"}
    connection = await asyncpg.connect(address.dsn, server_settings=settings)
    try:
        yield connection
    finally:
        await connection.close()


def put(key: str, value: str) -> Work[str]:
    yield "learn_alias", {"identifier": key, "canonical": value}
    return value


def get(key: str) -> Work[str | None]:
    return value_of("canonical", identifier=key)


def lock(key: str) -> Work[None]:
    yield "lock_key", {"key": key}


async def holds(connection: asyncpg.Connection, key: str) -> None:
    """Take the lock that the work `lock` asks for."""
    await connection.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", key)


async def lets_go(connection: asyncpg.Connection) -> None:
    await connection.execute("SELECT pg_advisory_unlock_all()")


async def somebody_waits(connection: asyncpg.Connection, count: int = 1) -> None:
    """Return when so many others wait for a lock of this connection, directly or not."""
    query = """SELECT count(*) FROM pg_stat_activity WHERE pg_blocking_pids(pid) <> '{}'"""
    while await connection.fetchval(query) < count:
        pass


async def test_written_work_is_read_back(url: str) -> None:
    async with opened(url) as engine:
        assert await engine.write(partial(put, "a", "one")) == "one"
        assert await engine.read(partial(get, "a")) == "one"


async def test_rows_are_plain_tuples_without_the_transaction_number(url: str) -> None:
    def learn() -> Work[Any]:
        learned = yield "learn_alias", {"identifier": "a", "canonical": "b"}
        return learned, (yield "canonical", {"identifier": "a"})

    async with opened(url) as engine:
        assert await engine.write(learn) == ([()], [("b", "a")])
        assert await engine.write(learn) == ([], [("b", "a")])  # nobody needs to wait for it


async def test_error_in_the_work_rolls_back_and_reaches_the_caller(url: str) -> None:
    def fail() -> Work[None]:
        yield from put("a", "one")
        raise errors.TitleTaken(title="x")

    async with opened(url) as engine:
        with pytest.raises(errors.TitleTaken):
            await engine.write(fail)
        assert await engine.read(partial(get, "a")) is None


async def test_work_without_statements_runs(url: str) -> None:
    def nothing() -> Work[int]:
        yield from ()
        return 1

    async with opened(url) as engine:
        assert await engine.write(nothing) == await engine.read(nothing) == 1


async def test_every_query_is_understood_and_tells_its_number_last(url: str) -> None:
    async with opened(url), connected(url) as connection:
        for query in load_queries("postgres").values():
            names = [each.name for each in (await connection.prepare(query.sql)).get_attributes()]
            assert "xid" not in names[:-1]


async def test_several_questions_of_a_read_are_answered_from_one_snapshot(url: str) -> None:
    def look_twice() -> Work[tuple[str | None, str | None]]:
        before = yield from get("a")
        yield from lock("door")
        return before, (yield from get("a"))

    async with opened(url) as engine, connected(url) as other:
        for before, after in ((None, "one"), ("one", "two")):
            await holds(other, "door")
            looking = asyncio.create_task(engine.read(look_twice))
            await somebody_waits(other)
            await engine.write(partial(put, "a", after))
            await lets_go(other)
            assert await looking == (before, before)


async def test_read_cannot_write(url: str) -> None:
    def sneak() -> Work[None]:
        yield from get("a")
        yield from put("a", "one")

    async with opened(url) as engine:
        with pytest.raises(errors.ReadOnlyStore):
            await engine.read(sneak)


async def test_deadlock_is_run_again(url: str) -> None:
    def change_both() -> Work[None]:
        yield from put("b", "engine")
        yield from lock("door")
        yield from put("a", "engine")

    async with opened(f"{url}&deadlock_timeout=10ms") as engine, connected(url) as other:
        await engine.write(partial(put, "a", ""))
        await engine.write(partial(put, "b", ""))
        async with connected(url) as door:
            await holds(door, "door")
            work = asyncio.create_task(engine.write(change_both))
            await somebody_waits(door)
            transaction = other.transaction()
            await transaction.start()
            await other.execute("UPDATE aliases SET canonical = 'other' WHERE identifier = 'a'")
            rival = asyncio.create_task(
                other.execute("UPDATE aliases SET canonical = 'other' WHERE identifier = 'b'")
            )
            await somebody_waits(door, count=2)
            await lets_go(door)
            await rival
            await transaction.commit()
            await work
        assert await engine.read(partial(get, "a")) == await engine.read(partial(get, "b")) == "engine"


async def test_unique_violation_in_a_race_is_run_again_and_sees_the_other(url: str) -> None:
    attempts = itertools.count(1)

    def insert_once() -> Work[tuple[int, bool]]:
        number = next(attempts)
        known = yield "titled", {"owner": "me", "title_key": "x"}
        if not known:
            yield "set_title", {"session_id": "mine", "title": "X", "title_key": "x"}
        return number, not known

    async with opened(url) as engine, connected(url) as other:
        await other.execute(
            "INSERT INTO sessions (id, session_key, owner, peer, chat_type, created_at, updated_at,"
            " active_minute, details) SELECT id, id, 'me', 'me', 'dm', 0, 0, 0, '{}'"
            " FROM (VALUES ('mine'), ('yours')) AS two (id)"
        )
        transaction = other.transaction()
        await transaction.start()
        await other.execute("UPDATE sessions SET title = 'X', title_key = 'x' WHERE id = 'yours'")
        work = asyncio.create_task(engine.write(insert_once))
        async with connected(url) as watcher:
            await somebody_waits(watcher)
        await transaction.commit()
        assert await work == (2, False)


@asynccontextmanager
async def raising(url: str, state: str, times: int) -> AsyncIterator[None]:
    """The next inserts into the aliases fail with an error of that state."""
    async with connected(url) as connection:
        await connection.execute(f"""
            CREATE SEQUENCE tries;
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF nextval('tries') <= {times} THEN
                    RAISE EXCEPTION 'asked to' USING ERRCODE = '{state}';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER fail BEFORE INSERT ON aliases FOR EACH ROW EXECUTE FUNCTION fail();
        """)
        yield


@pytest.mark.parametrize("state", ["40001", "40P01", "23505", "57P01", "53300"])
async def test_passing_trouble_is_run_again(url: str, state: str) -> None:
    async with opened(url) as engine, raising(url, state, times=3):
        assert await engine.write(partial(put, "a", "one")) == "one"
        assert await engine.read(partial(get, "a")) == "one"


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("40001", errors.StoreFailed),
        ("53100", errors.StoreFull),
        ("58030", errors.StoreFailed),
        ("25006", errors.ReadOnlyStore),
    ],
)
async def test_lasting_trouble_has_its_error_and_leaves_nothing(
    url: str, state: str, error: type[errors.StoreError]
) -> None:
    async with opened(f"{url}&pool=1") as engine, raising(url, state, times=1000):
        with pytest.raises(error):
            await engine.write(partial(put, "a", "one"))
        assert await engine.read(partial(get, "a")) is None


async def test_value_of_the_wrong_type_is_a_failure_and_no_outage(url: str) -> None:
    async with opened(url) as engine:
        with pytest.raises(errors.StoreRefused):
            await engine.write(partial(put, "a", 1))  # type: ignore[arg-type]


async def test_cancelled_write_is_rolled_back_and_gives_its_connection_back(url: str) -> None:
    def wait_halfway() -> Work[None]:
        yield from put("a", "one")
        yield from lock("door")

    async with opened(f"{url}&pool=1") as engine, connected(url) as other:
        await holds(other, "door")
        work = asyncio.create_task(engine.write(wait_halfway))
        await somebody_waits(other)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert await engine.read(partial(get, "a")) is None
        assert await engine.write(partial(put, "a", "two")) == "two"


async def test_close_waits_for_running_work_and_refuses_new(url: str) -> None:
    def wait_first() -> Work[str]:
        yield from lock("door")
        return (yield from put("a", "one"))

    async with opened(url) as engine, connected(url) as other:
        await holds(other, "door")
        work = asyncio.create_task(engine.write(wait_first))
        await somebody_waits(other)
        closings = [asyncio.create_task(engine.close()) for _ in range(2)]
        await asyncio.wait(closings, timeout=0)
        for refused in (engine.read(partial(get, "a")), engine.write(partial(put, "a", "two"))):
            with pytest.raises(errors.StoreClosed):
                await refused
        assert not any(closing.done() for closing in closings)
        await lets_go(other)
        assert await work == "one"
        await asyncio.gather(*closings)


async def test_lazy_commit_does_not_wait_for_the_disk(url: str) -> None:
    async with proxied(url) as (proxy, through), opened(through) as engine:
        await engine.write(partial(put, "a", "one"))
        await engine.write(partial(put, "a", "one"), lazy=True)
        await engine.write(partial(put, "a", "two"))
        assert proxy.commits[-3:] == ["COMMIT", "SET LOCAL synchronous_commit TO off; COMMIT", "COMMIT"]
        assert await engine.read(partial(get, "a")) == "two"


async def test_posted_work_is_done_before_later_work_unless_it_is_superseded(url: str) -> None:
    async with opened(url) as engine:
        await engine.post("here", partial(put, "a", "one"))
        await engine.post("here", partial(put, "a", "two"))
        assert await engine.read(partial(get, "a")) == "two"
        await engine.post("here", partial(put, "a", "three"))
        await engine.write(partial(put, "b", "one"), supersedes="here")
        assert await engine.read(partial(get, "a")) == "two"


async def test_posted_work_is_done_by_the_clock_and_at_the_end(url: str) -> None:
    query = "SELECT identifier FROM aliases WHERE identifier = $1"
    async with opened(url) as engine, connected(url) as other:
        await engine.post("here", partial(put, "a", "one"))
        while await other.fetchval(query, "a") is None:
            pass
        await engine.post("here", partial(put, "b", "one"))
        await engine.close()
        assert await other.fetchval(query, "b") == "b"
        with pytest.raises(errors.StoreClosed):
            await engine.post("here", partial(put, "c", "one"))


async def test_posted_work_that_fails_stops_nobody(url: str) -> None:
    async with opened(url) as engine:
        await engine.post("here", partial(put, "a", 1))  # type: ignore[arg-type]
        assert await engine.write(partial(put, "b", "one")) == "one"


async def test_more_work_than_connections_waits_its_turn(url: str) -> None:
    async with opened(f"{url}&pool=2") as engine, connected(url) as other:
        await asyncio.gather(*(engine.write(partial(put, str(n), "x")) for n in range(40)))
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'frontdesk' AND query LIKE $1"
        assert await other.fetchval("SELECT count(*) FROM aliases") == 40
        assert await other.fetchval(query, "%") <= 2


async def test_connection_that_nobody_needs_is_ended_and_made_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "UNUSED_SECONDS", 0.05)
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'frontdesk' AND query LIKE $1"
    async with opened(url) as engine, connected(url) as other:
        await asyncio.gather(*(engine.write(partial(put, url, "x")) for _ in range(3)))
        while await other.fetchval(query, "%aliases%"):
            pass
        assert await engine.read(partial(get, url)) == "x"


async def test_waiting_work_is_told_when_no_connection_becomes_free(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ACQUIRE_SECONDS", 0.01)
    monkeypatch.setattr(retries, "OUTAGE_SECONDS", 0.0)
    async with opened(f"{url}&pool=1") as engine, connected(url) as other:
        await holds(other, "door")
        work = asyncio.create_task(engine.write(partial(lock, "door")))
        await somebody_waits(other)
        with pytest.raises(errors.StoreUnavailable):
            await engine.read(partial(get, "a"))
        await lets_go(other)
        await work
        assert await engine.write(partial(put, "a", "one")) == "one"
