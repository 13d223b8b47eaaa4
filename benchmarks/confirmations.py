"""Confirmations against bare transactions of the same rows, and how fast the audit log is verified."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from benchmarks import bare_confirmations
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
WARM_CYCLES = 20
START = datetime(2026, 1, 1, tzinfo=UTC)
BARE = "bare"

Cycle = Callable[[int], Awaitable[None]]


async def cycles(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Submit, decide, redeem, one after the other."""
    rounds = 150 if quick else 1_000
    await _make(f"sqlite:///{folder}/bare.db")
    db = open_wal(folder / "bare.db")
    yield await _compare("SQLite", f"sqlite:///{folder}/state.db", bare_confirmations.on_sqlite(db), rounds)
    db.close()
    with postgres.running() as server:
        await _make(f"{server.url}?schema={BARE}")
        link = await asyncpg.connect(server.url, server_settings={"search_path": BARE})
        bare = bare_confirmations.on_postgres(link)
        yield await _compare("PostgreSQL", f"{server.url}?schema=ours", bare, rounds)
        await link.close()


async def _make(url: str) -> None:
    """The tables, for whoever writes into them without us."""
    store: Store = await plugins.load_store(url)(url)
    await store.close()


async def _compare(name: str, url: str, bare: Cycle, rounds: int) -> Result:
    store: Store = await plugins.load_store(url)(url)
    numbers = itertools.count()
    try:
        runs = [_next(cycle, numbers) for cycle in (cycle_of(store), bare)]
        with _quietly():
            await alternate(WARM_CYCLES, *runs)
            mine, plain = await alternate(rounds, *runs)
    finally:
        await store.close()
    what = f"{name}: confirmations asked, decided and carried out a second"
    ours, bare_ = (f"{1 / each.seconds:,.0f}/s, {micros(each.cpu)} cpu" for each in (mine, plain))
    return Result(what, ours, bare_, plain.seconds / mine.seconds, 0.5, at_least=True)


@contextmanager
def _quietly() -> Iterator[None]:
    """That nobody is told of these requests is not said on the terminal each time."""
    logger = logging.getLogger("frontdesk")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


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
