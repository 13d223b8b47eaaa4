"""A turn through the whole gateway, over HTTP, beside the least that a gateway could do."""

import itertools
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.table import Result, micros, millis, rank_of
from benchmarks.wire import Lines, cpu_seconds, in_turns, post

TOKEN = "a token for benchmarks"
TURNS_PER_SECOND = 50
CHATS = 32
FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[confirm]
port = 0
[session_reset]
mode = "none"
max_messages = 0
[store]
url = "{store}"
[channels.api_server.tokens_env]
bench = "BENCH_TOKEN"
"""


class Program(NamedTuple):
    """A process that answers on a port."""

    pid: int
    port: int


@contextmanager
def running(folder: Path, store: str, name: str = "node") -> Iterator[Program]:
    """A gateway as a process of its own."""
    home = folder / name
    home.mkdir()
    (home / "frontdesk.toml").write_text(FILE.format(store=store))
    program = str(Path(sys.executable).with_name("frontdesk"))
    environ = os.environ | {"FRONTDESK_HOME": str(home), "BENCH_TOKEN": TOKEN}
    with _started([program, "run", "--log-level", "warning"], environ) as process:
        yield process


@contextmanager
def _started(command: list[str], environ: dict[str, str]) -> Iterator[Program]:
    """Once it has said its port."""
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        found = re.search(r"\b(\d+)\b(?!\.)", process.stdout.readline().rpartition(":")[2])
        assert found, "it did not start"
        try:
            yield Program(process.pid, int(found[1]))
        finally:
            process.terminate()
            process.wait(60)


class Chats:
    """Programs that talk to a gateway, each message in the next chat."""

    def __init__(self, port: int) -> None:
        self.lines = Lines(port)
        self._numbers = itertools.count()

    async def turn(self) -> float:
        chat = str(next(self._numbers) % CHATS)
        body = {"model": "any", "messages": [{"role": "user", "content": "x" * 500}]}
        headers = {
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "x-frontdesk-session": chat,
        }
        return await self.lines.ask(post("/v1/chat/completions", body, headers))


async def turned(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn over HTTP with an agent that takes no time, at a steady rate, from its request to its answer."""
    bare = [sys.executable, "-m", "benchmarks.bare_server", str(folder)]
    with running(folder, f"sqlite:///{folder}/state.db") as ours, _started(bare, dict(os.environ)) as least:
        both = [Chats(each.port) for each in (ours, least)]
        await _steadily(both, TURNS_PER_SECOND)  # warm
        before = [cpu_seconds(each.pid) for each in (ours, least)]
        count = TURNS_PER_SECOND * (5 if quick else 30)
        taken = await _steadily(both, count)
        used = [
            (cpu_seconds(each.pid) - so_far) / count
            for each, so_far in zip((ours, least), before, strict=True)
        ]
        for each in both:
            each.lines.close()
    for rank, most in ((0.5, 5), (0.99, 25)):
        mine, plain = (rank_of(each, rank) for each in taken)
        what = f"a turn over HTTP, {TURNS_PER_SECOND} turns/s, p{rank * 100:.0f}"
        yield Result(what, millis(mine), millis(plain), mine * 1e3, most, unit="ms")
    mine, plain = used
    yield Result("  processor time of a turn", micros(mine), micros(plain), mine / plain, None)


async def _steadily(chats: list[Chats], count: int) -> list[list[float]]:
    return await in_turns([each.turn for each in chats], count, lambda: 1 / TURNS_PER_SECOND / len(chats))
