"""Those who follow: how soon they are told, what they cost others, and what they cost while nothing happens.

``python -m benchmarks.followers FOLDER STORE`` is a gateway to follow; it prints its port, and tokens.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import uvloop

from benchmarks.gateway import CHATS, rank_of, steadily
from benchmarks.table import Result, micros, millis
from frontdesk import config
from frontdesk.app import build
from frontdesk.app.confirmations import prepare_keys
from frontdesk.formats import webhooks
from frontdesk.model.access import Role
from frontdesk.model.passes import PassKind
from frontdesk.web import server
from frontdesk.web.bounds import Listeners, PortLimits
from frontdesk.web.confirmations.serving import make_served

IDLE_STREAMS = 4_000
FOLLOWERS = 1_000
WAITING = (10, 1_000)
VISITORS = 40
"""A credential may have a part of all connections."""
KIB = 1024
TICKS = os.sysconf("SC_CLK_TCK")
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
MESSAGES_PER_SECOND = 20
FOLLOW = (
    "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    "Authorization: Bearer {token}\r\n\r\n"
)


async def serve(folder: Path, store: str) -> None:
    (folder / "frontdesk.toml").write_text(FILE.format(store=store))
    loaded = config.load(folder / "frontdesk.toml", {**os.environ, "FRONTDESK_HOME": str(folder)})
    async with build.open_gateway(loaded) as gateway, gateway.started():
        service, keys = gateway.parts.confirmations, prepare_keys(loaded.home)
        served = make_served(service, keys, loaded.confirm.people, service.settings.page_url)
        listeners = Listeners(limits=PortLimits(connections=10**6, portion_of_files=2))
        serving = server.serving(gateway, host="127.0.0.1", port=0, confirmations=served, listeners=listeners)
        async with serving as address:
            named = [f"watcher{number}" for number in range(VISITORS)]
            tokens = [await _token(service.passes, name, Role.USER) for name in named]
            tokens.append(await _token(service.passes, "everything", Role.VIEWER))
            print(json.dumps({"port": address.port, "tokens": tokens}), flush=True)
            await asyncio.Event().wait()


async def _token(book: Any, name: str, role: Role) -> str:
    _, secret = await book.issue(
        PassKind.TOKEN, name, role, f"api_server:{name}", timedelta(days=1), by="bench"
    )
    return str(secret)


class Child(NamedTuple):
    """The gateway, as a process of its own."""

    pid: int
    port: int
    tokens: list[str]

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

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


class Listening(asyncio.Protocol):
    """Somebody who follows; remembers when each event came."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._unread = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.came: list[tuple[float, dict[str, Any]]] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._unread += data
        *whole, self._unread = self._unread.split(b"\n\n")
        for block in whole:
            if not self.opened.done() and b"id: " in block:
                self.opened.set_result(None)
            _, found, told = block.partition(b"data: ")
            if found:
                self.came.append((now, msgspec.json.decode(told.split(b"\n", 1)[0])))


@asynccontextmanager
async def listening(child: Child, count: int, tokens: list[str]) -> AsyncIterator[list[Listening]]:
    loop = asyncio.get_running_loop()
    made: list[Listening] = []
    async with AsyncExitStack() as stack:
        for number in range(count):
            request = FOLLOW.format(token=tokens[number % len(tokens)]).encode()
            making = partial(Listening, request)
            _, each = await loop.create_connection(making, "127.0.0.1", child.port)
            stack.callback(each.transport.abort)
            made.append(each)
            if number % 50 == 49:
                await asyncio.gather(*(one.opened for one in made))
        await asyncio.gather(*(one.opened for one in made))
        yield made


async def idle(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """What streams cost on which nothing happens."""
    seconds = 30.0 if quick else 100.0
    with running(folder / "idle") as child:
        async with listening(child, 50, child.tokens[:VISITORS]):
            await asyncio.sleep(2)
        before, own = child.memory_bytes, await _load(child, 10.0)
        async with listening(child, IDLE_STREAMS, child.tokens[:VISITORS]):
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
    """Somebody who writes messages, and measures until each is acknowledged."""

    def __init__(self, client: httpx.AsyncClient, name: str) -> None:
        self._client = client
        self._name = name
        self._sent = 0

    async def write(self, _: int = 0) -> None:
        self._sent += 1
        named = f"{self._name}-{self._sent % CHATS}"
        told = {"id": f"{self._name}{self._sent}", "chat_id": named, "user_id": named, "text": "!silent"}
        body = json.dumps(told).encode()
        headers = webhooks.signed_headers(SECRET, f"m{self._sent}", datetime.now(UTC), body)
        (await self._client.post("/channels/webhook", content=body, headers=headers)).raise_for_status()


@asynccontextmanager
async def writing(child: Child, name: str) -> AsyncIterator[Writer]:
    url = f"http://127.0.0.1:{child.port}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        yield Writer(client, name)


async def told(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """From the moment of a change, which is before its commit, until a follower has it."""
    count = MESSAGES_PER_SECOND * (10 if quick else 60)
    with running(folder / "told") as child:
        async with writing(child, "t") as writer, listening(child, 20, child.tokens[-1:]) as followers:
            await steadily(writer.write, count, MESSAGES_PER_SECOND)
            await asyncio.sleep(2)
    taken = [now - event["at"] for each in followers for now, event in each.came]
    for rank, most in ((0.5, None), (0.99, 100.0)):
        found = rank_of(taken, rank)
        what = f"an event until 20 followers have it, {MESSAGES_PER_SECOND} messages/s, p{rank * 100:.0f}"
        yield Result(what, millis(found), "-", found * 1e3, most, unit="ms")


async def followed(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A message's acknowledgement, with many who follow and without, taking turns."""
    rounds, count = (4, 60) if quick else (12, 200)
    with running(folder / "followed") as child, running(folder / "alone") as alone:
        for which, tokens, target in (
            ("their own", child.tokens[:VISITORS], 1.1),
            ("everything", child.tokens[-1:], None),
        ):
            async with (
                writing(child, f"f{which[0]}") as with_them,
                writing(alone, f"a{which[0]}") as without,
                listening(child, FOLLOWERS, tokens),
            ):
                times: tuple[list[float], list[float]] = ([], [])
                for writer in (with_them, without):
                    await steadily(writer.write, count, MESSAGES_PER_SECOND)  # warm
                for _ in range(rounds):
                    for writer, kept in zip((with_them, without), times, strict=True):
                        kept.extend(await steadily(writer.write, count, MESSAGES_PER_SECOND))
            for rank in (0.5, 0.99):
                ours, bare = (rank_of(each, rank) for each in times)
                what = f"acknowledgement, {FOLLOWERS:,} follow {which}, p{rank * 100:.0f}"
                yield Result(what, millis(ours), f"{millis(bare)} without", ours / bare, target)


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
    limits = httpx.Limits(max_connections=None)
    url = f"http://127.0.0.1:{child.port}"
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        httpx.AsyncClient(
            base_url=url, trust_env=False, timeout=None, headers=headers, limits=limits
        ) as client,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(complete(client, f"waits{each}", "!hang")) for each in range(number)]
        await asyncio.sleep(2 + number / 100)
        yield child, client
        for task in tasks:
            task.cancel()


async def complete(client: httpx.AsyncClient, chat: str, text: str) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": text}]}
    answer = await client.post("/v1/chat/completions", json=body, headers={"x-frontdesk-session": chat})
    answer.raise_for_status()


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the program does
        runner.run(serve(Path(sys.argv[1]), sys.argv[2]))


if __name__ == "__main__":
    main()
