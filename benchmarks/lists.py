"""Pages of long lists: sessions by all filters, and a long transcript; against their statements alone."""

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw
import asyncpg

from benchmarks.table import Result, millis
from frontdesk import SessionStore, Viewer
from frontdesk.cli.running import freeze_loaded
from frontdesk.contracts.store import Row, Work
from frontdesk.model.lists import ListedStates, SessionFilter
from frontdesk.model.pages import ListPage
from frontdesk.stores.lists import Lists
from frontdesk.stores.postgres.address import parse_url
from frontdesk.stores.sql import load_queries
from frontdesk.stores.sqlite.threads import equip
from frontdesk.testing import postgres

T = TypeVar("T")

SIZES = (100_000, 1_000_000)
QUICK_SIZE = 10_000
CALLS = 100
LIST_TARGET = 50
TRANSCRIPT_TARGET = 150
LONG = "long"
LONG_ROWS = 5_000
OWNER = "telegram:7"
"""Owns a tenth of all sessions."""

FILL = """
INSERT INTO sessions (id, session_key, owner, peer, platform, chat_type, created_at, updated_at, ended_at,
    end_reason, message_count, next_position, details, active_minute)
SELECT 's' || n, 'key' || n, 'telegram:' || CASE WHEN n % 20 IN (6, 7) THEN 7 ELSE n END, 'peer',
    CASE WHEN n % 1000 = 3 THEN 'slack' WHEN n % 3 = 0 THEN 'matrix' ELSE 'telegram' END, 'dm',
    {now} - n * 1000000, {now} - n * 1000000, CASE WHEN n % 2 = 0 THEN {now} - n * 1000000 END,
    CASE WHEN n % 2 = 0 THEN 'daily' END, 3, 3, {details}, ({now} - n * 1000000) / 60000000
FROM {numbers};
INSERT INTO routes (session_key, session_id) SELECT 'key' || n, 's' || n FROM {numbers} WHERE n % 2 = 1;
INSERT INTO messages (session_id, position, role, created_at, body)
SELECT 's' || n, p.at, CASE p.at WHEN 1 THEN 'assistant' ELSE 'user' END, {now}, {body}
FROM {numbers} CROSS JOIN (SELECT 0 AS at UNION ALL SELECT 1 UNION ALL SELECT 2) AS p;
INSERT INTO turns (id, lane, kind, state, session_key, session_id, platform, account, received_at, due_at,
    started_at, body)
SELECT 't' || n, 'turn:key' || (n * 2 + 1), 'message',
    CASE n % 3 WHEN 0 THEN 'queued' WHEN 1 THEN 'running' ELSE 'waiting' END,
    'key' || (n * 2 + 1), 's' || (n * 2 + 1), 'telegram', '', {now}, {now}, {now}, {body}
FROM {numbers} WHERE n < 1000;
INSERT INTO deliveries (id, lane, state, kind, platform, account, session_id, session_key, created_at,
    due_at, body)
SELECT 'd' || n, 'chat:telegram::' || n, 'dead', 'reply', 'telegram', '', 's' || n, 'key' || n, {now}, {now},
    {body}
FROM {numbers} WHERE n < 1000;
INSERT INTO sessions (id, session_key, owner, peer, platform, chat_type, created_at, updated_at,
    message_count, next_position, details, active_minute)
VALUES ('long', 'long', 'telegram:long', 'peer', 'telegram', 'dm', 0, 0, 5000, 5000, {details}, 0);
INSERT INTO messages (session_id, position, role, created_at, turn_id, turn_position, body)
SELECT 'long', n, CASE n % 2 WHEN 0 THEN 'user' ELSE 'assistant' END, {now}, 'u' || (n / 10), n, {body}
FROM {numbers} WHERE n < 5000
"""
NOW = 1_790_000_000_000_000
TEXT = '{"role":"user","content":"' + "Somebody says something of a usual length. " * 8 + '"}'
DETAILS = '{"origin":{"platform":"telegram","chat_id":"7","user_id":"7","chat_name":"A chat"}}'


class Counted(NamedTuple):
    """One question to a store, and its statements without anything around them."""

    name: str
    ask: Callable[[], Awaitable[object]]
    bare: Callable[[], Awaitable[object]]


class Link(Protocol):
    """A bare connection."""

    async def run(self, query: str, values: dict[str, Any]) -> list[Row]: ...


class FileLink:
    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        equip(self._db)
        self._queries = load_queries("sqlite")

    async def run(self, query: str, values: dict[str, Any]) -> list[Row]:
        found = self._queries[query]
        return list(self._db.execute(found.sql, found.arguments(values)).fetchall())


class ServerLink:
    def __init__(self, link: asyncpg.Connection) -> None:
        self._link = link
        self._queries = load_queries("postgres")

    async def run(self, query: str, values: dict[str, Any]) -> list[Row]:
        found = self._queries[query]
        return list(map(tuple, await self._link.fetch(found.sql, *found.arguments(values))))


class Recorder:
    """Runs work on a bare connection, and keeps what was asked of it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def read(self, start: Callable[[], Work[T]]) -> T:
        work = start()
        try:
            query, values = next(work)
            while True:
                self.asked.append((query, dict(values)))
                query, values = work.send(await self._link.run(query, dict(values)))
        except StopIteration as done:
            value: T = done.value
            return value


async def pages(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Pages of sessions and of a transcript, on both databases."""
    for size in (QUICK_SIZE,) if quick else SIZES:
        path = folder / f"lists{size}.db"
        async with _file(path, size) as (store, link):
            async for result in _measure("SQLite", size, store, link, quick):
                yield result
        with postgres.running() as server:
            async with _server(server.url, size) as (store, link):
                async for result in _measure("PostgreSQL", size, store, link, quick):
                    yield result


