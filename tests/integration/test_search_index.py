"""What the search index of one database alone has to bear."""

import asyncio
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import asyncpg
import pytest

from frontdesk import SessionStore, Viewer
from frontdesk.stores import search
from frontdesk.stores.dialects import Fts5, TsVector
from frontdesk.stores.sql import load_queries
from tests.contracts.samples import LASTING, direct, user_says

EVERYTHING = Viewer.everything()
SLICE_ROWS, SLICE_BYTES = Fts5.rows_at_once, Fts5.bytes_at_once


async def say(service: SessionStore, *texts: str, user: str = "ann") -> str:
    entry = await service.get_or_create_session(direct(user))
    await service.record_turn(entry.session_id, [user_says(text) for text in texts])
    return entry.session_id


async def found(service: SessionStore, query: str) -> set[str]:
    return {hit.message["content"] for hit in await service.search(query, EVERYTHING)}


@pytest.fixture
def schema() -> str:
    return f"t{uuid.uuid4().hex}"


@pytest.fixture
def schema_url(postgres_url: str, schema: str) -> str:
    return f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema={schema}"


@pytest.fixture
async def node(schema_url: str) -> AsyncIterator[SessionStore]:
    async with await SessionStore.open(schema_url, LASTING) as service:
        yield service


@pytest.fixture
async def connection(postgres_url: str, schema: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(postgres_url, server_settings={"search_path": schema})
    yield opened
    await opened.close()


INSERT = """
    INSERT INTO messages (session_id, position, role, created_at, body)
    VALUES ($1, $2, 'user', 0, '{"role": "user", "content": "a late heron"}')
"""


async def test_message_of_a_transaction_that_began_earlier_and_ended_later_is_found(
    node: SessionStore, connection: asyncpg.Connection
) -> None:
    session_id = await say(node, "a heron")
    async with connection.transaction():
        await connection.execute(INSERT, session_id, 1_000)
        await say(node, "a second heron", user="bob")
        for _ in range(2):
            assert await found(node, "heron") == {"a heron", "a second heron"}
    assert await found(node, "heron") == {"a heron", "a second heron", "a late heron"}
    await say(node, "a third heron", user="bob")
    assert len(await found(node, "heron")) == 4


async def test_nodes_that_index_at_once_do_not_clash(schema_url: str) -> None:
    async with (
        await SessionStore.open(schema_url, LASTING) as one,
        await SessionStore.open(schema_url) as other,
    ):
        for number in range(5):
            await say(one, *[f"heron {number} {each}" for each in range(40)])
            searches = [node.search(f'"heron {number}"', EVERYTHING, limit=200) for node in (one, other) * 2]
            assert [len(hits) for hits in await asyncio.gather(*searches)] == [40] * 4
            await asyncio.gather(say(one, "x"), other.rebuild_index(), found(one, "heron"))


async def test_deleted_message_leaves_the_index(node: SessionStore, connection: asyncpg.Connection) -> None:
    await say(node, "a heron", "a stork")
    await found(node, "heron")
    await connection.execute("DELETE FROM messages WHERE position = 0")
    assert await connection.fetchval("SELECT COUNT(*) FROM words") == 1
    assert (await found(node, "heron"), await found(node, "stork")) == (set(), {"a stork"})


async def test_message_deleted_while_it_is_indexed_stops_nothing(
    node: SessionStore, connection: asyncpg.Connection
) -> None:
    await say(node, "a heron", "a second heron")
    async with connection.transaction():
        await connection.execute("DELETE FROM messages WHERE position = 0")
        search = asyncio.create_task(found(node, "heron"))
        await _until_somebody_waits(connection)
    assert await search == {"a second heron"}


async def _until_somebody_waits(connection: asyncpg.Connection) -> None:
    waiting = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
    while not await connection.fetchval(waiting):
        pass


async def test_database_restored_from_a_server_with_more_transactions_is_indexed(
    node: SessionStore, connection: asyncpg.Connection
) -> None:
    await say(node, "a heron")
    await found(node, "heron")
    await say(node, "a second heron")
    await connection.execute("UPDATE messages SET written_by = '900000000000' WHERE position = 0")
    await connection.execute("UPDATE messages SET written_by = '900000000009' WHERE position = 1")
    await connection.execute("UPDATE indexed SET up_to = '900000000005'")
    await say(node, "a third heron")
    assert await found(node, "heron") == {"a heron", "a second heron", "a third heron"}
    assert await connection.fetchval("SELECT up_to < '900000000000' FROM indexed")
    await say(node, "a fourth heron")
    assert len(await found(node, "heron")) == 4


async def test_message_that_gets_the_number_of_a_deleted_one_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with await SessionStore.open(f"sqlite:///{path}", LASTING) as service:
        await say(service, "a heron", "an old heron", "an old heron")
        assert len(await found(service, "heron")) == 2
    with closing(apsw.Connection(str(path))) as file:
        file.execute("DELETE FROM messages WHERE position > 0")
    async with await SessionStore.open(f"sqlite:///{path}", LASTING) as service:
        assert await found(service, "heron") == {"a heron"}
        await say(service, "a new heron", "a newer heron", "the newest stork")
        assert await found(service, "heron") == {"a heron", "a new heron", "a newer heron"}
        assert await found(service, "old") == set()


async def test_node_does_not_index_what_another_one_is_indexing(
    node: SessionStore, connection: asyncpg.Connection
) -> None:
    await say(node, "a heron", "a second heron")
    index = node.store.index
    async with connection.transaction():
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('index:' || current_schema(), 0))"
        )
        await index.follow()
        assert await index.is_behind()
    await index.follow()
    assert not await index.is_behind()
    assert await connection.fetchval("SELECT COUNT(*) FROM words") == 2


