"""Messages of very many chats at once.

``python -m benchmarks.burst FOLDER CHATS ROUNDS`` takes them in, in a process of its own whose memory nothing
else has used, and prints what it took as JSON.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from benchmarks.nodes import drained
from benchmarks.raw import INSERT, USER, group_writer, open_raw
from benchmarks.table import Result, millis, rank_of
from frontdesk import GatewayConfig, Platform, ResetMode, SessionResetPolicy, SessionSource, SessionStore
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.cli.running import freeze_loaded
from frontdesk.contracts.channels import Incoming

MIB = 1024
ROUNDS = 5
CONFIG = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=0))


async def burst(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """Each message until it is on disk, while turns already run; against a bare group-commit writer."""
    chats = 2_000 if quick else 10_000
    command = (sys.executable, "-m", "benchmarks.burst", str(folder), str(chats), str(ROUNDS))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, "the burst failed"
    found: dict[str, Any] = json.loads(said)
    mine, bare = median(found["ours"]), median(found["bare"])
    rate, done, memory = chats / median(found["whole"]), found["answered"], found["memory"]
    name = f"burst of {chats:,} chats, accepted ({rate:,.0f}/s), p99"
    yield Result(
        name,
        f"{millis(mine)}, {millis(max(found['ours']))} at most",
        millis(bare),
        mine * 1e3,
        350,
        unit="ms",
    )
    yield Result(f"  and all answered ({chats / done:,.0f}/s)", millis(done), "-", done, None, unit="s")
    yield Result("  most memory", f"{memory:,.0f} MiB", "-", memory, 300, unit="MiB")


async def _rounds(folder: Path, chats: int, rounds: int) -> dict[str, Any]:
    """By turns, each in a file of its own. The first round goes on until all are answered."""
    found: dict[str, Any] = {"ours": [], "bare": [], "whole": []}
    for number in range(rounds):
        first = number == 0
        taken, whole, answered = await _burst(folder / f"ours{number}.db", chats, until_answered=first)
        found["ours"].append(rank_of(taken, 0.99))
        found["whole"].append(whole)
        if first:
            found["answered"] = answered
            found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
        found["bare"].append(rank_of(await _bare_burst(folder / f"bare{number}.db", chats), 0.99))
    return found


async def _burst(path: Path, chats: int, *, until_answered: bool) -> tuple[list[float], float, float]:
    """How long each took, all took, and all took until they were answered."""
    async with await SessionStore.open(f"sqlite:///{path}", CONFIG) as sessions:
        gateway = Gateway(sessions, scripted.Driver(scripted.Options()), [])
        async with gateway.started():
            freeze_loaded()
            start = time.perf_counter()
            taken = await asyncio.gather(*map(partial(_accept, gateway), range(chats)))
            whole = time.perf_counter() - start
            if until_answered:
                await drained(gateway.parts.store)
            return taken, whole, time.perf_counter() - start


async def _accept(gateway: Gateway, number: int) -> float:
    start = time.perf_counter()
    source = SessionSource(platform=Platform.LOCAL, chat_id=str(number), user_id=str(number))
    await gateway.desk.accept(Incoming(source=source, text="x" * 500, event_id=str(number)))
    return time.perf_counter() - start


async def _bare_burst(path: Path, chats: int) -> list[float]:
    """The same messages, each one bare row, through a bare group-commit writer."""
    db = open_raw(path)
    with group_writer(db) as writer:

        async def accept(number: int) -> float:
            start = time.perf_counter()
            await writer.write((INSERT, (str(number), "user", USER, start)))
            return time.perf_counter() - start

        taken = await asyncio.gather(*map(accept, range(chats)))
    db.close()
    return taken


def main() -> None:
    folder, chats, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the program does
        print(json.dumps(runner.run(_rounds(folder, chats, rounds))))


if __name__ == "__main__":
    main()
