"""Turns on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg

from benchmarks import ours
from benchmarks.raw import REPLY, USER
from benchmarks.table import Result, alternate, compared
from frontdesk import SessionStore
from frontdesk.stores.postgres.connections import ServerConnection
from frontdesk.testing import postgres

CLIENTS = 32
POOL = 10
ROUNDS = 5
SCHEMA = """
CREATE TABLE raw_sessions (id TEXT PRIMARY KEY, tokens BIGINT NOT NULL DEFAULT 0);
CREATE TABLE raw_messages (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX raw_messages_by_session ON raw_messages (session_id);
"""
INSERT = "INSERT INTO raw_messages (session_id, role, content) VALUES ($1, $2, $3)"
UPDATE = "UPDATE raw_sessions SET tokens = tokens + $1 WHERE id = $2"
FIND = "SELECT id FROM raw_sessions WHERE id = $1"

Turn = Callable[[str], Awaitable[None]]


async def turns(folder: Path, quick: bool) -> AsyncIterator[Result]:  # noqa: ARG001 - it has its own disk
    """A turn, against three bare commits through the same driver."""
    with postgres.running() as server:
        pool = await asyncpg.create_pool(
            server.url,
            min_size=POOL,
            max_size=POOL,
            connection_class=ServerConnection,  # which is not reset after each use, another round trip
        )
        await pool.execute(SCHEMA)
        await pool.executemany(
            "INSERT INTO raw_sessions (id) VALUES ($1)", [(str(n),) for n in range(CLIENTS)]
        )

        async def bare(chat: str) -> None:
            await pool.fetch(FIND, chat)
            await pool.execute(INSERT, chat, "user", USER)
            await pool.execute(INSERT, chat, "assistant", REPLY)
            await pool.execute(UPDATE, 42, chat)

        async with await SessionStore.open(f"{server.url}?pool={POOL}", ours.CONFIG) as store:

            async def mine(chat: str) -> None:
                await ours.turn(store, ours.source_of(chat))

            yield await _one_client(mine, bare, 100 if quick else 500)
            yield await _many_clients(mine, bare, 20 if quick else 100)
        await pool.close()


async def _one_client(mine: Turn, bare: Turn, rounds: int) -> Result:
    runs = (lambda: mine("0"), lambda: bare("0"))
    await alternate(20, *runs)
    ours_, bare_ = await alternate(rounds, *runs)
    return compared("PostgreSQL: turn, one client, to three bare commits", ours_, bare_, 1.1)


async def _many_clients(mine: Turn, bare: Turn, turns: int) -> Result:
    ours_, bare_ = await alternate(ROUNDS, _at_once(mine, turns), _at_once(bare, turns))
    mine_rate, bare_rate = (f"{CLIENTS * turns / each.seconds:,.0f}/s" for each in (ours_, bare_))
    name = f"PostgreSQL: turns/s, {CLIENTS} chats at once"
    return Result(name, mine_rate, bare_rate, bare_.seconds / ours_.seconds, 0.8, at_least=True)


def _at_once(turn: Turn, turns: int) -> Callable[[], Awaitable[object]]:
    async def chat(number: int) -> None:
        for _ in range(turns):
            await turn(str(number))

    return lambda: asyncio.gather(*map(chat, range(CLIENTS)))
