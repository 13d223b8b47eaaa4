"""The bookkeeping of turns."""

import asyncio
import itertools
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import mean, median

import apsw

from benchmarks import disk, marathon, ours, raw
from benchmarks.counters import Counters
from benchmarks.table import Result, Spent, alternate, compared, medians, micros, timed
from frontdesk import SessionStore

CLIENTS = 32
ROUNDS = 7
WARM_TURNS = 20
"""Until everything is loaded, and the log has its size."""
MILLION = 1_000_000
COUNTED = {"calls": None, "statements": 6, "pages": None, "syncs": 2, "syncs of checkpoints": None}
"""Of calls into our own code the bare one has none."""
STANDARD = f"raw with Python's own SQLite {sqlite3.sqlite_version}, not {apsw.sqlite_lib_version()}"

Turn = Callable[[], Awaitable[object]]


async def one_client(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn with one client, in stores of several sizes."""
    for size in (1, 10_000) if quick else (1, 10_000, MILLION):
        rounds = 100 if quick else 600
        with _raw(folder, size) as db:
            async with await ours.open_filled(folder / "ours.db", size) as store:
                chats = ours.some_chats(size)
                standard = raw.open_standard(folder / "standard.db") if size < MILLION else None
                runs = [_our_turn(store, chats), _raw_turn(db, chats)]
                if standard:
                    raw.fill(standard, size)
                    runs.append(_raw_turn(standard, chats))
                mine, bare, *library = await _alternate(rounds, *runs)
                with_ids, beside = await _alternate(
                    rounds, _our_turn(store, chats, ids=True), _raw_turn(db, chats)
                )
        noun = "chat" if size == 1 else "chats"
        name = f"turn, one client, {size:,} {noun}"
        yield compared(name, mine, bare, 1.0 if size < MILLION else 1.1)
        yield compared("  with platform and turn ids", with_ids, beside, 1.15)
        for each in library:
            yield compared(f"  {STANDARD}", each, bare, None)
        if standard:
            standard.close()
        _clean(folder)
    yield await _like_the_readme(folder, 100 if quick else 600)


async def _like_the_readme(folder: Path, rounds: int) -> Result:
    """Ids, and the rules that are there unless somebody asks for others: a new session each morning, and
    after 200 messages."""
    chats = itertools.repeat("0")
    with _raw(folder, 1) as db:
        async with await SessionStore.open(f"sqlite:///{folder}/ours.db") as store:
            mine, bare = await _alternate(rounds, _our_turn(store, chats, ids=True), _raw_turn(db, chats))
    _clean(folder)
    return compared("turn, one client, as in the README (ids, daily rule)", mine, bare, 1.15)


async def _alternate(rounds: int, *runs: Turn) -> list[Spent]:
    await alternate(WARM_TURNS, *runs)
    return await alternate(rounds, *runs)


def _our_turn(store: SessionStore, chats: Iterator[str], *, ids: bool = False) -> Turn:
    numbers = itertools.count()

    async def run() -> None:
        await ours.turn(store, ours.source_of(next(chats)), f"{next(numbers)}" if ids else None)

    return run


def _raw_turn(db: raw.Raw, chats: Iterator[str]) -> Turn:
    async def run() -> None:
        raw.turn(db, next(chats))

    return run


async def long_chat(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn in a chat of 2,000 messages, and loading its newest 200-message sibling."""
    with _raw(folder, 2) as db:
        async with await ours.open_filled(folder / "ours.db", 2) as store:
            entry = await store.get_or_create_session(ours.source_of("0"))
            await store.record_turn(entry.session_id, [{"role": "user", "content": raw.USER}] * 2_000)
            db.execute("BEGIN")
            db.executemany(raw.INSERT, [("s0", "user", raw.USER, 0.0)] * 2_000)
            db.execute("COMMIT")
            chats = itertools.repeat("0")
            mine, bare = await _alternate(
                100 if quick else 600, _our_turn(store, chats), _raw_turn(db, chats)
            )
            yield compared("turn, in a chat of 2,000 messages", mine, bare, 1.0)
            yield await _load(store, db, quick)
    async for result in marathon.loads(folder, quick):
        yield result


async def _load(store: SessionStore, db: apsw.Connection, quick: bool) -> Result:
    entry = await store.get_or_create_session(ours.source_of("1"))
    await store.record_turn(entry.session_id, [{"role": "user", "content": raw.USER}] * 199)
    db.executemany(raw.INSERT, [("s1", "user", raw.USER, 0.0)] * 199)

    async def our_load() -> None:
        assert len(await store.load_transcript(entry.session_id)) == 200

    async def raw_load() -> None:
        rows = db.execute(raw.LOAD, ("s1",)).fetchall()
        assert len([{"role": role, "content": content} for role, content in rows]) == 200

    mine, bare = await alternate(100 if quick else 500, our_load, raw_load)
    return compared("load 200 messages as dicts", mine, bare, 1.4)


async def many_chats(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Turns of 32 chats at once, against a bare group-commit writer and raw."""
    turns = 30 if quick else 150
    numbers = itertools.count()
    with _raw(folder, CLIENTS) as db, raw.group_writer(db) as writer:
        async with await ours.open_filled(folder / "ours.db", CLIENTS) as store:

            async def mine(chat: str) -> None:
                await ours.turn(store, ours.source_of(chat))

            async def mine_with_ids(chat: str) -> None:
                await ours.turn(store, ours.source_of(chat), f"{next(numbers)}")

            async def alone() -> None:
                for number in range(turns):
                    raw.turn(db, str(number % CLIENTS))

            runs = [_at_once(turns, each) for each in (mine, mine_with_ids, writer.turn)]
            *together, single = await medians(
                ROUNDS, *(partial(_until_indexed, store, run) for run in (*runs, alone))
            )
    ours_, with_ids, bare = (spent.each(turns * CLIENTS) for spent in together)
    name, single = f"{CLIENTS} chats at once", single.each(turns)
    yield _faster(f"turns/s, {name}, to a bare group writer", ours_, bare, 0.6)
    yield _faster("  with platform and turn ids", with_ids, bare, None)
    yield _faster(f"turns/s, {name}, to raw", ours_, single, 5)
    for what, spent, most in (("", ours_, 90), (", with ids", with_ids, None)):
        used = f"processor time of a turn, {name}{what}"
        yield Result(used, micros(spent.cpu), micros(bare.cpu), spent.cpu * 1e6, most, unit="µs")


async def _until_indexed(store: SessionStore, run: Turn) -> Spent:
    """How long it takes, and what the processors do for it until all of it is indexed: the next one is to
    find nothing left to be done."""
    began = time.process_time()
    spent = await timed(run)
    await store.store.index.follow()
    return Spent(spent.seconds, time.process_time() - began)


def _at_once(turns: int, turn: Callable[[str], Awaitable[None]]) -> Turn:
    async def chat(number: int) -> None:
        for _ in range(turns):
            await turn(str(number))

    return lambda: asyncio.gather(*map(chat, range(CLIENTS)))


def _faster(what: str, ours: Spent, bare: Spent, target: float | None) -> Result:
    mine, plain = (f"{1 / each.seconds:,.0f}/s" for each in (ours, bare))
    return Result(what, mine, plain, bare.seconds / ours.seconds, target, at_least=True)


async def counted(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """What a turn of one client does, counted: that is the same on every machine."""
    turns = 100 if quick else 500
    counters, chats = Counters(), itertools.repeat("0")
    with counters.installed():
        db = raw.open_raw(folder / "raw.db", disk.NAME)
        raw.fill(db, 1)
        url = f"sqlite:///{folder}/ours.db?vfs={disk.NAME}"
        async with await SessionStore.open(url, ours.CONFIG) as store:
            runs = (_our_turn(store, chats), _our_turn(store, chats, ids=True), _raw_turn(db, chats))
            found = [await _count(counters, turns, each) for each in runs]
        db.close()
    for name, most in COUNTED.items():
        mine, with_ids, bare = ([count[name] for count in counts] for counts in found)
        shown = f"{_usual(mine)}; with ids {_usual(with_ids)}"
        yield Result(f"a turn, one client: {name}", shown, _usual(bare), median(mine), most, unit="")


async def _count(counters: Counters, turns: int, turn: Turn) -> list[dict[str, float]]:
    found = []
    for number in range(WARM_TURNS + turns):
        counters.begin()
        await turn()
        if number >= WARM_TURNS:
            found.append(counters.end().figures)
    return found


def _usual(counts: list[float]) -> str:
    return f"{median(counts):g} ({mean(counts):.2f} on average)"


@contextmanager
def _raw(folder: Path, chats: int) -> Iterator[apsw.Connection]:
    db = raw.open_raw(folder / "raw.db")
    raw.fill(db, chats)
    try:
        yield db
    finally:
        db.close()


def _clean(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
