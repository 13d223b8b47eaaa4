"""Brief and swift writes: done on the event loop's own thread while the disk is quick, and nothing waits
before them."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import apsw
import pytest

from frontdesk import SessionStore, errors, plugins
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import TAKES_LONG, Brief, Swift, Work, ring
from frontdesk.model.messages import pack
from frontdesk.stores.sqlite import threads, writer
from frontdesk.stores.sqlite.engine import SqliteEngine
from frontdesk.stores.sqlite.files import Location
from frontdesk.stores.sqlite.threads import QueuedWork, WorkThreads
from frontdesk.stores.store import Store
from frontdesk.stores.transcripts import append_values
from frontdesk.testing import SettableClock
from tests.contracts.asking import Asker, request
from tests.contracts.samples import direct

HERE = threading.main_thread().name
VFS = "noting"
HELLO = {"role": "user", "content": "hello"}


def same(record: Any) -> Any:
    """No record is another."""
    return record


class NotingDisk:
    """Knows which threads forced the log to disk, and takes its time over it."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.seconds = 0.0
        self.fails = False

    def sync(self) -> None:
        self.synced.append(threading.current_thread().name)
        time.sleep(self.seconds)
        if self.fails:
            self.fails = False
            raise apsw.IOError("the disk failed in the end")


