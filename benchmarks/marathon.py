"""A chat of 100,000 messages: how long loading it holds up everything else, and how much memory it takes."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import uvloop

from benchmarks import ours, raw
from benchmarks.table import Result
from frontdesk import SessionStore

BEAT_SECONDS = 0.001
STATUS, RESET, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs"), "5"
MOST_HELD_MILLISECONDS, MOST_GIVEN_MIB = 20, 100


async def loads(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """What an agent is given of it, and all of it, each in a process of its own."""
    count = 10_000 if quick else 100_000
    url = f"sqlite:///{folder / 'marathon.db'}"
    async with await SessionStore.open(url, ours.CONFIG) as store:
        entry = await store.get_or_create_session(ours.source_of("0"))
        turn = [{"role": "user", "content": raw.USER}, {"role": "assistant", "content": raw.REPLY}]
        for _ in range(0, count, 1_000):
            await store.record_turn(entry.session_id, turn * 500)
    chat = f"a chat of {count:,} messages"
    for what, name, target in (("given", "for an agent", MOST_GIVEN_MIB), ("whole", "whole", None)):
        held, mib = await _measured(url, entry.session_id, what)
        most = MOST_HELD_MILLISECONDS
        yield Result(f"load {chat} {name}: longest hold", f"{held:.1f} ms", "-", held, most, unit="ms")
        yield Result("  memory", f"{mib:.0f} MiB", "-", mib, target, unit="MiB")


async def _measured(url: str, session_id: str, what: str) -> tuple[float, float]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.marathon", url, session_id, what, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await child.communicate()
    held, mib = json.loads(told)
    return held, mib


async def _load(url: str, session_id: str, what: str) -> tuple[float, float]:
    async with await SessionStore.open(url, ours.CONFIG) as store:
        _peak_mib()
        before = _peak_mib()
        if what == "given":
            held = await _longest_hold(store.store.transcripts.load_newest(session_id))
        else:
            held = await _longest_hold(store.load_transcript(session_id))
        return held, _peak_mib() - before


async def _longest_hold(loading: Awaitable[object]) -> float:
    """For how many milliseconds the loop's thread was at work at most before others had their turn. By the
    clock it would be how busy the machine is."""
    task = asyncio.ensure_future(loading)
    longest, before = 0.0, time.thread_time()
    while not task.done():
        await asyncio.sleep(BEAT_SECONDS)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    await task
    return longest * 1e3


def _peak_mib() -> float:
    """The most memory that was used since this was asked before. What the system counts for a process begins
    with that of whoever started it."""
    (peak,) = [line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")]
    RESET.write_text(RESET_PEAK)
    return int(peak) / 1024


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(_load(*sys.argv[1:]))))
