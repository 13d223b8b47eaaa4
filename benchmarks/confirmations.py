"""Confirmations against bare transactions of the same rows, and how fast the audit log is verified."""

import asyncio
import itertools
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from benchmarks.table import Result
from frontdesk import plugins
from frontdesk.flow import audits
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model import audit
from frontdesk.model.confirmations import MOST_PENDING, Caller, CallerKind, Settings
from frontdesk.stores.store import Store
from frontdesk.testing import postgres

AGENT = Caller(id="token:agent", kind=CallerKind.AGENT)
ANN = Caller(id="token:ann", kind=CallerKind.APPROVER)
UNLIMITED = Settings(rate_limit=10**9, prompts_per_hour=10**9)
PAYLOAD = b'{"action":"send","details":{"text":"%s"}}' % (b"x" * 300)
HASH = "0" * 64
START = datetime(2026, 1, 1, tzinfo=UTC)

SCHEMA = """
CREATE TABLE bare_requests (id TEXT PRIMARY KEY, status TEXT NOT NULL, digest TEXT NOT NULL, by TEXT);
CREATE TABLE bare_payloads (id TEXT PRIMARY KEY, payload TEXT NOT NULL);
CREATE TABLE bare_votes (id TEXT NOT NULL, person TEXT NOT NULL, PRIMARY KEY (id, person));
CREATE TABLE bare_audit (
    number BIGINT PRIMARY KEY, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL
);
"""
BARE = (
    (
        "INSERT INTO bare_requests (id, status, digest) VALUES ($1, 'pending', $2)",
        "INSERT INTO bare_payloads (id, payload) VALUES ($1, $2)",
        "INSERT INTO bare_audit VALUES ($1, $2, $3, $4)",
    ),
    (
        "INSERT INTO bare_votes (id, person) VALUES ($1, $2)",
        "UPDATE bare_requests SET status = 'approved', by = $2 WHERE id = $1 AND status = 'pending'",
        "INSERT INTO bare_audit VALUES ($1, $2, $3, $4)",
    ),
    (
        "UPDATE bare_requests SET status = 'used' WHERE id = $1 AND status = $2",
        "INSERT INTO bare_audit VALUES ($1, $2, $3, $4)",
    ),
)
"""The transactions of asking, deciding and carrying out."""

Cycle = Callable[[int], Awaitable[None]]


async def cycles(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Submit, decide, redeem, one after the other."""
    count = 150 if quick else 1_000
    with sqlite3.connect(folder / "bare.db", isolation_level=None) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.executescript(SCHEMA)
        bare = await _rate(_bare_sqlite(db), count)
    ours = await _ours(f"sqlite:///{folder}/state.db", count)
    yield _result("SQLite", ours, bare)
    with postgres.running() as server:
        link = await asyncpg.connect(server.url)
        await link.execute(SCHEMA)
        bare = await _rate(_bare_postgres(link), count)
        await link.close()
        ours = await _ours(f"{server.url}?schema=ours", count)
    yield _result("PostgreSQL", ours, bare)


def _result(name: str, ours: float, bare: float) -> Result:
    what = f"{name}: confirmations asked, decided and carried out a second"
    return Result(what, f"{ours:,.0f}/s", f"{bare:,.0f}/s", ours / bare, None, at_least=True)


async def _ours(url: str, count: int) -> float:
    store: Store = await plugins.load_store(url)(url)
    service = ConfirmationService(store, UNLIMITED)

    async def cycle(number: int) -> None:
        data = {"action": "send", "description": "Send it?", "details": {"number": number, "text": "x" * 300}}
        asked = (await service.submit(data, AGENT)).confirmation
        await service.approve(asked.id, ANN)
        await service.redeem(asked.id, AGENT, asked.digest)

    try:
        return await _rate(cycle, count)
    finally:
        await store.close()


async def _rate(cycle: Cycle, count: int) -> float:
    for number in range(20):  # warm
        await cycle(-number - 1)
    start = time.perf_counter()
    for number in range(count):
        await cycle(number)
    return count / (time.perf_counter() - start)


def _statements(number: int, rows: "itertools.count[int]") -> list[list[tuple[str, tuple[object, ...]]]]:
    """What a cycle writes, by transaction."""
    name = f"c{number}"
    values: dict[str, tuple[object, ...]] = {
        "INSERT INTO bare_requests": (name, HASH),
        "INSERT INTO bare_payloads": (name, PAYLOAD.decode()),
        "INSERT INTO bare_votes": (name, ANN.id),
        "UPDATE bare_requests SET status = 'approved'": (name, ANN.id),
        "UPDATE bare_requests SET status = 'used'": (name, "approved"),
    }

    def arguments(sql: str) -> tuple[object, ...]:
        found = [given for head, given in values.items() if sql.startswith(head)]
        return found[0] if found else (next(rows), PAYLOAD.decode(), HASH, HASH)

    return [[(sql, arguments(sql)) for sql in transaction] for transaction in BARE]


def _bare_sqlite(db: sqlite3.Connection) -> Cycle:
    rows = itertools.count(1)

    async def cycle(number: int) -> None:
        for transaction in _statements(number, rows):
            db.execute("BEGIN IMMEDIATE")
            for sql, values in transaction:
                db.execute(sql.replace("$", "?"), values)
            db.execute("COMMIT")

    return cycle


def _bare_postgres(link: "asyncpg.Connection") -> Cycle:
    rows = itertools.count(1)

    async def cycle(number: int) -> None:
        for transaction in _statements(number, rows):
            async with link.transaction():
                for sql, values in transaction:
                    await link.execute(sql, *values)

    return cycle


async def verification(folder: Path, quick: bool) -> AsyncIterator[Result]:  # noqa: ARG001 - it needs no disk
    """Verifying the audit log, as its rows come from the store."""
    count = 50_000 if quick else 500_000
    rows = await asyncio.to_thread(_log, count)

    async def batches() -> AsyncIterator[list[audit.Row]]:
        for start in range(0, count, audits.ROWS_AT_ONCE):
            yield rows[start : start + audits.ROWS_AT_ONCE]

    start = time.perf_counter()
    verified = await audits.verify(batches())
    rate = count / (time.perf_counter() - start)
    assert verified.fault is None
    name = f"audit rows verified a second, of {count:,}"
    yield Result(name, f"{rate:,.0f}/s", "-", rate, 200_000, at_least=True, unit="/s")


def _log(count: int) -> list[audit.Row]:
    rows: list[audit.Row] = []
    for number in range(count):
        entry = audit.AuditEntry(
            kind=audit.AuditKind.SUBMITTED, at=START, actor="token:agent", confirmation_id=f"c_{number}"
        )
        rows.append(audit.chained(entry, rows[-1] if rows else None))
    return rows


async def expiry(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """How late requests end whose time is over, as many as may wait."""
    count = 20 if quick else MOST_PENDING
    url = f"sqlite:///{folder}/state.db"
    store: Store = await plugins.load_store(url)(url)
    service = ConfirmationService(store, UNLIMITED)
    asked = []
    for number in range(count):
        data = {"action": "send", "description": "?", "details": {"n": number}, "timeout_seconds": 30}
        asked.append((await service.submit(data, AGENT)).confirmation)
    watching = asyncio.create_task(service.watch())
    ended = [await service.wait(each.id, 60) for each in asked]
    watching.cancel()
    await store.close()
    late = max((each.resolved_at - each.expires_at).total_seconds() for each in ended if each.resolved_at)
    yield Result(f"confirmations end late by, of {len(ended)}", f"{late:.2f} s", "-", late, 2, unit="s")
