"""What is sent to PostgreSQL ahead of the next question."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model import lanes
from frontdesk.stores.lanes import fence, hold, take_lane
from frontdesk.stores.postgres import ahead
from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.postgres.connections import ServerConnection, connect, disconnect
from frontdesk.stores.postgres.transactions import USUAL, silenced
from frontdesk.stores.sql import load_queries
from frontdesk.stores.work import value as value_of
from tests.integration.engines import opened

COLUMNS = "b bool, y bytea, f float8, s int2, i int4, n int8, j jsonb, t text"
KEEP = "INSERT INTO kept VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?schema=test_{uuid4().hex}"


@pytest.fixture
async def link(postgres_url: str) -> AsyncIterator[ServerConnection]:
    link = await connect(parse_url(postgres_url))
    await link.execute(f"CREATE TEMP TABLE kept ({COLUMNS})")
    yield link
    await disconnect(link)


async def send(link: ServerConnection, *values: Any) -> None:
    prepared = await link.prepare(KEEP, name="keep")
    message = ahead.Silent("keep", prepared.get_parameters())(values)
    assert message is not None
    link.send_ahead(message)
    assert await link.fetchval("SELECT 1") == 1


@pytest.mark.parametrize(
    "values",
    [
        (True, b"\0\\x'\xff", 0.1, -1, 2**31 - 1, -(2**63), '{"a": 1}', "it's \\ \N{SNOWMAN}\n"),
        (False, b"", float("-inf"), 0, -5, 2**63 - 1, "null", ""),
        (None,) * 8,
        (True, bytes(range(256)) * 1_000, 1e-300, 1, 1, 1, "[]", "x" * 100_000),
    ],
)
async def test_values_arrive_as_they_are(link: ServerConnection, values: tuple[Any, ...]) -> None:
    await send(link, *values)
    assert [tuple(row) for row in await link.fetch("SELECT * FROM kept")] == [values]


@pytest.mark.parametrize(
    "value", [1, b"bytes", "lone \ud800 half", ["list"]], ids=["number", "bytes", "half", "list"]
)
async def test_value_that_is_not_written_here_is_left_to_the_driver(
    link: ServerConnection, value: object
) -> None:
    prepared = await link.prepare("INSERT INTO kept (t) VALUES ($1)")
    assert ahead.Silent("x", prepared.get_parameters())([value]) is None


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
async def test_statement_whose_preparing_was_cut_off_can_be_prepared_again(
    link: ServerConnection, steps: int
) -> None:
    for _ in range(5):
        preparing = asyncio.create_task(link.prepare_ahead("keep", KEEP))
        for _ in range(steps):
            await asyncio.sleep(0)
        preparing.cancel()
        await asyncio.wait({preparing})
        link.silent.pop("keep", None)  # it may have been quicker
        assert await link.fetchval("SELECT 1") == 1
    await link.prepare_ahead("keep", KEEP)
    message = link.silent["keep"]((None, None, None, 1, None, None, None, "kept"))
    assert message is not None
    link.send_ahead(message)
    assert await link.fetchval("SELECT t FROM kept") == "kept"


async def test_error_reaches_who_asks_next_and_the_connection_goes_on(link: ServerConnection) -> None:
    for question in ("SELECT 1", "SELECT 2"):  # prepared now, and before
        await link.fetch("SELECT 2")
        link.send_ahead(ahead.command("BEGIN") + ahead.command("INSERT INTO kept (n) SELECT 1 / 0"))
        with pytest.raises(asyncpg.DivisionByZeroError):
            await link.fetch(question)
        assert link.is_in_transaction()
        await link.execute("ROLLBACK")
        assert await link.fetchval("SELECT count(*) FROM kept") == 0


def learn(*pairs: tuple[str, Any]) -> Work[None]:
    for identifier, canonical in pairs:
        yield "learn_alias", {"identifier": identifier, "canonical": canonical}


def get(key: str) -> Work[str | None]:
    return value_of("canonical", identifier=key)


async def test_statements_are_done_in_their_order(url: str) -> None:
    async with opened(f"{url}&pool=1") as engine:
        for last in ("one", "two", "three"):
            await engine.write(partial(learn, ("a", "first"), ("b", "x"), ("a", last)))
            assert await engine.read(partial(get, "a")) == last


async def test_value_of_the_wrong_type_is_refused_each_time(url: str) -> None:
    async with opened(f"{url}&pool=1") as engine:
        await engine.write(partial(learn, ("a", "one")))
        for _ in range(2):
            with pytest.raises(errors.StoreRefused):
                await engine.write(partial(learn, ("b", "one"), ("a", 2)))
            with pytest.raises(errors.StoreRefused):
                await engine.write(partial(learn, ("b", "one"), ("a", "no \0")))
        assert await engine.read(partial(get, "b")) is None
        assert await engine.read(partial(get, "a")) == "one"


async def test_conflict_of_what_went_with_the_commit_is_run_again(url: str) -> None:
    runs: list[str] = []

    def learn_again() -> Work[None]:
        runs.append("run")
        yield "canonical", {"identifier": "a"}
        yield from learn(("a", str(len(runs))))

    async with opened(f"{url}&pool=1") as engine:
        await engine.write(learn_again)
        address = parse_url(url)
        other = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
        await other.execute("""
            CREATE SEQUENCE tries;
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF nextval('tries') = 1 THEN RAISE EXCEPTION 'asked to' USING ERRCODE = '40001'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER fail BEFORE INSERT ON aliases FOR EACH ROW EXECUTE FUNCTION fail();
        """)
        await other.close()
        await engine.write(learn_again)
        assert await engine.read(partial(get, "a")) == str(len(runs)) == "3"


async def test_every_statement_is_understood_without_its_answer(url: str) -> None:
    address = parse_url(url)
    async with opened(url):
        link = await connect(address)
        silent = {name: silenced(name, query.sql) for name, query in load_queries("postgres").items()}
        for name, sql in silent.items():
            if sql:
                answer = (await link.prepare(sql)).get_attributes()
                assert bool(answer) == (name in USUAL)  # of a question that gives no rows
        assert silent.keys() >= USUAL.keys()
        await disconnect(link)


async def test_unusual_answer_is_asked_for_again_and_counts(url: str) -> None:
    runs: list[str] = []

    def learn_holding(lease: lanes.Lease) -> Work[None]:
        runs.append("run")
        yield from hold(lease)
        yield from learn(("a", str(len(runs))))

    async with opened(f"{url}&pool=1") as engine:
        taker = lanes.Taker(node=1)
        lease = await engine.write(partial(take_lane, "chat:here", taker))
        assert lease
        for _ in range(3):
            await engine.write(partial(learn_holding, lease))
        assert len(runs) == 3
        await engine.write(partial(fence, lease.lane))
        with pytest.raises(errors.LeaseLost):
            await engine.write(partial(learn_holding, lease))
        assert len(runs) == 5  # as if it were held, and as it is
        assert await engine.read(partial(get, "a")) == "3"


async def test_unusual_answer_that_comes_with_the_commit_counts_too(url: str) -> None:
    def hold_last(lease: lanes.Lease, value: str) -> Work[None]:
        yield "probe", {"lane": "probe"}  # the transaction's number is known
        yield "unprobe", {"lane": "probe"}
        yield from learn(("a", value))
        yield from hold(lease)

    async with opened(f"{url}&pool=1") as engine:
        taker = lanes.Taker(node=1)
        lease = await engine.write(partial(take_lane, "chat:here", taker))
        assert lease
        for value in ("one", "two"):
            await engine.write(partial(hold_last, lease, value))
        await engine.write(partial(fence, lease.lane))
        with pytest.raises(errors.LeaseLost):
            await engine.write(partial(hold_last, lease, "three"))
        assert await engine.read(partial(get, "a")) == "two"


async def test_connection_that_has_ended_says_so(link: ServerConnection) -> None:
    link.terminate()
    await asyncio.sleep(0)
    link.send_ahead(ahead.command("BEGIN"))
    with pytest.raises(asyncpg.InterfaceError):
        await link.fetch("SELECT 1")


def lock_last() -> Work[str]:
    """The number of its transaction is known before the lock is asked for."""
    at = {"since": 0, "until": 0, "now": 0, "latest": 0}
    yield "confirmation_load", {"reads_as": "", "credential": "", **at}
    yield "lock_key", {"key": "door"}
    return "done"


async def test_lock_that_the_commit_would_have_waited_for_too_long_is_tried_for_again(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(url) as engine:
        assert await engine.write(lock_last) == "done"  # its statements are prepared
        other = await asyncpg.connect(parse_url(url).dsn)
        await other.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", "door")
        waiting = asyncio.create_task(engine.write(lock_last))
        while "store_tried_again" not in caplog.text:
            await other.fetchval("SELECT pg_sleep(0.05)")
        await other.close()
        assert await waiting == "done"
    assert "commit_cut" not in caplog.text  # nobody had to find out what became of it
