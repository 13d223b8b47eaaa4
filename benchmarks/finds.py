"""Finding things: search, lists, the first message after a start."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks import ours
from benchmarks.table import Result, alternate, micros, millis
from frontdesk import SessionStore, Viewer

QUESTIONS = {
    "a common word": "wood",
    "a rare word": "needle",
    "a phrase": '"river stone"',
    "a beginning": "wat*",
}
VOCABULARY = """
river stone wood water light wind table window garden letter paper morning evening street bridge market music
silver copper winter summer doctor teacher kitchen mountain valley ocean harbour engine signal number answer
question reason method result system value order
"""
WORDS = VOCABULARY.split()
CONTENT = 500


async def search(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """The 20 best of many messages, and what the index costs, against a bare FTS5 table."""
    messages = list(_texts(10_000 if quick else 100_000))
    bare, filling = _bare_index(folder / "bare.db", messages)
    async with await SessionStore.open(f"sqlite:///{folder / 'ours.db'}", ours.CONFIG) as store:
        await _store(store, messages)
        plain = _size(folder / "ours.db")
        start = time.perf_counter()
        await store.search("needle", Viewer.everything())
        mine = time.perf_counter() - start
        size = f"{len(messages):,} messages"
        yield Result(f"filling the index, {size}", millis(mine), millis(filling), mine / filling, 1.3)
        for name, question in QUESTIONS.items():
            yield await _question(store, bare, name, question, quick)
    whole, bare_size = _size(folder / "ours.db"), _size(folder / "bare.db")
    yield Result("  file with the index", _mib(whole), _mib(bare_size), whole / bare_size, 1.5)
    yield Result("  of that the index", _mib(whole - plain), "-", (whole - plain) / whole, None, unit="")
    bare.close()


async def _question(
    store: SessionStore, bare: sqlite3.Connection, name: str, question: str, quick: bool
) -> Result:
    viewer = Viewer.everything()

    async def our_search() -> None:
        assert await store.search(question, viewer, around=0)

    async def bare_search() -> None:
        sql = (
            "SELECT rowid, snippet(texts, 0, '«', '»', '…', 16) FROM texts WHERE texts MATCH ? ORDER BY rank"
        )
        assert bare.execute(f"{sql} LIMIT 20", (question,)).fetchall()

    mine, plain = await alternate(10 if quick else 30, our_search, bare_search)
    return Result(f"search, 20 best, {name}", millis(mine), millis(plain), mine / plain, 1.0)


def _texts(count: int) -> list[str]:
    chooser = random.Random(11)
    texts = []
    for number in range(count):
        text = " ".join(chooser.choices(WORDS, k=CONTENT // 7)) + f" note{number}"
        texts.append(text + " needle" if number % 1_000 == 0 else text)
    return texts


def _bare_index(path: Path, messages: list[str]) -> tuple[sqlite3.Connection, float]:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE VIRTUAL TABLE texts USING fts5 (text)")
    start = time.perf_counter()
    db.execute("BEGIN")
    db.executemany("INSERT INTO texts (text) VALUES (?)", ((text,) for text in messages))
    db.execute("COMMIT")
    return db, time.perf_counter() - start


async def _store(store: SessionStore, messages: list[str]) -> None:
    each = 500
    for number in range(0, len(messages), each):
        entry = await store.get_or_create_session(ours.source_of(str(number)))
        part = [{"role": "user", "content": text} for text in messages[number : number + each]]
        await store.record_turn(entry.session_id, part)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*") if file.suffix != ".lock")


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


async def lists(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """The newest 50 of many sessions, and the first message after a start."""
    for size, target in ((20_000, 20), (100_000, 20), (1_000_000, 50)):
        if quick and size > 20_000:
            break
        path = folder / f"ours{size}.db"
        store = await ours.open_filled(path, size)
        async with store:
            times = []
            for _ in range(20):
                start = time.perf_counter()
                assert len(await store.list_sessions(limit=50)) == 50
                times.append(time.perf_counter() - start)
        worst = max(times)
        name = f"newest 50 of {size:,} sessions, slowest of 20"
        yield Result(name, micros(worst), "-", worst * 1e3, target, unit="ms")
        if size <= 100_000:
            yield _first_resolve(path, size)


FIRST = """
import asyncio, sys
from frontdesk import SessionSource, SessionStore
async def main():
    async with await SessionStore.open(sys.argv[1]) as store:
        source = SessionSource(platform="telegram", chat_id="77", user_id="user77")
        entry = await store.get_or_create_session(source)
        assert entry.session_id == "s77", entry
asyncio.run(main())
"""


def _first_resolve(path: Path, size: int) -> Result:
    def seconds(program: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program, f"sqlite:///{path}"], check=True)
        return time.perf_counter() - start

    started = min(seconds("pass") for _ in range(3))
    first = min(seconds(FIRST) for _ in range(3))
    name = f"first resolve after start, {size:,} chats, import included"
    return Result(name, millis(first), f"{millis(started)} python", (first - started) * 1e3, 300, unit="ms")
