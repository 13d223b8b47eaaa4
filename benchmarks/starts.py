"""From the start of a process: until the first message has its session, and until help is shown."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from benchmarks import ours, raw
from benchmarks.table import Result, Spent, medians, millis

CHATS = 100_000
ROUNDS = 7
FIRST = """
import asyncio, sys, time
from frontdesk import SessionSource, SessionStore
async def main():
    async with await SessionStore.open(f"sqlite:///{sys.argv[1]}/ours.db") as store:
        source = SessionSource(platform="telegram", chat_id="77", user_id="user77")
        entry = await store.get_or_create_session(source)
        print(time.perf_counter(), time.process_time())
        assert entry.session_id == "s77", entry
asyncio.run(main())
"""
BARE = """
import sys, time
import apsw
db = apsw.Connection(sys.argv[1] + "/raw.db")
db.pragma("synchronous", "full")
((session,),) = db.execute("SELECT id FROM sessions WHERE chat = ?", ("77",)).fetchall()
print(time.perf_counter(), time.process_time())
assert session == "s77"
"""
HELP = {"--help": 150, "run --help": 200}


async def first(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """The session of the first message after a start, with what Python imports for it."""
    chats = 10_000 if quick else CHATS
    store = await ours.open_filled(folder / "ours.db", chats)
    await store.close()
    db = raw.open_raw(folder / "raw.db")
    raw.fill(db, chats)
    db.close()
    mine, bare = await medians(
        ROUNDS, *(partial(asyncio.to_thread, _until_said, each, folder) for each in (FIRST, BARE))
    )
    ours_, bare_ = (f"{millis(each.seconds)}, {millis(each.cpu)} cpu" for each in (mine, bare))
    yield Result(
        f"first resolve after start, {chats:,} chats", ours_, bare_, mine.seconds * 1e3, 150, unit="ms"
    )


def _until_said(program: str, folder: Path) -> Spent:
    """The clock is the same in all processes: closing the store, and the end of Python, come later."""
    start = time.perf_counter()
    command = [sys.executable, "-c", program, str(folder)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    until, cpu = map(float, said.split())
    return Spent(until - start, cpu)


async def helped(_: Path, quick: bool) -> AsyncIterator[Result]:
    """What showing help takes of the processor."""
    program = str(Path(sys.executable).with_name("frontdesk"))
    commands = [[program, *each.split()] for each in HELP]
    runs = [
        partial(asyncio.to_thread, _until_ended, each) for each in (*commands, [sys.executable, "-c", "pass"])
    ]
    *found, python = await medians(5 if quick else 11, *runs)
    for (what, most), spent in zip(HELP.items(), found, strict=True):
        shown = f"{millis(python.cpu)} python"
        yield Result(f"frontdesk {what}, cpu", millis(spent.cpu), shown, spent.cpu * 1e3, most, unit="ms")


def _until_ended(command: list[str]) -> Spent:
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Spent(time.perf_counter() - start, used.ru_utime + used.ru_stime)
