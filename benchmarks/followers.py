"""Those who follow: how soon they are told, what they cost others, and what they cost while nothing happens.

``python -m benchmarks.followers FOLDER STORE`` is a gateway to follow; it prints its port, and tokens.
"""

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import uvloop

from benchmarks.audience import following
from benchmarks.gateway import CHATS
from benchmarks.table import Result, micros, millis, rank_of
from benchmarks.wire import Lines, cpu_seconds, in_turns, post
from frontdesk import config
from frontdesk.app import build
from frontdesk.app.confirmations import prepare_keys
from frontdesk.cli.running import freeze_loaded
from frontdesk.formats import webhooks
from frontdesk.model.access import Role
from frontdesk.model.passes import PassKind
from frontdesk.web import server
from frontdesk.web.bounds import Listeners, PortLimits
from frontdesk.web.confirmations.serving import make_served

IDLE_STREAMS = 4_000
FOLLOWERS = 1_000
WAITING = (10, 1_000)
VISITORS = 1_000
"""Each has a token, and writes and follows what is their own; one more sees everything."""
ACKNOWLEDGED = {"own": 5_000, "everything": 1_000}
"""So many make the slowest of a hundred more than chance: these come together, when several write at once."""
WARMING = 50
KIB = 1024
FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[session_reset]
mode = "none"
max_messages = 0
[gateway]
turns_at_once = 2000
[store]
url = "{store}"
[channels.api_server.tokens_env]
bench = "BENCH_TOKEN"
[channels.webhook]
callback_url = "http://127.0.0.1:9/answers"
secret_env = "BENCH_SECRET"
"""
TOKEN = "a token for benchmarks"
SECRET = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0"
MESSAGES_PER_SECOND = 30


async def serve(folder: Path, store: str) -> None:
    (folder / "frontdesk.toml").write_text(FILE.format(store=store))
    loaded = config.load(folder / "frontdesk.toml", {**os.environ, "FRONTDESK_HOME": str(folder)})
    async with build.open_gateway(loaded) as gateway, gateway.started():
        service, keys = gateway.parts.confirmations, prepare_keys(loaded.home)
        served = make_served(service, keys, loaded.confirm.people, service.settings.page_url)
        listeners = Listeners(limits=PortLimits(connections=10**6, portion_of_files=2))
        serving = server.serving(gateway, host="127.0.0.1", port=0, confirmations=served, listeners=listeners)
        async with serving as address:
            named = [f"o{number}" for number in range(VISITORS)]
            tokens = [await _token(service.passes, name, Role.USER) for name in named]
            tokens.append(await _token(service.passes, "everything", Role.VIEWER))
            freeze_loaded()  # as the program does
            print(json.dumps({"port": address.port, "tokens": tokens}), flush=True)
            await asyncio.Event().wait()


async def _token(book: Any, name: str, role: Role) -> str:
    _, secret = await book.issue(PassKind.TOKEN, name, role, f"webhook:{name}", timedelta(days=1), by="bench")
    return str(secret)


class Child(NamedTuple):
    """The gateway, as a process of its own."""

    pid: int
    port: int
    tokens: list[str]

    @property
    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    @property
    def memory_bytes(self) -> int:
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        (own,) = (line for line in lines if line.startswith("Private_Dirty:"))
        return int(own.split()[1]) * KIB


@contextmanager
def running(folder: Path, store: str | None = None) -> Iterator[Child]:
    folder.mkdir(exist_ok=True)
    store = store or f"sqlite:///{folder}/state.db"
    command = [sys.executable, "-m", "benchmarks.followers", str(folder), store]
    environ = os.environ | {"BENCH_TOKEN": TOKEN, "BENCH_SECRET": SECRET}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout
        try:
            yield Child(process.pid, **json.loads(process.stdout.readline()))
        finally:
            process.kill()


async def idle(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """What streams cost on which nothing happens."""
    seconds = 30.0 if quick else 60.0
    with running(folder / "idle") as child:
        async with following(child.port, 50, child.tokens[:-1]):
            await asyncio.sleep(2)
        before, own = child.memory_bytes, await _load(child, seconds)
        async with following(child.port, IDLE_STREAMS, child.tokens[:-1]):
            await asyncio.sleep(2)
            each = (child.memory_bytes - before) / IDLE_STREAMS / KIB
            load = await _load(child, seconds)
    what = f"{IDLE_STREAMS:,} idle streams of events"
    yield Result(f"{what}, of a core", f"{load:.2f} %", f"{own:.2f} % without", load - own, 1.0, unit="%")
    yield Result(f"{what}, memory of each", f"{each:.1f} KiB", "-", each, 12.0, unit="KiB")


async def _load(child: Child, seconds: float) -> float:
    began, used = time.monotonic(), child.cpu_seconds
    await asyncio.sleep(seconds)
    return (child.cpu_seconds - used) / (time.monotonic() - began) * 100


class Writer:
    """People who write messages through one gateway; measures until each is acknowledged."""

    def __init__(self, child: Child, name: str) -> None:
        self.lines = Lines(child.port)
        self._name = name
        self._sent = 0

    async def write(self) -> float:
        self._sent += 1
        return await self.lines.ask(self._request(self._sent))

    def _request(self, number: int) -> bytes:
        who, named = f"o{number % VISITORS}", f"{self._name}{number}"
        told = {"id": named, "chat_id": who, "user_id": who, "text": "!silent"}
        body = json.dumps(told).encode()
        return post(
            "/channels/webhook", body, webhooks.signed_headers(SECRET, named, datetime.now(UTC), body)
        )


@contextmanager
def writing(child: Child, name: str = "m") -> Iterator[Writer]:
    writer = Writer(child, name)
    try:
        yield writer
    finally:
        writer.lines.close()


async def write_in_turns(writers: Sequence[Writer], count: int) -> list[list[float]]:
    """So many messages through each of them, at moments like those at which people write; what they took."""
    chance = random.Random(1)
    rate = MESSAGES_PER_SECOND * len(writers)
    taken = await in_turns([each.write for each in writers], count, lambda: chance.expovariate(rate))
    await asyncio.sleep(1)
    return taken


async def told(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """From the moment of a change, which is before its commit, until a follower has it."""
    count = MESSAGES_PER_SECOND * (10 if quick else 30)
    with running(folder / "told") as child, writing(child) as writer:
        async with following(child.port, 20, child.tokens[-1:]) as audience:
            await write_in_turns([writer], count)
    for rank, most in ((0.5, None), (0.99, 100.0)):
        found = rank_of(audience.heard.taken, rank)
        what = f"an event until 20 followers have it, {MESSAGES_PER_SECOND} messages/s, p{rank * 100:.0f}"
        yield Result(what, millis(found), "-", found * 1e3, most, unit="ms")


async def followed(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A message's acknowledgement, with many who follow and without, taking turns."""
    with running(folder / "followed") as child, running(folder / "alone") as alone:
        for which, tokens, target in (
            ("own", child.tokens[:-1], 1.1),
            ("everything", child.tokens[-1:], None),
        ):
            count = 500 if quick else ACKNOWLEDGED[which]
            with writing(child, which) as with_them, writing(alone, which) as without:
                writers = (with_them, without)
                async with following(child.port, FOLLOWERS, tokens) as audience:
                    await write_in_turns(writers, WARMING)
                    used = [each.cpu_seconds for each in (child, alone)]
                    taken = await write_in_turns(writers, count)
                    used = [
                        each.cpu_seconds - before for each, before in zip((child, alone), used, strict=True)
                    ]
            what = f"{FOLLOWERS:,} follow {'what is their own' if which == 'own' else which}"
            for rank in (0.5, 0.99):
                ours, bare = (rank_of(each, rank) for each in taken)
                about = f"acknowledgement, {what}, p{rank * 100:.0f}"
                yield Result(about, millis(ours), f"{millis(bare)} without", ours / bare, target)
            ours, bare = (each / count for each in used)
            yield Result(f"processor time of a turn, {what}", micros(ours), micros(bare), ours / bare, None)
            if which != "own":
                late = rank_of(audience.heard.taken, 0.99)
                yield Result(
                    f"an event until {what} have it, p99", millis(late), "-", late * 1e3, 100.0, unit="ms"
                )


