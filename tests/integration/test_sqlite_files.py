"""The SQLite store's file: who owns it, what is refused, what damage does, how work begins and ends."""

import asyncio
import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import pytest

from frontdesk import SessionStore, Viewer, errors, plugins
from frontdesk.model.moves import Move, Situation, Stay
from frontdesk.stores.sql import load_queries
from frontdesk.stores.sqlite.files import filesystem_of
from frontdesk.stores.store import Store
from tests import powerless
from tests.contracts.samples import LASTING, direct

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
PAGE_BYTES = 4096
EVERYTHING = Viewer(frozenset(), administrator=True)

HOLDER = """
import asyncio, sys
from frontdesk import SessionStore

async def main():
    async with await SessionStore.open(sys.argv[1]):
        print("open", flush=True)
        sys.stdin.read()

asyncio.run(main())
"""

GREEDY = """
import sqlite3, sys

file = sqlite3.connect(sys.argv[1], timeout=0.1)
try:
    print(file.execute("PRAGMA journal_mode = delete").fetchone()[0])
except sqlite3.OperationalError as error:
    print(error)
file.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


def make_folder(path: Path) -> None:
    path.mkdir()


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


async def open_service(url: str | Path) -> SessionStore:
    return await SessionStore.open(url_of(url) if isinstance(url, Path) else url, LASTING)


@contextlib.asynccontextmanager
async def opened(url: str | Path) -> AsyncIterator[SessionStore]:
    async with await open_service(url) as service:
        yield service


@contextlib.asynccontextmanager
async def opened_store(path: Path) -> AsyncIterator[Store]:
    store: Store = await plugins.load_store(url_of(path))(url_of(path))
    try:
        yield store
    finally:
        await store.close()


def said(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number}", "platform_message_id": str(number)}


async def numbers_in(service: SessionStore, session_id: str) -> list[int]:
    return [int(row["platform_message_id"]) for row in await service.load_transcript(session_id)]


@contextlib.contextmanager
def held_elsewhere(path: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The store open in another process."""
    program = tmp_path / "holder.py"
    program.write_text(HOLDER)
    holder = subprocess.Popen(
        [sys.executable, program, url_of(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    with holder:
        assert holder.stdout.readline() == b"open\n"
        yield holder


async def test_second_process_is_told_who_holds_the_file(path: Path, tmp_path: Path) -> None:
    with held_elsewhere(path, tmp_path) as holder, pytest.raises(errors.StoreLocked) as refused:
        await open_service(path)
    assert str(path) in str(refused.value)
    assert f"process {holder.pid} (holder.py)" in str(refused.value)


async def test_file_is_free_after_its_holder_was_killed(path: Path, tmp_path: Path) -> None:
    with held_elsewhere(path, tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        async with opened(path) as service:
            await service.get_or_create_session(direct())


async def test_second_open_in_the_same_process_is_refused(path: Path) -> None:
    async with opened(path):
        with pytest.raises(errors.StoreLocked, match="in use by this process"):
            await open_service(path)
    async with opened(path):
        pass


async def test_link_to_the_file_meets_the_same_lock(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    async with opened(path):
        with pytest.raises(errors.StoreLocked):
            await open_service(tmp_path / "link.db")


async def test_hard_link_to_the_file_makes_no_second_owner(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "other.db"
    link.parent.mkdir()
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        link.hardlink_to(path)
        with pytest.raises(errors.LinkedDatabase, match="has 2 names"):
            await open_service(link)
        assert sorted(each.name for each in link.parent.iterdir()) == ["other.db"]
        assert await service.append_to_transcript(entry.session_id, said(1))
    for name in (path, link):
        with pytest.raises(errors.LinkedDatabase):
            await open_service(name)
    link.unlink()
    async with opened(path) as service:
        assert await numbers_in(service, entry.session_id) == [1]


def run_greedy(path: Path) -> str:
    """What another program gets that wants the file for itself alone."""
    program = [sys.executable, "-c", GREEDY, str(path)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()


async def test_refused_second_open_leaves_the_locks_of_the_first(path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        with pytest.raises(errors.StoreLocked):
            await open_service(path)
        assert run_greedy(path) == "database is locked"
        assert await service.append_to_transcript(entry.session_id, said(1))
    async with opened(path) as service:
        assert await numbers_in(service, entry.session_id) == [1]


@pytest.mark.parametrize("signature", [b"", b"[]", b"{}", b"\xff\xfe", b'{"pid": 1}'])
async def test_unreadable_signature_names_another_process(path: Path, signature: bytes) -> None:
    async with opened(path):
        path.with_name("state.db.lock").write_bytes(signature)
        with pytest.raises(errors.StoreLocked, match="in use by another process"):
            await open_service(path)


@pytest.mark.parametrize("steps", range(5))
async def test_opening_that_is_cancelled_leaves_the_file_free(path: Path, steps: int) -> None:
    opening = asyncio.create_task(open_service(path))
    for _ in range(steps):
        await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with opened(path):
        pass


async def test_opening_that_fails_leaves_the_file_free(path: Path) -> None:
    write(path, b"no database")
    with pytest.raises(errors.ForeignDatabase):
        await open_service(path)
    remove(path)
    async with opened(path):
        pass


def make_database(path: Path, script: str) -> bytes:
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute(script).fetchall()
    return path.read_bytes()


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE theirs (x)",
        "PRAGMA journal_mode = wal; CREATE TABLE theirs (x)",
        "PRAGMA user_version = 1; VACUUM",
        "PRAGMA application_id = 7; VACUUM",
        "CREATE TABLE sessions (id); PRAGMA user_version = 1",
    ],
)
async def test_database_of_another_program_is_refused_and_unchanged(path: Path, script: str) -> None:
    before = make_database(path, script)
    with pytest.raises(errors.ForeignDatabase, match="belongs to another program"):
        await open_service(path)
    assert read(path) == before


@pytest.mark.parametrize("content", [b"xy", b"no database " * 1000, bytes(5000), b"SQLite format 3\0" * 300])
async def test_file_that_is_no_database_is_refused_and_unchanged(path: Path, content: bytes) -> None:
    write(path, content)
    with pytest.raises((errors.ForeignDatabase, errors.CorruptDatabase)):
        await open_service(path)
    assert read(path) == content


async def test_empty_file_becomes_a_store(path: Path) -> None:
    write(path, b"")
    async with opened(path) as service:
        await service.get_or_create_session(direct())


async def test_folder_is_refused_and_left_alone(path: Path) -> None:
    make_folder(path)
    with pytest.raises(errors.ForeignDatabase, match="it is a folder"):
        await open_service(path)
    assert names_in(path.parent) == ["state.db"]


async def test_pipe_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(errors.ForeignDatabase, match="it is not a file"):
        await open_service(path)


async def test_newer_schema_is_refused_and_unchanged(path: Path) -> None:
    async with opened(path):
        pass
    with contextlib.closing(apsw.Connection(str(path))) as db:
        known = db.pragma("user_version")
        db.pragma("user_version", known + 1)
    before = read(path)
    with pytest.raises(errors.NewerDatabase, match=rf"schema {known + 1}, this version knows {known}"):
        await open_service(path)
    assert read(path) == before


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///",
        "sqlite://state.db",
        "sqlite:state.db",
        "sqlite:///state.db?mode=ro",
        "sqlite:///state.db?bogus",
        "sqlite:///:memory:?bogus=1",
        "sqlite:///state.db?filesystem=nfs",
        "sqlite:///a%00b",
        "sqlite:///~nobody-of-that-name/state.db",
    ],
)
async def test_unusable_address_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.UnknownStore, match=re.escape(url)):
        await open_service(url)
    assert names_in(tmp_path) == []


async def test_unknown_file_system_layer_is_named(path: Path) -> None:
    with pytest.raises(errors.StoreError, match="no such vfs"):
        await open_service(f"{url_of(path)}?vfs=none")
    async with opened(path):
        pass


async def test_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened("sqlite:///deep/er/state.db"):
        pass
    assert (tmp_path / "deep/er/state.db").is_file()


@pytest.mark.parametrize(
    "name", ["with space.db", "what?.db", "a#b.db", "100%.db", "日本.db", "semi;colon&.db"]
)
async def test_path_may_have_any_characters(tmp_path: Path, name: str) -> None:
    async with opened(f"sqlite:///{quote(str(tmp_path / name))}"):
        pass
    assert (tmp_path / name).is_file()


async def test_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened("sqlite:///:memory:") as one, opened("sqlite:///:memory:") as other:
        entry = await one.get_or_create_session(direct())
        await asyncio.gather(*(one.append_to_transcript(entry.session_id, said(n)) for n in range(50)))
        assert await numbers_in(one, entry.session_id) == list(range(50))
        assert await other.list_sessions() == []
    with pytest.raises(errors.StoreClosed):
        await one.load_transcript(entry.session_id)
    assert names_in(tmp_path) == []


async def test_files_are_for_their_user_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        async with opened(path) as service:
            await service.get_or_create_session(direct())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm", "state.db.lock"), 0o600)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with powerless.open_folder() as folder:
        yield folder


async def open_powerless(path: Path) -> None:
    """Open the store as somebody whom permissions stop."""
    open_store = plugins.load_store(url_of(path))
    with powerless.powerless():
        await open_store(url_of(path))


async def test_read_only_file_is_refused(open_folder: Path) -> None:
    async with opened(open_folder / "state.db"):
        pass
    (open_folder / "state.db").chmod(0o444)
    with pytest.raises(errors.ReadOnlyStore):
        await open_powerless(open_folder / "state.db")


@pytest.mark.parametrize("exists", [True, False])
async def test_read_only_folder_is_refused(open_folder: Path, exists: bool) -> None:
    path = open_folder / "folder" / "state.db"
    async with opened(path):
        pass
    path.chmod(0o666)
    path.with_name("state.db.lock").unlink()
    if not exists:
        path.unlink()
    path.parent.chmod(0o555)
    with pytest.raises(errors.ReadOnlyStore):
        await open_powerless(path)
    path.parent.chmod(0o755)


async def test_folder_that_cannot_be_made_is_refused(open_folder: Path) -> None:
    (open_folder / "file").touch()
    for path in (open_folder / "file" / "state.db", Path("/proc/none/state.db")):
        with pytest.raises((errors.ReadOnlyStore, errors.StoreFailed)):
            await open_service(path)


async def test_name_too_long_for_the_file_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.StoreError):
        await open_service(tmp_path / ("x" * 300))


MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /home rw,relatime shared:2 master:1 - nfs4 server:/home rw
24 23 0:22 / /home/ann/local rw - xfs /dev/vdb rw
25 22 0:23 / /mnt/My\040Disk\011\134x rw - cifs //server/disk rw
26 22 0:24 / /mnt/données rw - nfs server:/données rw
27 22 0:25 / /auto rw - autofs systemd-1 rw
28 27 0:26 / /auto rw - fuse.sshfs ann@server: rw
29 22 0:27 / /mnt/\134040 rw - tmpfs tmpfs rw
nonsense
30 22 0:28 / /half
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib", "ext4"),
        ("/homes", "ext4"),
        ("/home", "nfs4"),
        ("/home/ann", "nfs4"),
        ("/home/ann/local/deep", "xfs"),
        ("/home/ann/locally", "nfs4"),
        ("/mnt/My Disk\t\\x/y", "cifs"),
        ("/mnt/données", "nfs"),
        ("/auto/x", "fuse.sshfs"),
        ("/mnt/\\040", "tmpfs"),
        ("/half", "ext4"),
    ],
)
def test_file_system_is_found_by_the_mount_table(folder: str, kind: str) -> None:
    assert filesystem_of(Path(folder), MOUNTS) == kind


