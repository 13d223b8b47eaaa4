"""The bookkeeping of turns."""

import asyncio
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from benchmarks import disk, ours, raw
from benchmarks.table import Result, alternate, micros
from frontdesk import SessionStore

CLIENTS = 32


async def one_client(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn with one client, in stores of several sizes."""
    sizes = (1, 10_000) if quick else (1, 10_000, 1_000_000)
    for size in sizes:
        db = raw.open_raw(folder / "raw.db")
        raw.fill(db, size)
        store = await ours.open_filled(folder / "ours.db", size)
        chats = ours.some_chats(size)
        async with store:
            mine, bare = await _compare(store, db, [next(chats) for _ in range(100 if quick else 600)])
        target = 1.0 if size < 1_000_000 else 1.2
        yield Result(f"turn, one client, {size:,} chats", micros(mine), micros(bare), mine / bare, target)
        _clean(folder, db)


async def _compare(store: SessionStore, db: sqlite3.Connection, chats: list[str]) -> tuple[float, float]:
    mine, bare = iter(chats), iter(chats)

    async def our_turn() -> None:
        await ours.turn(store, ours.source_of(next(mine)))

    async def raw_turn() -> None:
        raw.turn(db, next(bare))

    return await alternate(len(chats), our_turn, raw_turn)


async def long_chat(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn in a chat of 2,000 messages, and loading its newest 200-message sibling."""
    db = raw.open_raw(folder / "raw.db")
    raw.fill(db, 2)
    store = await ours.open_filled(folder / "ours.db", 2)
    async with store:
        entry = await store.get_or_create_session(ours.source_of("0"))
        await store.record_turn(entry.session_id, [{"role": "user", "content": raw.USER}] * 2_000)
        db.execute("BEGIN")
        db.executemany(raw.INSERT, [("s0", "user", raw.USER, 0.0)] * 2_000)
        db.execute("COMMIT")
        mine, bare = await _compare(store, db, ["0"] * (100 if quick else 600))
        yield Result("turn, in a chat of 2,000 messages", micros(mine), micros(bare), mine / bare, 1.0)
        yield await _load(store, db, quick)
    _clean(folder, db)


async def _load(store: SessionStore, db: sqlite3.Connection, quick: bool) -> Result:
    entry = await store.get_or_create_session(ours.source_of("1"))
    await store.record_turn(entry.session_id, [{"role": "user", "content": raw.USER}] * 199)
    db.executemany(raw.INSERT, [("s1", "user", raw.USER, 0.0)] * 199)

    async def our_load() -> None:
        assert len(await store.load_transcript(entry.session_id)) == 200

    async def raw_load() -> None:
        rows = db.execute(raw.LOAD, ("s1",)).fetchall()
        assert len([{"role": role, "content": content} for role, content in rows]) == 200

    mine, bare = await alternate(100 if quick else 500, our_load, raw_load)
    return Result("load 200 messages as dicts", micros(mine), micros(bare), mine / bare, 1.5)


async def many_chats(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Turns per second of 32 chats at once, against a bare group-commit writer and raw."""
    turns = 30 if quick else 150
    db = raw.open_raw(folder / "raw.db")
    raw.fill(db, CLIENTS)
    writer = raw.GroupWriter(db)
    store = await ours.open_filled(folder / "ours.db", CLIENTS)
    rates: tuple[list[float], list[float], list[float]] = ([], [], [])
    async with store:
        for _ in range(5):
            rates[0].append(await _rate(turns, lambda chat: ours.turn(store, ours.source_of(chat))))
            rates[1].append(await _rate(turns, writer.turn))
            start = time.perf_counter()
            for n in range(turns * 2):
                raw.turn(db, str(n % CLIENTS))
            rates[2].append(turns * 2 / (time.perf_counter() - start))
    writer.close()
    mine, bare, single = map(statistics.median, rates)
    name = f"turns/s, {CLIENTS} chats at once"
    yield Result(
        f"{name}, to a bare group writer", f"{mine:,.0f}/s", f"{bare:,.0f}/s", mine / bare, 0.8, at_least=True
    )
    yield Result(f"{name}, to raw", f"{mine:,.0f}/s", f"{single:,.0f}/s", mine / single, None)
    _clean(folder, db)


async def _rate(turns: int, turn: Callable[[str], Awaitable[None]]) -> float:
    async def chat(number: int) -> None:
        for _ in range(turns):
            await turn(str(number))

    start = time.perf_counter()
    await asyncio.gather(*map(chat, range(CLIENTS)))
    return CLIENTS * turns / (time.perf_counter() - start)


async def syncs(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """How often a turn of one client waits for the disk."""
    turns = 100 if quick else 500
    url = f"sqlite:///{folder / 'ours.db'}?vfs={disk.NAME}"
    with disk.CountingVFS() as counter:
        async with await SessionStore.open(url, ours.CONFIG) as store:
            await ours.turn(store, ours.source_of("0"))
            counter.log_syncs = counter.database_syncs = 0
            for _ in range(turns):
                await ours.turn(store, ours.source_of("0"))
            commits, checkpoints = counter.log_syncs / turns, counter.database_syncs / turns
    yield Result("fsyncs per turn, one client", f"{commits:.2f}", "3", commits, 2, unit="")
    yield Result("  and for checkpoints", f"{checkpoints:.2f}", "-", checkpoints, None, unit="")


def _clean(folder: Path, db: sqlite3.Connection) -> None:
    db.close()
    for file in folder.iterdir():
        file.unlink()
