"""Three nodes on one PostgreSQL server, beside processes that run the same statements and nothing else."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.bare import bare_nodes
from benchmarks.gateway import CHATS, running
from benchmarks.table import Result
from frontdesk import Platform, SessionSource, plugins
from frontdesk.model import turns
from frontdesk.stores.store import Store
from frontdesk.testing import postgres

NODES = 3
LOOK_SECONDS = 0.1
STEADY = 0.8
"""Of those that wait, when so many are left, all nodes are at work."""

Working = Callable[[str], AbstractContextManager[object]]


async def nodes(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Durable turns a second. Nodes begin to be counted once they are at work, ours and bare ones."""
    messages, rounds = (500, 3) if quick else (2_000, 5)
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    with postgres.running() as server:
        for number in range(rounds):
            working: dict[str, Working] = {
                "ours": partial(_our_nodes, folder, number),
                "bare": partial(bare_nodes, count=NODES),
            }
            for name, started in working.items():
                url = f"{server.url}?schema={name}{number}"
                rates[name].append(await _rate(url, messages, started))
    ours, bare = (median(rates[name]) for name in ("ours", "bare"))
    yield Result(
        "PostgreSQL: turns/s, three nodes",
        f"{ours:,.0f}/s",
        f"{bare:,.0f}/s",
        ours,
        400,
        at_least=True,
        unit="/s",
    )
    name = "  to the same statements bare"
    yield Result(name, f"{ours:,.0f}/s", f"{bare:,.0f}/s", ours / bare, 0.8, at_least=True)


def _our_nodes(folder: Path, number: int, url: str) -> ExitStack:
    started = ExitStack()
    try:
        for node in range(NODES):
            started.enter_context(running(folder, url, f"node{number}-{node}"))
    except BaseException:
        started.close()
        raise
    return started


async def _rate(url: str, messages: int, working: Working) -> float:
    """Turns a second of those that wait when the nodes start."""
    store: Store = await plugins.load_store(url)(url)
    try:
        await fill(store, messages)
        with working(url):
            return _slope(await drained(store))
    finally:
        await store.close()


async def drained(store: Store) -> list[tuple[float, int]]:
    """Wait until no turn waits; how many did, and when."""
    seen = []
    while True:
        left = (await store.turns.counts()).get("queued", 0)
        seen.append((time.perf_counter(), left))
        if not left:
            return seen
        await asyncio.sleep(LOOK_SECONDS)


def _slope(counts: list[tuple[float, int]]) -> float:
    """Turns a second between the first fifth and the end."""
    most = counts[0][1]
    steady = [(at, left) for at, left in counts if left <= STEADY * most] or counts
    (start, first), (end, last) = steady[0], steady[-1]
    return (first - last) / max(end - start, 1e-9)


async def fill(store: Store, messages: int) -> None:
    """Messages that wait, of as many chats."""

    async def accept(number: int) -> None:
        source = SessionSource(platform=Platform.LOCAL, chat_id=f"chat{number}")
        turn = turns.Turn(
            id=f"t{number}",
            session_key=f"agent:main:local:dm:chat{number}",
            source=source,
            text="x" * 500,
            received_at=datetime.now(UTC),
        )
        await store.turns.accept(turn, lambda *_: turns.Admission())

    for start in range(0, messages, CHATS):
        await asyncio.gather(*map(accept, range(start, min(start + CHATS, messages))))
