"""Finding things: search and lists."""

import random
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import apsw

from benchmarks import ours
from benchmarks.raw import open_wal
from benchmarks.table import Result, Spent, alternate, medians, micros, millis, timed
from frontdesk import SessionStore, Viewer

QUESTIONS = {
    "a common word": ("wood", 1.0),
    "a rare word": ("needle", 1.5),
    "a phrase": ('"river stone"', 1.0),
    "a beginning": ("wat*", 1.0),
}
VOCABULARY = """
river stone wood water light wind table window garden letter paper morning evening street bridge market music
silver copper winter summer doctor teacher kitchen mountain valley ocean harbour engine signal number answer
question reason method result system value order
"""
WORDS = VOCABULARY.split()
CONTENT = 500
EVERYBODY = Viewer.everything()
UNINDEXED = "INSERT INTO words (words) VALUES ('delete-all'); UPDATE indexed SET up_to = 0; VACUUM"
BARE = "CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'ascii')"
BEST = """
SELECT rowid, snippet(texts, 0, '«', '»', '…', 16) FROM texts
WHERE texts MATCH ? ORDER BY bm25(texts), rowid DESC LIMIT 20
"""
"""As ours does: newer ones first among equals."""


async def search(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """The 20 best of many messages, and what the index costs, against a bare FTS5 table of the same SQLite
    with the same tokens and ranking."""
    messages = list(_texts(10_000 if quick else 100_000))
    plain = await _unindexed(folder / "plain.db", messages)
    mine, theirs = folder / "ours.db", folder / "bare.db"

    async def our_filling() -> Spent:
        _remove(mine)
        shutil.copyfile(folder / "plain.db", mine)
        async with await SessionStore.open(f"sqlite:///{mine}", ours.CONFIG) as store:
            return await timed(lambda: store.search("needle", EVERYBODY))

    async def bare_filling() -> Spent:
        _remove(theirs)
        db = open_wal(theirs)
        db.execute(BARE)
        spent = await timed(lambda: _fill(db, messages))
        db.close()
        return spent

    filling, bare_time = await medians(5, our_filling, bare_filling)
    name = f"filling the index, {len(messages):,} messages"
    ratio = filling.seconds / bare_time.seconds
    yield Result(name, millis(filling.seconds), millis(bare_time.seconds), ratio, 1.3)
    bare = open_wal(theirs)
    async with await SessionStore.open(f"sqlite:///{mine}", ours.CONFIG) as store:
        for name, (question, most) in QUESTIONS.items():
            yield await _question(store, bare, name, question, most, quick)
    bare.close()
    whole, bare_size = _size(mine), _size(theirs)
    yield Result("  file with the index, closed", _mib(whole), _mib(bare_size), whole / bare_size, 1.5)
    yield Result("  of that the index", _mib(whole - plain), "-", (whole - plain) / whole, None, unit="")


async def _question(
    store: SessionStore, bare: apsw.Connection, name: str, question: str, most: float, quick: bool
) -> Result:
    async def our_search() -> None:
        assert await store.search(question, EVERYBODY, around=0)

    async def bare_search() -> None:
        assert bare.execute(BEST, (question,)).fetchall()

    mine, plain = await alternate(10 if quick else 30, our_search, bare_search)
    ratio = mine.seconds / plain.seconds
    return Result(f"search, 20 best, {name}", millis(mine.seconds), millis(plain.seconds), ratio, most)


async def _unindexed(path: Path, messages: list[str]) -> int:
    """A store of messages without an index of them; its size."""
    async with await SessionStore.open(f"sqlite:///{path}", ours.CONFIG) as store:
        await _store(store, messages)
    db = apsw.Connection(str(path))
    db.execute(UNINDEXED)
    db.close()
    return _size(path)


def _texts(count: int) -> list[str]:
    chooser = random.Random(11)
    texts = []
    for number in range(count):
        text = " ".join(chooser.choices(WORDS, k=CONTENT // 7)) + f" note{number}"
        texts.append(text + " needle" if number % 1_000 == 0 else text)
    return texts


async def _fill(db: apsw.Connection, messages: list[str]) -> None:
    with db:
        db.executemany("INSERT INTO texts (text) VALUES (?)", ((text,) for text in messages))


async def _store(store: SessionStore, messages: list[str]) -> None:
    each = 500
    for number in range(0, len(messages), each):
        entry = await store.get_or_create_session(ours.source_of(str(number)))
        part = [{"role": "user", "content": text} for text in messages[number : number + each]]
        await store.record_turn(entry.session_id, part)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*") if file.suffix != ".lock")


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


async def lists(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """The newest 50 of many sessions, the slowest of several calls."""
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