async def test_messages_are_indexed_a_few_in_a_transaction_on_postgresql(
    node: SessionStore, connection: asyncpg.Connection
) -> None:
    await say(node, *[f"heron {number}" for number in range(3 * TsVector.rows_at_once)], "the last stork")
    assert await found(node, "stork") == {"the last stork"}
    rows = await connection.fetch("SELECT COUNT(*) FROM words GROUP BY CAST(xmin AS text)")
    assert max(count for (count,) in rows) <= TsVector.rows_at_once


async def test_restored_messages_are_not_all_taken_for_those_of_one_transaction(
    node: SessionStore, connection: asyncpg.Connection
) -> None:
    await say(node, *[f"heron {number}" for number in range(50)])
    await connection.execute("UPDATE messages SET written_by = '900000000000'")
    await connection.execute("UPDATE indexed SET up_to = '900000000005'")
    assert len(await found(node, "heron")) == 20
    assert await connection.fetchval("SELECT COUNT(DISTINCT CAST(written_by AS text)) FROM messages") == 50
    assert await connection.fetchval("SELECT COUNT(*) FROM words") == 50


# SQLite: what is run, by whom, in which order


class Ran(NamedTuple):
    """A statement that was run with values."""

    name: str
    values: Any
    thread: int


@pytest.fixture
def ran() -> Iterator[list[Ran]]:
    """Every statement of the connections that are opened from now on, in order."""
    names = {query.sql: name for name, query in load_queries("sqlite").items()}
    found: list[Ran] = []

    def trace(_cursor: apsw.Cursor, sql: str, values: Any) -> bool:
        found.append(Ran(names.get(sql, sql), values, threading.get_ident()))
        return True

    def follow(db: apsw.Connection) -> None:
        db.exec_trace = trace

    apsw.connection_hooks.append(follow)
    yield found
    apsw.connection_hooks.remove(follow)


def transactions(ran: list[Ran]) -> list[list[str]]:
    """What each transaction consists of."""
    parts: list[list[str]] = [[]]
    for each in ran:
        if each.name == "BEGIN IMMEDIATE":
            parts.append([])
        parts[-1].append(each.name)
    return parts[1:]


