"""What the search index of one database alone has to bear."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw
import asyncpg
import pytest

from frontdesk import SessionStore, Viewer
from tests.contracts.samples import LASTING, direct, user_says

EVERYTHING = Viewer.everything()


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
