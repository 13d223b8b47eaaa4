"""The SQLite engine: who reads sees what was posted before."""

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from frontdesk import errors
from frontdesk.contracts.store import Row, Work
from frontdesk.stores.posts import KEPT_SECONDS
from frontdesk.stores.sqlite import faults
from frontdesk.stores.sqlite.engine import SqliteEngine
from frontdesk.stores.sqlite.files import Location


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    engine = await asyncio.to_thread(SqliteEngine, Location(tmp_path / "state.db"))
    yield engine
    await engine.close()


def wait_for(door: threading.Event) -> Work[None]:
    """Work that takes as long as a slow disk does."""
    assert door.wait(30)
    yield from ()


def note_lane() -> Work[None]:
    yield "line_up", {"lane": "turn:here", "kind": "turn", "due_at": 0, "party": ""}


def next_due(kind: str) -> Work[list[Row]]:
    return (yield "next_due", {"kind": kind})


async def held_up(engine: SqliteEngine, door: threading.Event) -> "asyncio.Task[None]":
    """The writer at work until the door opens."""
    slow = asyncio.create_task(engine.write(partial(wait_for, door)))
    await asyncio.sleep(0)
    return slow


async def lanes_seen(engine: SqliteEngine) -> list[Row]:
    return await engine.read(partial(next_due, "turn"))


async def test_reader_sees_what_was_posted_and_waits_for_the_writer(engine: SqliteEngine) -> None:
    door = threading.Event()
    slow = await held_up(engine, door)
    await engine.post("here", note_lane)
    await asyncio.sleep(2 * KEPT_SECONDS)  # it goes to the writer by the clock
    reading = asyncio.create_task(lanes_seen(engine))
    await asyncio.sleep(KEPT_SECONDS)
    assert not reading.done()
    door.set()
    assert await reading == [(0,)]
    await slow


async def test_writer_goes_on_after_an_error_that_is_not_of_the_database(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **_named: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(faults.WriteHealth, "wrote", no_memory)
        with pytest.raises(errors.StoreFailed, match="no room"):
            await engine.write(note_lane)
    await engine.write(note_lane)
    assert await lanes_seen(engine) == [(0,)]


async def test_reader_sees_what_another_write_took_along(engine: SqliteEngine) -> None:
    door = threading.Event()
    slow = await held_up(engine, door)
    await engine.post("here", note_lane)
    other = asyncio.create_task(engine.write(partial(next_due, "control")))
    await asyncio.sleep(0)
    reading = asyncio.create_task(lanes_seen(engine))
    await asyncio.sleep(KEPT_SECONDS)
    door.set()
    assert await reading == [(0,)]
    await asyncio.gather(slow, other)