class NotingVFS(apsw.VFS):
    def __init__(self, disk: NotingDisk) -> None:
        self._disk = disk
        super().__init__(VFS, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return NotingFile(self._disk, name, flags)


class NotingFile(apsw.VFSFile):
    def __init__(self, disk: NotingDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        if self._is_log:
            self._disk.sync()


@pytest.fixture
def disk() -> Iterator[NotingDisk]:
    disk = NotingDisk()
    vfs = NotingVFS(disk)
    yield disk
    vfs.unregister()


@pytest.fixture
async def store(tmp_path: Path, disk: NotingDisk) -> AsyncIterator[SessionStore]:
    async with await SessionStore.open(f"sqlite:///{tmp_path / 'state.db'}?vfs={VFS}") as store:
        yield store


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, its disk counts as quick."""
    monkeypatch.setattr(writer, "SLOW_SECONDS", 3600.0)
    monkeypatch.setattr(writer, "STALL_SECONDS", 3600.0)


@pytest.mark.usefixtures("quick")
async def test_brief_write_is_on_disk_without_waking_a_thread(store: SessionStore, disk: NotingDisk) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.append_to_transcript(session, HELLO)
    disk.synced.clear()
    for _ in range(3):
        assert await store.append_to_transcript(session, HELLO)
    assert disk.synced == [HERE] * 3
    assert len(await store.load_transcript(session)) == 4


async def test_slow_disk_holds_the_event_loop_up_once(store: SessionStore, disk: NotingDisk) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.append_to_transcript(session, HELLO)
    disk.synced.clear()
    disk.seconds = 0.3
    for _ in range(5):
        await store.append_to_transcript(session, HELLO)
    assert disk.synced.count(HERE) <= 1
    assert len(disk.synced) >= 5


async def test_slow_disk_that_fails_holds_it_up_once_too(store: SessionStore, disk: NotingDisk) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.append_to_transcript(session, HELLO)
    disk.synced.clear()
    disk.seconds, disk.fails = 0.3, True
    for _ in range(3):
        assert await store.append_to_transcript(session, HELLO)
    assert disk.synced.count(HERE) <= 1
    assert len(await store.load_transcript(session)) == 4


@pytest.mark.usefixtures("quick")
async def test_many_at_once_still_share_their_commits(store: SessionStore, disk: NotingDisk) -> None:
    entries = [await store.get_or_create_session(direct(str(number))) for number in range(32)]
    disk.synced.clear()
    await asyncio.gather(*(store.append_to_transcript(each.session_id, HELLO) for each in entries))
    assert len(disk.synced) < 8
    assert set(disk.synced) == {HERE}


@pytest.mark.usefixtures("quick")
async def test_of_many_at_once_what_is_unusual_and_all_behind_it_goes_to_the_thread(
    store: SessionStore, disk: NotingDisk
) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asks: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    said: list[dict[str, Any]] = [
        HELLO,
        HELLO,
        asks,
        {"role": "user", "content": "never mind"},
        {"role": "user", "content": "bye"},
    ]
    disk.synced.clear()
    await asyncio.gather(*(store.append_to_transcript(session, each) for each in said))
    assert set(disk.synced) > {HERE}
    stored = await store.load_transcript(session, as_stored=True)
    assert [message["role"] for message in stored] == ["user", "user", "assistant", "tool", "user", "user"]
    assert stored[-1]["content"] == "bye"


@pytest.mark.usefixtures("quick")
async def test_many_at_once_on_a_disk_that_fails_are_each_stored_once(
    store: SessionStore, disk: NotingDisk
) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    disk.fails = True
    said = [{"role": "user", "content": str(number)} for number in range(20)]
    assert all(await asyncio.gather(*(store.append_to_transcript(session, each) for each in said)))
    assert [each["content"] for each in await store.load_transcript(session)] == list(map(str, range(20)))


@pytest.mark.usefixtures("quick")
async def test_many_at_once_are_refused_together_when_the_file_is_gone(
    store: SessionStore, tmp_path: Path
) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.append_to_transcript(session, HELLO)
    (tmp_path / "state.db").rename(tmp_path / "elsewhere.db")
    wanted = (store.append_to_transcript(session, HELLO) for _ in range(5))
    told = await asyncio.gather(*wanted, return_exceptions=True)
    assert [type(each) for each in told] == [errors.DatabaseGone] * 5
    (tmp_path / "elsewhere.db").rename(tmp_path / "state.db")


@pytest.mark.usefixtures("quick")
async def test_of_many_at_once_what_no_database_takes_is_refused_alone(tmp_path: Path) -> None:
    engine = await asyncio.to_thread(SqliteEngine, Location(tmp_path / "state.db"))
    service = SessionStore(Store(engine))
    said = [(await service.get_or_create_session(direct(str(number)))).session_id for number in range(4)]
    values = append_values(said[1], pack(HELLO), datetime.now(UTC), tells=1)
    bad = Brief(
        ("append_message", values | {"cost_usd": Decimal(1)}), 1, Topic.FEED, said[1], same, behind_it
    )
    writes = [service.append_to_transcript(each, HELLO) for each in said * 2]
    told = await asyncio.gather(*writes[:5], engine.write(bad), *writes[5:], return_exceptions=True)
    assert [each for each in told if each is not True] == [told[5]]
    assert isinstance(told[5], TypeError)
    assert await service.append_to_transcript(said[0], HELLO)
    assert [len(await service.load_transcript(each)) for each in said] == [3, 2, 2, 2]
    await service.close()
    with closing(apsw.Connection(str(tmp_path / "state.db"))) as db:
        assert db.execute("SELECT COUNT(*) FROM messages").get == 9


@pytest.mark.usefixtures("quick")
async def test_lone_writer_lets_others_in_between_its_writes(store: SessionStore) -> None:
    """After a few writes each; who has just begun is met with its first one."""
    session = (await store.get_or_create_session(direct())).session_id
    written, seen = 0, []

    async def look() -> None:
        while written < 40:
            seen.append(written)
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    for _ in range(40):
        await store.append_to_transcript(session, HELLO)
        written += 1
    await looking
    assert max(after - before for before, after in pairwise(seen)) <= threads.MOST_ALONE


@pytest.mark.usefixtures("quick")
async def test_nobody_waits_any_more_for_what_was_gathered(store: SessionStore) -> None:
    failed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    session = (await store.get_or_create_session(direct())).session_id
    wanted = [asyncio.ensure_future(store.append_to_transcript(session, HELLO)) for _ in range(3)]
    await asyncio.sleep(0)  # the first is done, the others wait for each other
    for each in wanted:
        each.cancel()
    await asyncio.gather(*wanted, return_exceptions=True)
    assert not failed


async def test_what_is_left_of_many_is_refused_when_the_store_is_closed_meanwhile() -> None:
    """Another event loop may close the store while this one commits."""

    def close_after_the_first(briefs: list[Brief[str]], _queued: int) -> list[str]:
        lane.shut()
        return [briefs[0].result]

    def wait(jobs: "SimpleQueue[QueuedWork | None]") -> None:
        jobs.get()

    lane = WorkThreads("closing", wait, threads=1, run_here=close_after_the_first)
    lane._running = 1
    brief = Brief(("any", {}), "done", Topic.FEED, "any", same, behind)
    told = await asyncio.gather(lane.run(brief), lane.run(brief), return_exceptions=True)
    assert told[0] == "done"
    assert isinstance(told[1], errors.StoreClosed)
    await lane.close()


@pytest.mark.usefixtures("quick")
async def test_another_program_at_work_does_not_hold_up_the_event_loop(
    store: SessionStore, tmp_path: Path
) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.append_to_transcript(session, HELLO)
    other = apsw.Connection(str(tmp_path / "state.db"))
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(store.append_to_transcript(session, HELLO))
    await asyncio.sleep(0.1)
    assert not writing.done()
    other.execute("ROLLBACK")
    assert await writing
    other.close()


def finalized(session_id: str) -> Work[None]:
    yield "finalize_session", {"session_id": session_id}


def behind_it() -> Work[int]:
    yield from ()
    raise AssertionError("its statement is refused")


def behind() -> Work[str]:
    yield from ()
    return "behind"


@pytest.mark.usefixtures("quick")
async def test_brief_write_does_not_overtake_what_was_posted(store: SessionStore, tmp_path: Path) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.close()
    engine = await asyncio.to_thread(SqliteEngine, Location(tmp_path / "state.db"))
    await engine.post("before", partial(finalized, session))
    brief = Brief(
        ("finalize_session", {"session_id": session}), "overtaken", Topic.FEED, session, same, behind
    )
    assert await engine.write(brief) == "behind"
    await engine.close()


async def test_closed_store_takes_no_brief_write(store: SessionStore) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.append_to_transcript(session, HELLO)
    await store.close()
    with pytest.raises(errors.StoreClosed):
        await store.append_to_transcript(session, HELLO)


@pytest.fixture
async def asker(tmp_path: Path, disk: NotingDisk) -> AsyncIterator[Asker]:
    url = f"sqlite:///{tmp_path / 'state.db'}?vfs={VFS}"
    kept: Store = await plugins.load_store(url)(url)
    asker = Asker(kept, SettableClock())
    await asker.submit(request("warm"))  # after which the log has its size
    disk.synced.clear()
    yield asker
    await kept.close()


async def confirmed(asker: Asker, action: str) -> bool:
    asked = (await asker.submit(request(action))).confirmation
    await asker.vote(asked)
    return (await asker.redeem(asked)).payload is not None


@pytest.mark.usefixtures("quick")
async def test_confirmation_is_on_disk_without_waking_a_thread(asker: Asker, disk: NotingDisk) -> None:
    assert await confirmed(asker, "deploy")
    assert disk.synced == [HERE] * 3


@pytest.mark.usefixtures("quick")
async def test_people_are_shown_what_is_long_by_the_thread(asker: Asker, disk: NotingDisk) -> None:
    await asker.submit(request("deploy", target="x" * 10_000))
    assert HERE not in disk.synced


async def test_slow_disk_holds_the_event_loop_up_once_by_confirmations(
    asker: Asker, disk: NotingDisk
) -> None:
    disk.seconds = 0.3
    assert await confirmed(asker, "deploy")
    assert disk.synced.count(HERE) <= 1
    assert len(disk.synced) >= 3


@pytest.mark.usefixtures("quick")
async def test_confirmation_on_a_disk_that_fails_is_given_out_once(asker: Asker, disk: NotingDisk) -> None:
    asked = (await asker.submit(request("deploy"))).confirmation
    await asker.vote(asked)
    disk.fails = True
    given = [await asker.redeem(asked) for _ in range(3)]
    assert [each.refused for each in given] == [None, "redeemed", "redeemed"]
    assert disk.synced[-3:].count(HERE) < 3


@pytest.mark.usefixtures("quick")
async def test_swift_write_that_is_refused_leaves_nothing_and_rings_nobody(
    store: SessionStore, tmp_path: Path
) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.close()
    engine = await asyncio.to_thread(SqliteEngine, Location(tmp_path / "state.db"))
    rung = engine.bells.listen(Topic.FEED)

    def refused() -> Work[None]:
        yield "finalize_session", {"session_id": session}
        yield ring(Topic.FEED)
        raise errors.UnknownConfirmation(confirmation_id="c")

    with pytest.raises(errors.UnknownConfirmation):
        await engine.write(Swift(refused))
    assert not await rung.wait(0)
    brief = Brief(("finalize_session", {"session_id": session}), "first", Topic.FEED, session, same, behind)
    assert await engine.write(brief) == "first"
    await engine.close()


@pytest.mark.usefixtures("quick")
async def test_swift_write_is_begun_anew_on_the_thread_where_it_takes_long(
    store: SessionStore, tmp_path: Path
) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.close()
    engine = await asyncio.to_thread(SqliteEngine, Location(tmp_path / "state.db"))
    begun, went_on = [], []

    def long() -> Work[bool]:
        begun.append(threading.current_thread())
        was_first = bool((yield "finalize_session", {"session_id": session}))
        yield TAKES_LONG
        went_on.append(threading.current_thread())
        return was_first

    assert await engine.write(Swift(long)), "nothing is left of its first beginning"
    (thread,) = went_on
    assert begun == [threading.current_thread(), thread]
    assert thread is not threading.current_thread()
    await engine.close()


@pytest.mark.usefixtures("quick")
async def test_swift_write_does_not_overtake_what_was_posted(store: SessionStore, tmp_path: Path) -> None:
    session = (await store.get_or_create_session(direct())).session_id
    await store.close()
    engine = await asyncio.to_thread(SqliteEngine, Location(tmp_path / "state.db"))
    await engine.post("before", partial(finalized, session))

    def late() -> Work[bool]:
        return bool((yield "finalize_session", {"session_id": session}))

    assert not await engine.write(Swift(late))
    await engine.close()