def _script(numbers: str, blob: str) -> str:
    return FILL.format(now=NOW, numbers=numbers, body=blob.format(TEXT), details=blob.format(DETAILS))


@asynccontextmanager
async def _file(path: Path, size: int) -> AsyncIterator[tuple[SessionStore, Link]]:
    await (await SessionStore.open(f"sqlite:///{path}")).close()
    db = apsw.Connection(str(path))
    db.pragma("synchronous", 0)
    db.execute("CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY)")
    with db:
        db.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(size)))
        db.execute(_script("numbers", "CAST('{}' AS BLOB)"))
        db.execute("UPDATE indexed SET up_to = (SELECT MAX(seq) FROM messages)")
    db.pragma("wal_checkpoint(truncate)")
    db.close()
    async with await SessionStore.open(f"sqlite:///{path}") as store:
        yield store, FileLink(path)


@asynccontextmanager
async def _server(url: str, size: int) -> AsyncIterator[tuple[SessionStore, Link]]:
    await (await SessionStore.open(url)).close()
    link = await asyncpg.connect(url, server_settings={"search_path": parse_url(url).schema})
    numbers = f"generate_series(CAST(0 AS bigint), {size - 1}) AS numbers (n)"
    await link.execute(_script(numbers, "convert_to('{}', 'UTF8')"))
    await link.execute("VACUUM ANALYZE")  # or the server does it while we measure
    await link.execute("CHECKPOINT")
    async with await SessionStore.open(url) as store:
        yield store, ServerLink(link)
    await link.close()


def _asked(lists: Lists, middle: str) -> dict[str, Callable[[], Awaitable[object]]]:
    everybody, own = Viewer.everything(), Viewer(frozenset({OWNER}))
    page = partial(lists.sessions, everybody)
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "the first page": partial(page, SessionFilter()),
        "a page deep inside": partial(page, SessionFilter(), 50, middle),
        "one platform": partial(page, SessionFilter(platform="matrix")),
        "a rare platform": partial(page, SessionFilter(platform="slack")),
        "a platform with nothing": partial(page, SessionFilter(platform="email")),
        "a person's own": partial(lists.sessions, own, SessionFilter()),
        "a person's own, deep inside": partial(lists.sessions, own, SessionFilter(), 50, middle),
        "a person's own, ended": partial(lists.sessions, own, SessionFilter(states=ListedStates.ENDED)),
        "the counts": partial(lists.counts, everybody, SessionFilter()),
        "a person's counts": partial(lists.counts, own, SessionFilter()),
    }
    for states in (ListedStates.WORKING, ListedStates.WAITING, ListedStates.TROUBLE, ListedStates.ENDED):
        asked[f"those {states}"] = partial(page, SessionFilter(states=states))
    return asked


async def _measure(
    database: str, size: int, store: SessionStore, link: Link, quick: bool
) -> AsyncIterator[Result]:
    freeze_loaded()  # as the program does
    middle = f"{NOW - size // 2 * 1_000_000}~s{size // 2}"
    recorder = Recorder(link)
    bare_lists = Lists(recorder)  # type: ignore[arg-type]
    bare = _asked(bare_lists, middle)
    for name, ask in _asked(store.store.lists, middle).items():
        question = Counted(name, ask, await _statements(recorder, bare[name], link))
        found = await ask()
        assert not isinstance(found, ListPage) or found.items or "nothing" in name or "rare" in name, name
        yield await _time(f"{database}, {size:,} sessions: {name}", question, quick, LIST_TARGET)
    everybody = Viewer.everything()
    if size >= LONG_ROWS:
        for rows, target in ((LONG_ROWS, TRANSCRIPT_TARGET), (100, None)):
            ask = partial(store.store.lists.transcript, everybody, LONG, rows)
            alone = await _statements(recorder, partial(bare_lists.transcript, everybody, LONG, rows), link)
            name = f"{database}: {rows:,} of a transcript of {LONG_ROWS:,} messages"
            yield await _time(name, Counted(name, ask, alone), quick, target)


async def _statements(
    recorder: Recorder, ask: Callable[[], Awaitable[object]], link: Link
) -> Callable[[], Awaitable[object]]:
    """The statements of a question, to be run by themselves."""
    recorder.asked = []
    await ask()
    asked = recorder.asked

    async def run() -> None:
        for query, values in asked:
            await link.run(query, values)

    return run


async def _time(name: str, question: Counted, quick: bool, target: float | None) -> Result:
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(CALLS // (5 if quick else 1)):
        for run, kept in ((question.ask, ours), (question.bare, bare)):
            start = time.perf_counter()
            await run()
            kept.append(time.perf_counter() - start)
    worst = statistics.quantiles(ours, n=100)[98]
    ratio = statistics.median(ours) / statistics.median(bare)
    shown = f"{millis(worst)} p99, {millis(statistics.median(ours))} p50"
    return Result(
        name, shown, f"{millis(statistics.median(bare))} ({ratio:.1f} ×)", worst * 1e3, target, unit="ms"
    )
