"""The whole gateway: what it adds to a turn, a burst of messages, three nodes."""

import asyncio
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx

from benchmarks.bare import bare_rate
from benchmarks.raw import INSERT, USER, GroupWriter, open_raw
from benchmarks.table import Result, millis
from frontdesk import (
    GatewayConfig,
    Platform,
    ResetMode,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    plugins,
)
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.cli.running import freeze_loaded
from frontdesk.contracts.channels import Incoming
from frontdesk.model import turns
from frontdesk.stores.store import Store
from frontdesk.testing import postgres

TOKEN = "a token for benchmarks"
TURNS_PER_SECOND = 50
CHATS = 32
NODES = 3
MIB = 1024
CONFIG = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=0))
FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[session_reset]
mode = "none"
max_messages = 0
[store]
url = "{store}"
[channels.api_server.tokens_env]
bench = "BENCH_TOKEN"
"""


@contextmanager
def running(folder: Path, store: str, name: str = "node") -> Iterator[str]:
    """A gateway as a process of its own; its address."""
    home = folder / name
    home.mkdir()
    (home / "frontdesk.toml").write_text(FILE.format(store=store))
    program = str(Path(sys.executable).with_name("frontdesk"))
    environ = os.environ | {"FRONTDESK_HOME": str(home), "BENCH_TOKEN": TOKEN}
    arguments = [program, "run", "--log-level", "warning"]
    with subprocess.Popen(arguments, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert found, "the gateway did not start"
        try:
            yield found[0]
        finally:
            process.terminate()
            process.wait(60)


async def added(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn over HTTP with an agent that takes no time, at a steady rate."""
    with running(folder, f"sqlite:///{folder}/state.db") as url:
        async with httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}) as client:
            count = TURNS_PER_SECOND * (5 if quick else 30)
            await steadily(partial(turn, client), TURNS_PER_SECOND)  # warm
            taken = await steadily(partial(turn, client), count)
            bare = await steadily(partial(_request, client), count)
    name = f"what the gateway adds to a turn over HTTP, {TURNS_PER_SECOND} turns/s"
    for rank, most in ((0.5, 10), (0.99, 50)):
        ours, least = rank_of(taken, rank), rank_of(bare, rank)
        what = f"{name}, p{rank * 100:.0f}"
        yield Result(what, millis(ours), millis(least), (ours - least) * 1e3, most, unit="ms")


async def turn(client: httpx.AsyncClient, number: int) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": "x" * 500}]}
    chat = {"x-frontdesk-session": str(number % CHATS)}
    (await client.post("/v1/chat/completions", json=body, headers=chat)).raise_for_status()


async def _request(client: httpx.AsyncClient, _number: int) -> None:
    """A request of the same client to the same server that asks for no turn."""
    (await client.get("/v1/models")).raise_for_status()


async def steadily(
    ask: Callable[[int], Awaitable[None]], count: int, rate: int = TURNS_PER_SECOND
) -> list[float]:
    async def timed(number: int) -> float:
        await asyncio.sleep(number / rate)
        start = time.perf_counter()
        await ask(number)
        return time.perf_counter() - start

    return await asyncio.gather(*map(timed, range(count)))


def rank_of(taken: list[float], rank: float) -> float:
    return sorted(taken)[int(len(taken) * rank)]


async def burst(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Messages of very many chats at once, each until it is on disk, while turns already run."""
    chats = 2_000 if quick else 10_000
    async with await SessionStore.open(f"sqlite:///{folder}/state.db", CONFIG) as sessions:
        gateway = Gateway(sessions, scripted.Driver(scripted.Options()), [])
        async with gateway.started():
            freeze_loaded()

            async def accept(number: int) -> float:
                start = time.perf_counter()
                source = SessionSource(platform=Platform.LOCAL, chat_id=str(number), user_id=str(number))
                await gateway.desk.accept(Incoming(source=source, text="x" * 500, event_id=str(number)))
                return time.perf_counter() - start

            start = time.perf_counter()
            taken = await asyncio.gather(*map(accept, range(chats)))
            whole = time.perf_counter() - start
            await _drained(gateway.parts.store)
            done = time.perf_counter() - start
    p99, bare = rank_of(taken, 0.99), rank_of(await _bare_burst(folder, chats), 0.99)
    name = f"burst of {chats:,} chats, accepted ({chats / whole:,.0f}/s)"
    yield Result(f"{name}, p99", millis(p99), millis(bare), p99 * 1e3, 500, unit="ms")
    yield Result(f"  and all answered ({chats / done:,.0f}/s)", millis(done), "-", done, None, unit="s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    yield Result("  most memory", f"{memory:,.0f} MiB", "-", memory, 300, unit="MiB")


async def _bare_burst(folder: Path, chats: int) -> list[float]:
    """The same messages, each one bare row, through a bare group-commit writer."""
    writer = GroupWriter(open_raw(folder / "bare.db"))

    async def accept(number: int) -> float:
        start = time.perf_counter()
        await writer.write((INSERT, (str(number), "user", USER, start)))
        return time.perf_counter() - start

    try:
        return await asyncio.gather(*map(accept, range(chats)))
    finally:
        writer.close()


async def _drained(store: Store) -> list[tuple[float, int]]:
    """Wait until no turn waits; how many did, and when."""
    seen = []
    while True:
        left = (await store.turns.counts()).get("queued", 0)
        seen.append((time.perf_counter(), left))
        if not left:
            return seen
        await asyncio.sleep(0.1)


async def nodes(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Durable turns of three nodes on one PostgreSQL server, against the same statements bare."""
    messages = 1_500 if quick else 6_000
    with postgres.running() as server:
        ours = await _rate(folder, f"{server.url}?schema=ours", messages)
        bare = await _bare(f"{server.url}?schema=bare", messages)
    yield Result(
        "PostgreSQL: turns/s, three nodes", f"{ours:,.0f}/s", "-", ours, 1_000, at_least=True, unit="/s"
    )
    name = "PostgreSQL: three nodes, to the same statements bare"
    yield Result(name, f"{ours:,.0f}/s", f"{bare:,.0f}/s", ours / bare, 0.8, at_least=True)


async def _rate(folder: Path, url: str, messages: int) -> float:
    """Turns a second from the first to the last of those that wait when the nodes start."""
    store: Store = await plugins.load_store(url)(url)
    try:
        await fill(store, messages)
        with ExitStack() as started:
            for number in range(NODES):
                started.enter_context(running(folder, url, f"node{number}"))
            counts = await _drained(store)
    finally:
        await store.close()
    return _slope(counts)


async def _bare(url: str, messages: int) -> float:
    store: Store = await plugins.load_store(url)(url)
    await fill(store, messages)
    await store.close()
    return await bare_rate(url, NODES)


def _slope(counts: list[tuple[float, int]]) -> float:
    """Turns a second between the first fifth and the end."""
    most = counts[0][1]
    steady = [(at, left) for at, left in counts if left <= 0.8 * most] or counts
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
            received_at=_now(),
        )
        await store.turns.accept(turn, lambda *_: turns.Admission())

    for start in range(0, messages, CHATS):
        await asyncio.gather(*map(accept, range(start, min(start + CHATS, messages))))


def _now() -> datetime:
    return datetime.now(UTC)