async def test_search_indexes_what_is_missing_in_small_transactions_between_which_others_write(
    tmp_path: Path, ran: list[Ran]
) -> None:
    missing = 4 * SLICE_ROWS
    async with await SessionStore.open(f"sqlite:///{tmp_path / 'state.db'}", LASTING) as service:
        session_id = await say(service, *[f"heron {number}" for number in range(missing)], "the last stork")
        ran.clear()
        searching = asyncio.create_task(found(service, "stork"))
        written = 0
        while not searching.done():
            await service.append_to_transcript(session_id, user_says("meanwhile"))
            written += 1
        assert await searching == {"the last stork"}
    indexed = [part.count("insert_words") for part in transactions(ran)]
    assert max(indexed) <= SLICE_ROWS
    assert sum(count > 0 for count in indexed) > 4
    assert SLICE_ROWS // search.BUSY_SHARE in indexed, "less at once, since others write"
    names = [each.name for each in ran]
    first, last = names.index("insert_words"), len(names) - names[::-1].index("insert_words")
    between = names[first:last].count("append_message")
    assert between >= 2, "others wrote while it was indexed"


async def test_large_messages_are_indexed_a_few_at_a_time(tmp_path: Path, ran: list[Ran]) -> None:
    large = "heron " * (SLICE_BYTES // 6 // 2)
    async with await SessionStore.open(f"sqlite:///{tmp_path / 'state.db'}", LASTING) as service:
        await say(service, *[large for _ in range(10)])
        ran.clear()
        await service.store.index.follow()
        assert not await service.store.index.is_behind()
    assert max(part.count("insert_words") for part in transactions(ran)) <= 2


async def test_rare_word_is_found_where_the_caller_is_in_three_statements(
    tmp_path: Path, ran: list[Ran]
) -> None:
    async with await SessionStore.open(f"sqlite:///{tmp_path / 'state.db'}", LASTING) as service:
        await say(service, "a heron", *["a stork"] * search.FEW)
        assert await found(service, "heron") == {"a heron"}
        ran.clear()
        (hit,) = await service.search("heron", EVERYTHING, around=0)
        assert [each.name for each in ran] == ["index_state", "count_matches", "best_excerpts"]
        assert {each.thread for each in ran} == {threading.get_ident()}
        assert hit.message["content"] == "a heron"
        ran.clear()
        assert len(await service.search("stork", EVERYTHING, limit=200, around=0)) == 200
        elsewhere = [each.name for each in ran if each.thread != threading.get_ident()]
        assert "best_matches" in elsewhere


async def test_rare_word_is_found_by_those_who_may_see_it(tmp_path: Path) -> None:
    async with await SessionStore.open(f"sqlite:///{tmp_path / 'state.db'}", LASTING) as service:
        for number in range(60):
            await say(service, f"heron {number}", user="bob")
        mine = await say(service, "my heron", "an undone heron")
        await service.rewind_session(mine)
        viewer = await service.viewer_for(direct("ann"))
        for _ in range(2):
            hits = await service.search("heron", viewer)
            assert [hit.message["content"] for hit in hits] == ["my heron"]
        assert len(await service.search("heron", EVERYTHING, limit=100)) == 61


# killed in the middle

INDEXING = """
import asyncio, sys
from frontdesk.stores.sqlite import open_store
from frontdesk.stores.postgres import open_store as open_postgres

async def main() -> None:
    store = await (open_store if sys.argv[1].startswith("sqlite") else open_postgres)(sys.argv[1])
    while await store.index.catch_up(7):
        print("a slice", flush=True)

asyncio.run(main())
"""


def index_and_die(store_url: str, slices: int) -> None:
    with subprocess.Popen([sys.executable, "-c", INDEXING, store_url], stdout=subprocess.PIPE) as killed:
        assert killed.stdout
        for _ in range(slices):
            assert killed.stdout.readline() == b"a slice\n"
        killed.kill()


@pytest.mark.parametrize("slices", [1, 5])
async def test_killed_while_it_indexes_everything_is_found_once_afterwards(
    store_url: str, slices: int
) -> None:
    async with await SessionStore.open(store_url, LASTING) as service:
        await say(service, *[f"heron {number}" for number in range(180)])
    await asyncio.to_thread(index_and_die, store_url, slices)
    async with await SessionStore.open(store_url, LASTING) as service:
        hits = await service.search("heron", EVERYTHING, limit=200)
        assert sorted(hit.message["content"] for hit in hits) == sorted(f"heron {n}" for n in range(180))
