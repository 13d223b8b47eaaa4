"""Turns on PostgreSQL."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg

from benchmarks import ours
from benchmarks.raw import REPLY, USER
from benchmarks.table import Result, alternate, micros
from frontdesk import SessionStore
from frontdesk.testing import postgres

CLIENTS = 32
POOL = 10
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
        pool = await asyncpg.create_pool(server.url, min_size=POOL, max_size=POOL)
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
    for _ in range(20):
        await mine("0")
        await bare("0")
    our_time, bare_time = await alternate(rounds, lambda: mine("0"), lambda: bare("0"))
    name = "PostgreSQL: turn, one client, to three bare commits"
    return Result(name, micros(our_time), micros(bare_time), our_time / bare_time, None)


async def _many_clients(mine: Turn, bare: Turn, rounds: int) -> Result:
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        for turn, kept in zip((mine, bare), rates, strict=True):
            kept.append(await _rate(turn, rounds))
    ours_, bare_ = map(statistics.median, rates)
    name = f"PostgreSQL: turns/s, {CLIENTS} chats at once"
    return Result(name, f"{ours_:,.0f}/s", f"{bare_:,.0f}/s", ours_ / bare_, None, at_least=True)


async def _rate(turn: Turn, rounds: int) -> float:
    async def chat(number: int) -> None:
        for _ in range(rounds):
            await turn(str(number))

    start = time.perf_counter()
    await asyncio.gather(*map(chat, range(CLIENTS)))
    return CLIENTS * rounds / (time.perf_counter() - start)