def test_nothing_mounted_is_no_file_system() -> None:
    assert filesystem_of(Path("/x"), "") == ""


def leaf_pages(path: Path, table: str) -> list[int]:
    with contextlib.closing(apsw.Connection(str(path))) as db:
        sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
        return [page for (page,) in db.execute(sql, (table,))]


def damage(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(b"\xa5" * PAGE_BYTES)


async def fill(path: Path, chats: int, messages: int) -> list[str]:
    """Sessions with some messages each."""
    async with opened(path) as service:
        entries = [await service.get_or_create_session(direct(str(chat))) for chat in range(chats)]
        for entry in entries:
            await service.record_turn(entry.session_id, [said(number) for number in range(messages)])
    return [entry.session_id for entry in entries]


async def test_damaged_transcript_is_named_and_the_others_are_served(path: Path) -> None:
    sessions = await fill(path, chats=20, messages=50)
    pages = leaf_pages(path, "messages")
    damage(path, pages[len(pages) // 2])
    async with opened(path) as service:
        reads = [service.load_transcript(session_id) for session_id in sessions]
        found = await asyncio.gather(*reads, return_exceptions=True)
        damaged = [each for each in found if isinstance(each, BaseException)]
        assert {type(error) for error in damaged} == {errors.CorruptDatabase}
        assert str(path) in str(damaged[0])
        assert sum(isinstance(each, list) and len(each) == 50 for each in found) == 20 - len(damaged) > 10


async def test_write_to_damaged_pages_is_refused_and_the_rest_of_its_group_is_kept(path: Path) -> None:
    sessions = await fill(path, chats=60, messages=1)
    pages = leaf_pages(path, "sessions")
    damage(path, pages[len(pages) // 2])
    async with opened(path) as service:
        writes = [service.append_to_transcript(session_id, said(7)) for session_id in sessions]
        answers = await asyncio.gather(*writes, return_exceptions=True)
        refused = [each for each in answers if isinstance(each, BaseException)]
        assert {type(error) for error in refused} == {errors.CorruptDatabase}
        assert answers.count(True) == 60 - len(refused) > 30
        for session_id, answer in zip(sessions, answers, strict=True):
            assert await numbers_in(service, session_id) == ([0, 7] if answer is True else [0])


async def read_all(path: Path, sessions: list[str]) -> None:
    async with opened(path) as service:
        for session_id in sessions:
            await service.load_transcript(session_id)


async def test_truncated_file_is_named_damaged(path: Path) -> None:
    sessions = await fill(path, chats=20, messages=50)
    whole = read(path)
    write(path, whole[: len(whole) // 2])
    with pytest.raises(errors.CorruptDatabase):
        await read_all(path, sessions)


async def test_damaged_end_of_the_log_costs_only_itself(path: Path, tmp_path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        for number in range(10):
            await service.append_to_transcript(entry.session_id, said(number))
        write(tmp_path / "copy.db", read(path))
        log = read(path.with_name("state.db-wal")).rstrip(b"\0")
        write(tmp_path / "copy.db-wal", log[:-2000] + b"\xa5" * 2000)
    async with opened(tmp_path / "copy.db") as service:
        assert await numbers_in(service, entry.session_id) == list(range(9))


class Unexpected(Exception):
    """Something that nobody thought of."""


class Final(BaseException):
    """Something that ends programs."""


def new_id() -> str:
    return "20260105_120000_00000000"


@pytest.mark.parametrize("error", [Unexpected, Final, StopIteration, errors.StoreClosed])
async def test_decision_that_fails_is_its_callers_alone(path: Path, error: type[BaseException]) -> None:
    def fail(situation: Situation) -> Move:
        raise error

    def stay(situation: Situation) -> Move:
        return Stay()

    async with opened_store(path) as store:
        decisions = [
            store.sessions.settle(f"key-{number}", fail if number % 10 == 5 else stay, now=NOW, new_id=new_id)
            for number in range(100)
        ]
        answers = await asyncio.gather(*decisions, return_exceptions=True)
        assert [number for number, each in enumerate(answers) if isinstance(each, BaseException)] == list(
            range(5, 100, 10)
        )
        expected = RuntimeError if error is StopIteration else error
        assert all(isinstance(each, expected) for each in answers[5::10])
        settled = await store.sessions.settle("key", stay, now=NOW, new_id=new_id)
        assert settled.move == Stay()


async def test_work_that_fails_half_way_leaves_nothing(path: Path) -> None:
    async with opened(path) as service:
        await service.get_or_create_session(
            direct("ann", platform="whatsapp", chat_id="1@lid", user_id="1@lid")
        )

    def fail(session: object, aliases: object) -> tuple[str, str, str]:
        raise Unexpected

    async with opened_store(path) as store:
        pairs = (("1", "2"), ("8", "9"))
        learning = [store.aliases.learn(*pair, fail, lambda *_: None, NOW) for pair in pairs]
        failed, learned = await asyncio.gather(*learning, return_exceptions=True)
        assert isinstance(failed, Unexpected)
        assert learned is True
        assert await store.aliases.canonical(["1", "8"]) == {"8": "9"}


async def test_cancelled_callers_disturb_nobody(path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        appends = [
            asyncio.create_task(service.append_to_transcript(entry.session_id, said(n))) for n in range(200)
        ]
        await asyncio.sleep(0)
        for append in appends[::2]:
            append.cancel()
        answers = await asyncio.gather(*appends, return_exceptions=True)
        assert answers[1::2] == [True] * 100
        assert all(isinstance(each, asyncio.CancelledError) for each in answers[::2])
        for number in range(200):
            await service.append_to_transcript(entry.session_id, said(number))
        assert sorted(await numbers_in(service, entry.session_id)) == list(range(200))


async def test_closing_finishes_what_was_begun_and_loses_nothing_that_came_late(path: Path) -> None:
    service = await open_service(path)
    entry = await service.get_or_create_session(direct())

    async def append(number: int) -> bool:
        for _ in range(number // 10):
            await asyncio.sleep(0)
        return await service.append_to_transcript(entry.session_id, said(number))

    appends = [asyncio.create_task(append(number)) for number in range(300)]
    await asyncio.sleep(0)
    closing = [asyncio.create_task(service.close()) for _ in range(2)]
    answers = await asyncio.gather(*appends, return_exceptions=True)
    await asyncio.gather(*closing)
    assert answers[:10] == [True] * 10
    assert {type(answer) for answer in answers if answer is not True} == {errors.StoreClosed}
    async with opened(path) as service:
        kept = await numbers_in(service, entry.session_id)
    assert kept == [number for number, answer in enumerate(answers) if answer is True]


async def test_closed_store_says_so(path: Path) -> None:
    service = await open_service(path)
    entry = await service.get_or_create_session(direct())
    await service.close()
    await service.close()
    for use in (
        service.get_or_create_session(direct()),
        service.get_or_create_session(direct("new")),
        service.append_to_transcript(entry.session_id, said(1)),
        service.load_transcript(entry.session_id),
        service.list_sessions(),
        service.search("message", EVERYTHING),
        service.reset_session(entry.session_key),
        service.set_model_override(entry.session_key, None),
    ):
        with pytest.raises(errors.StoreClosed):
            await use


async def test_touch_is_kept_by_closing(path: Path) -> None:
    async with opened(path) as service:
        before = await service.get_or_create_session(direct())
        touched = await service.get_or_create_session(direct())
    async with opened(path) as service:
        after = await service.get_session(before.session_key)
    assert after
    assert before.updated_at < touched.updated_at == after.updated_at


async def test_two_event_loops_share_a_store(path: Path) -> None:
    async with opened(path) as service:

        async def talk(name: str) -> None:
            for number in range(100):
                entry = await service.get_or_create_session(direct(name))
                await asyncio.gather(
                    service.append_to_transcript(entry.session_id, said(number)),
                    service.get_or_create_session(direct("both")),
                    service.load_transcript(entry.session_id),
                )

        elsewhere = asyncio.to_thread(asyncio.run, talk("there"))
        await asyncio.gather(elsewhere, talk("here"))
        for name in ("here", "there"):
            entry = await service.get_or_create_session(direct(name))
            assert await numbers_in(service, entry.session_id) == list(range(100))


async def test_event_loop_that_ends_with_work_under_way_disturbs_nobody(path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())

        def leave() -> None:
            """Hand work to the store and close the loop without waiting."""
            loop = asyncio.new_event_loop()
            tasks: list[asyncio.Task[Any]] = [
                loop.create_task(service.append_to_transcript(entry.session_id, said(n))) for n in range(9)
            ]
            tasks.append(loop.create_task(service.get_or_create_session(direct())))
            loop.call_soon(loop.stop)
            loop.run_forever()
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.close()

        for _ in range(20):
            thread = threading.Thread(target=leave)
            thread.start()
            await asyncio.gather(*(service.append_to_transcript(entry.session_id, said(n)) for n in range(9)))
            await asyncio.to_thread(thread.join)
        await service.get_or_create_session(direct())
        assert sorted(await numbers_in(service, entry.session_id)) == list(range(9))


async def test_writes_wait_for_another_program_that_writes(path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        with contextlib.closing(apsw.Connection(str(path))) as other:
            other.execute("BEGIN IMMEDIATE")
            append = asyncio.create_task(service.append_to_transcript(entry.session_id, said(1)))
            done, _ = await asyncio.wait({append}, timeout=0.1)
            assert not done
            assert await service.load_transcript(entry.session_id) == []
            other.execute("ROLLBACK")
            assert await append


async def test_program_that_never_stops_writing_is_named(path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        with contextlib.closing(apsw.Connection(str(path))) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(errors.StoreLocked, match="in use by another program"):
                await service.append_to_transcript(entry.session_id, said(1))
            other.execute("ROLLBACK")
        assert await service.append_to_transcript(entry.session_id, said(1))
        assert await numbers_in(service, entry.session_id) == [1]


async def test_reader_of_another_program_holds_nothing_up(path: Path) -> None:
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        with contextlib.closing(apsw.Connection(str(path))) as other:
            other.execute("BEGIN; SELECT * FROM sessions")
            for number in range(30):
                large = said(number) | {"content": "x" * 400_000}
                assert await service.append_to_transcript(entry.session_id, large)
            assert other.execute("SELECT count(*) FROM messages").get == 0
        assert await numbers_in(service, entry.session_id) == list(range(30))


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, fate: str) -> None:
    path = tmp_path / "state.db"
    async with await SessionStore.open(f"sqlite:///{path}") as store:
        entry = await store.get_or_create_session(direct())
        path.unlink()
        if fate == "replaced":
            path.write_bytes(b"")
        with pytest.raises(errors.StoreFailed, match="moved or deleted"):
            await store.append_to_transcript(entry.session_id, {"role": "user", "content": "lost?"})


async def test_next_lapse_is_found_by_an_index_of_grants(path: Path) -> None:
    """It is asked every second: all that was ever approved is not looked through."""
    await (await plugins.load_store("sqlite://")(f"sqlite:///{path}")).close()
    asked = load_queries("sqlite")["next_confirmation_due"].sql
    with contextlib.closing(apsw.Connection(str(path))) as db:
        plan = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {asked}", {"grant": 60})]
    assert any("confirmations_granted" in step for step in plan), plan
