"""What the SQLite store says of its condition, and what it refuses to open."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import pytest

from frontdesk import SessionStore, errors
from tests import faults
from tests.contracts.samples import direct
from tests.faults import FailingDisk, Operation
from tests.integration.test_sqlite_files import (
    damage,
    fill,
    leaf_pages,
    make_folder,
    names_in,
    read,
    remove,
    said,
    url_of,
    write,
)

LARGE = {"role": "user", "content": "x" * 1_500_000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    with faults.failing_disk() as disk:
        yield disk


@contextlib.asynccontextmanager
async def opened(path: Path, disk: FailingDisk | None = None) -> AsyncIterator[SessionStore]:
    url = f"{url_of(path)}?vfs={disk.name}" if disk else url_of(path)
    async with await SessionStore.open(url) as service:
        yield service


async def keep_writing(service: SessionStore, session_id: str) -> None:
    for _ in range(10):
        await service.append_to_transcript(session_id, LARGE)


def move(source: Path, target: Path) -> None:
    source.rename(target)


def size_of(path: Path) -> int:
    return path.stat().st_size


async def refusal(service: SessionStore) -> type[Exception] | None:
    """What the store says of its condition."""
    try:
        await service.store.check()
    except errors.StoreError as error:
        return type(error)
    return None


async def test_disk_that_was_too_full_for_a_message_is_full_until_there_is_room(
    path: Path, disk: FailingDisk
) -> None:
    async with opened(path, disk) as service:
        entry = await service.get_or_create_session(direct())
        disk.fill(room=100_000)
        with pytest.raises(errors.StoreFull):
            await keep_writing(service, entry.session_id)
        assert await refusal(service) is errors.StoreFull
        await service.append_to_transcript(entry.session_id, said(1))
        assert await refusal(service) is errors.StoreFull
        disk.mend()
        assert await refusal(service) is None
        await service.append_to_transcript(entry.session_id, LARGE)
    assert not [name for name in names_in(path.parent) if name.endswith("-room")]


@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.SYNC])
async def test_disk_that_fails_is_told_and_recovery_too(
    path: Path, disk: FailingDisk, operation: Operation
) -> None:
    async with opened(path, disk) as service:
        entry = await service.get_or_create_session(direct())
        disk.fail(operation)
        with pytest.raises(errors.StoreFailed):
            await service.append_to_transcript(entry.session_id, said(1))
        assert await refusal(service) is errors.StoreFailed
        disk.mend()
        assert await refusal(service) is None


@pytest.mark.parametrize("fate", ["deleted", "replaced", "moved"])
async def test_file_that_is_gone_is_found_without_a_message(path: Path, fate: str) -> None:
    async with opened(path) as service:
        await service.get_or_create_session(direct())
        aside = path.with_name("aside.db")
        move(path, aside)
        if fate == "replaced":
            shutil.copyfile(aside, path)
        if fate == "deleted":
            remove(aside)
        assert await refusal(service) is errors.DatabaseGone
        if fate == "moved":
            move(aside, path)
            assert await refusal(service) is None


async def test_what_was_refused_while_the_file_was_away_is_written_once_at_most(path: Path) -> None:
    async with opened(path) as service:
        session = await service.get_or_create_session(direct())
        aside = path.with_name("aside.db")
        move(path, aside)
        rows = [{"role": "user", "content": f"message {number}"} for number in range(20)]
        writes = [service.append_to_transcript(session.session_id, row) for row in rows]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {errors.DatabaseGone}
        move(aside, path)
        written = [row["content"] for row in await service.load_transcript(session.session_id)]
        assert len(written) == len(set(written))


@pytest.mark.parametrize("kept", [0, 4096, 40_960])
async def test_file_that_was_cut_off_under_us_is_damaged_and_stays_so(path: Path, kept: int) -> None:
    sessions = await fill(path, chats=20, messages=50)
    async with opened(path) as service:
        await service.append_to_transcript(sessions[0], said(1))
        os.truncate(path, kept)
        assert await refusal(service) is errors.CorruptDatabase
        with pytest.raises(errors.CorruptDatabase):
            await service.append_to_transcript(sessions[0], said(2))
        assert await refusal(service) is errors.CorruptDatabase


async def test_damage_that_a_reader_met_is_told(path: Path) -> None:
    sessions = await fill(path, chats=20, messages=50)
    pages = leaf_pages(path, "messages")
    damage(path, pages[len(pages) // 2])
    async with opened(path) as service:
        for session_id in sessions:
            with contextlib.suppress(errors.CorruptDatabase):
                await service.load_transcript(session_id)
        assert await refusal(service) is errors.CorruptDatabase


async def test_damage_that_nobody_met_is_found_by_looking(path: Path) -> None:
    await fill(path, chats=20, messages=50)
    pages = leaf_pages(path, "messages")
    damage(path, pages[len(pages) // 2])
    async with opened(path) as service:
        with pytest.raises(errors.CorruptDatabase, match="recover"):
            await service.store.inspect(60.0)


def killed(path: Path, aside: Path) -> None:
    """The files as a process leaves them that is killed: the log holds what was written last."""
    for name in (path.name, f"{path.name}-wal"):
        shutil.copyfile(path.with_name(name), aside / name)


@pytest.fixture
async def left(path: Path, tmp_path: Path) -> Path:
    aside = tmp_path / "left"
    make_folder(aside)
    await fill(path, chats=20, messages=50)
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        await service.append_to_transcript(entry.session_id, said(7))
        killed(path, aside)
    return aside / path.name


@pytest.mark.parametrize("fate", ["missing", "empty"])
async def test_log_without_its_database_is_refused_and_left_as_it_was(left: Path, fate: str) -> None:
    log = left.with_name(f"{left.name}-wal")
    whole, held = read(left), read(log)
    remove(left)
    if fate == "empty":
        write(left, b"")
    for _ in range(2):
        with pytest.raises(errors.LogWithoutDatabase, match=f"is {fate}.*{log}"):
            async with opened(left):
                pass
    assert read(log) == held
    write(left, whole)
    async with opened(left) as service:
        entry = await service.get_or_create_session(direct())
        assert len(await service.load_transcript(entry.session_id)) == 1


@pytest.mark.parametrize("kept", [100, 4096, 40_960])
async def test_database_that_was_cut_off_is_refused_and_its_log_kept(left: Path, kept: int) -> None:
    log = left.with_name(f"{left.name}-wal")
    held = read(log)
    os.truncate(left, kept)
    with pytest.raises((errors.CorruptDatabase, errors.ForeignDatabase)):
        async with opened(left):
            pass
    assert read(log) == held


async def test_pages_that_are_only_in_the_log_are_not_missing(path: Path, tmp_path: Path) -> None:
    aside = tmp_path / "aside"
    make_folder(aside)
    async with opened(path) as service:
        entry = await service.get_or_create_session(direct())
        for number in range(200):
            await service.append_to_transcript(entry.session_id, said(number))
        killed(path, aside)
    with contextlib.closing(apsw.Connection(str(aside / path.name))) as db:
        assert int(db.pragma("page_count")) * 4096 > size_of(aside / path.name)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    async with opened(aside / path.name) as service:
        assert len(await service.load_transcript(entry.session_id)) == 200