async def waiting(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """What a turn costs the processor while chat completions wait for others, many and few taking turns."""
    rounds, count = (4, 60) if quick else (10, 150)
    few, many = WAITING
    costs: dict[int, list[float]] = {few: [], many: []}
    async with AsyncExitStack() as stack:
        waited = [
            (number, await stack.enter_async_context(_waited_for(stack, folder, number)))
            for number in (few, many)
        ]
        for turn in range(rounds + 1):
            for number, (child, client) in waited:
                used = child.cpu_seconds
                for each in range(count):
                    await complete(client, f"busy{each % CHATS}", "hello")
                if turn:  # the first warms
                    costs[number].append((child.cpu_seconds - used) / count)
    ours, bare = (statistics.median(costs[number]) for number in (many, few))
    what = f"processor time of a turn while {many:,} completions wait, to {few}"
    yield Result(what, micros(ours), micros(bare), ours / bare, 1.2)


@asynccontextmanager
async def _waited_for(
    stack: AsyncExitStack, folder: Path, number: int
) -> AsyncIterator[tuple[Child, httpx.AsyncClient]]:
    child = stack.enter_context(running(folder / f"waiting{number}"))
    # This client looks at all its connections for each request: those that wait have one of their own.
    async with _client(child) as client, _client(child) as busy, asyncio.TaskGroup() as group:
        tasks = [group.create_task(complete(client, f"waits{each}", "!hang")) for each in range(number)]
        await asyncio.sleep(2 + number / 100)
        yield child, busy
        for task in tasks:
            task.cancel()


def _client(child: Child) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{child.port}",
        trust_env=False,
        timeout=None,
        headers={"authorization": f"Bearer {TOKEN}"},
        limits=httpx.Limits(max_connections=None),
    )


async def complete(client: httpx.AsyncClient, chat: str, text: str) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": text}]}
    answer = await client.post("/v1/chat/completions", json=body, headers={"x-frontdesk-session": chat})
    answer.raise_for_status()


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the program does
        runner.run(serve(Path(sys.argv[1]), sys.argv[2]))


if __name__ == "__main__":
    main()
