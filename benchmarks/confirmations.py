"""Confirmations against bare transactions of the same rows, and how fast the audit log is verified."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import apsw
import asyncpg

from benchmarks.raw import open_wal
from benchmarks.table import Result, alternate, micros
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
WARM_CYCLES = 20
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
    rounds = 150 if quick else 1_000
    db = open_wal(folder / "bare.db")
    db.execute(SCHEMA)
    yield await _compare("SQLite", f"sqlite:///{folder}/state.db", _bare_sqlite(db), rounds)
    db.close()
    with postgres.running() as server:
        link = await asyncpg.connect(server.url)
        await link.execute(SCHEMA)
        yield await _compare("PostgreSQL", f"{server.url}?schema=ours", _bare_postgres(link), rounds)
        await link.close()


async def _compare(name: str, url: str, bare: Cycle, rounds: int) -> Result:
    store: Store = await plugins.load_store(url)(url)
    numbers = itertools.count()
    try:
        runs = [_next(cycle, numbers) for cycle in (cycle_of(store), bare)]
        await alternate(WARM_CYCLES, *runs)
        mine, plain = await alternate(rounds, *runs)
    finally:
        await store.close()
    what = f"{name}: confirmations asked, decided and carried out a second"
    ours, bare_ = (f"{1 / each.seconds:,.0f}/s, {micros(each.cpu)} cpu" for each in (mine, plain))
    return Result(what, ours, bare_, plain.seconds / mine.seconds, 0.5, at_least=True)


def _next(cycle: Cycle, numbers: "itertools.count[int]") -> Callable[[], Awaitable[None]]:
    return lambda: cycle(next(numbers))


def cycle_of(store: Store) -> Cycle:
    """Asking, deciding and carrying out with a store."""
    service = ConfirmationService(store, UNLIMITED)

    async def cycle(number: int) -> None:
        data = {"action": "send", "description": "Send it?", "details": {"number": number, "text": "x" * 300}}
        asked = (await service.submit(data, AGENT)).confirmation
        await service.approve(asked.id, ANN)
        await service.redeem(asked.id, AGENT, asked.digest)

    return cycle


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


def _bare_sqlite(db: apsw.Connection) -> Cycle:
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
