"""SQLite on a disk that is full or fails: what was confirmed is there, what was refused may come again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from frontdesk import SessionStore, errors
from frontdesk.stores.sqlite import writer
from tests import counts, faults, mounts
from tests.contracts.samples import LASTING, Message, direct
from tests.faults import FailingDisk, Kind, Operation

CHATS = 8
MESSAGES = 200
Answer = bool | BaseException

SMALL_BYTES = 2_000
LARGE_BYTES = 400_000


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    with faults.failing_disk() as disk:
        yield disk


@contextlib.asynccontextmanager
async def opened(path: Path, disk: FailingDisk | None = None) -> AsyncIterator[SessionStore]:
    vfs = f"?vfs={disk.name}" if disk else ""
    async with await SessionStore.open(f"sqlite:///{path}{vfs}", LASTING) as service:
        yield service


async def begin(path: Path) -> list[str]:
    """A store with a session for each chat, closed, so that its log begins anew."""
    async with opened(path) as service:
        entries = [await service.get_or_create_session(direct(str(chat))) for chat in range(CHATS)]
    return [entry.session_id for entry in entries]


@contextlib.asynccontextmanager
async def opened_without_reserve(path: Path, disk: FailingDisk) -> AsyncIterator[SessionStore]:
    """A store whose log gets no room before it needs it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "COLD_PAGES", writer.CHECKPOINT_PAGES)
        async with opened(path, disk) as service:
            yield service
            disk.mend()


def message(number: int, size: int | None = None) -> Message:
    content = "x" * (number * 37 % SMALL_BYTES if size is None else size)
    return {"role": "user", "content": f"{number} {content}", "platform_message_id": str(number)}


async def append_all(service: SessionStore, sessions: list[str], numbers: Sequence[int]) -> dict[int, Answer]:
    """Append all messages at once; each one's answer."""
    appends = [service.append_to_transcript(sessions[number % CHATS], message(number)) for number in numbers]
    return dict(zip(numbers, await asyncio.gather(*appends, return_exceptions=True), strict=True))


async def stored_numbers(service: SessionStore, sessions: list[str]) -> list[list[int]]:
    """The numbers of the messages in each transcript, whose counter says how many they are."""
    found = []
    for session_id in sessions:
        transcript = await service.load_transcript(session_id)
        entry = await service.lookup_by_session_id(session_id)
        assert entry
        assert entry.message_count == len(transcript)
        found.append([int(row["platform_message_id"]) for row in transcript])
    return found


def told_yes(answers: dict[int, Answer]) -> set[int]:
    return {number for number, answer in answers.items() if answer is True}


def told_no(answers: dict[int, Answer]) -> dict[int, BaseException]:
    return {number: answer for number, answer in answers.items() if isinstance(answer, BaseException)}


def flat(lists: list[list[int]]) -> list[int]:
    return sorted(number for each in lists for number in each)


ROOMS = range(0, 700_000, counts.count(100_000, 4_000) + 1)


@pytest.mark.parametrize("room", ROOMS)
async def test_full_disk_keeps_what_it_confirmed_and_nothing_else(
    tmp_path: Path, disk: FailingDisk, room: int
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened_without_reserve(tmp_path / "state.db", disk) as service:
        disk.fill(room)
        answers = await append_all(service, sessions, range(MESSAGES))
    assert {type(error) for error in told_no(answers).values()} <= {errors.StoreFull}
    assert told_yes(answers) | told_no(answers).keys() == set(range(MESSAGES))
    assert bool(told_no(answers)) == bool(disk.failures)
    async with opened(tmp_path / "state.db") as service:
        stored = await stored_numbers(service, sessions)
    assert flat(stored) == sorted(told_yes(answers))
    assert all(numbers == sorted(numbers) for numbers in stored)


@pytest.mark.parametrize("room", ROOMS)
async def test_work_goes_on_by_itself_when_there_is_room_again(
    tmp_path: Path, disk: FailingDisk, room: int
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened(tmp_path / "state.db", disk) as service:
        disk.fill(room)
        answers = await append_all(service, sessions, range(MESSAGES))
        disk.mend()
        again = await append_all(service, sessions, sorted(told_no(answers)))
        fresh = await append_all(service, sessions, range(MESSAGES, MESSAGES + 10))
    assert set(again.values()) <= {True}
    assert set(fresh.values()) == {True}
    async with opened(tmp_path / "state.db") as service:
        assert flat(await stored_numbers(service, sessions)) == list(range(MESSAGES + 10))


async def test_small_messages_fit_where_a_large_one_of_their_group_did_not(
    tmp_path: Path, disk: FailingDisk
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened_without_reserve(tmp_path / "state.db", disk) as service:
        disk.fill(LARGE_BYTES)
        large = service.append_to_transcript(sessions[0], message(1000, LARGE_BYTES))
        small = append_all(service, sessions, range(10))
        refused, answers = await asyncio.gather(large, small, return_exceptions=True)
    assert isinstance(refused, errors.StoreFull)
    assert isinstance(answers, dict)
    assert told_yes(answers) == set(range(10))


async def test_full_disk_is_still_read(tmp_path: Path, disk: FailingDisk) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened_without_reserve(tmp_path / "state.db", disk) as service:
        await append_all(service, sessions, range(MESSAGES))
        disk.fill(room=0)
        await append_all(service, sessions, range(MESSAGES, 2 * MESSAGES))
        assert await service.list_sessions(limit=1)
        assert len(await service.load_transcript(sessions[0])) >= MESSAGES // CHATS
        entry = await service.get_or_create_session(direct("0"))
    assert entry.session_id == sessions[0]


async def test_new_session_on_a_full_disk_is_refused_and_leaves_no_trace(
    tmp_path: Path, disk: FailingDisk
) -> None:
    await begin(tmp_path / "state.db")
    async with opened_without_reserve(tmp_path / "state.db", disk) as service:
        disk.fill(room=0)
        with pytest.raises(errors.StoreFull):
            await service.get_or_create_session(direct("late"))
        assert len(await service.list_sessions()) == CHATS
        disk.mend()
        await service.get_or_create_session(direct("late"))
        assert len(await service.list_sessions()) == CHATS + 1


OPERATIONS = [Operation.WRITE, Operation.SYNC]
MOMENTS = [*range(0, 12, counts.count(4, 1)), *range(20, 200, counts.count(100, 7))]


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_single_failure_costs_at_most_one_message_and_its_group_nothing(
    tmp_path: Path, disk: FailingDisk, operation: Operation, after: int
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened(tmp_path / "state.db", disk) as service:
        disk.fail(operation, after=after, times=1)
        answers = await append_all(service, sessions, range(MESSAGES))
        disk.mend()
        # A message that was alone in its commit has nobody to share a second attempt with.
        assert len(told_no(answers)) <= 1
        again = await append_all(service, sessions, list(told_no(answers)))
    assert set(again.values()) <= {True}
    assert told_yes(answers) | told_yes(again) == set(range(MESSAGES))
    async with opened(tmp_path / "state.db") as service:
        assert flat(await stored_numbers(service, sessions)) == list(range(MESSAGES))


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_failing_disk_keeps_what_it_confirmed_and_takes_the_rest_again(
    tmp_path: Path, disk: FailingDisk, operation: Operation, after: int
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened(tmp_path / "state.db", disk) as service:
        disk.fail(operation, after=after)
        answers: dict[int, Answer] = {}
        for first in range(0, MESSAGES, 20):
            answers |= await append_all(service, sessions, range(first, first + 20))
        disk.mend()
        assert {type(error) for error in told_no(answers).values()} <= {errors.StoreFailed}
        assert told_yes(answers) <= set(flat(await stored_numbers(service, sessions)))
        await append_all(service, sessions, sorted(told_no(answers)))
    async with opened(tmp_path / "state.db") as service:
        assert flat(await stored_numbers(service, sessions)) == list(range(MESSAGES))


async def test_confirmed_messages_outlive_a_store_abandoned_on_a_failing_disk(
    tmp_path: Path, disk: FailingDisk
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened(tmp_path / "state.db", disk) as service:
        disk.fail(Operation.SYNC, after=3)
        answers: dict[int, Answer] = {}
        for number in range(MESSAGES // 10):
            answers |= await append_all(service, sessions, [number])
        # As a crash would leave them: nothing is closed.
        for name in ("state.db", "state.db-wal"):
            (tmp_path / f"copy-{name}").write_bytes((tmp_path / name).read_bytes())
        disk.mend()
    assert told_yes(answers)
    assert told_no(answers)
    (tmp_path / "copy-state.db-wal").rename(tmp_path / "copy.db-wal")
    (tmp_path / "copy-state.db").rename(tmp_path / "copy.db")
    async with opened(tmp_path / "copy.db") as service:
        stored = flat(await stored_numbers(service, sessions))
        assert told_yes(answers) <= set(stored)
        await append_all(service, sessions, range(MESSAGES // 10))
        assert flat(await stored_numbers(service, sessions)) == list(range(MESSAGES // 10))


@pytest.mark.parametrize("after", range(4))
async def test_failed_read_is_named_and_the_next_one_succeeds(
    tmp_path: Path, disk: FailingDisk, after: int
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened(tmp_path / "state.db") as service:
        await service.append_to_transcript(sessions[0], message(0, 100 * SMALL_BYTES))
    async with opened(tmp_path / "state.db", disk) as service:
        disk.fail(Operation.READ, after=after)
        with pytest.raises(errors.StoreFailed, match="failed to read"):
            await service.load_transcript(sessions[0])
        disk.mend()
        assert await service.load_transcript(sessions[0]) == [message(0, 100 * SMALL_BYTES)]


@pytest.mark.parametrize("after", range(0, 24, counts.count(8, 1)))
async def test_write_that_cannot_read_is_refused_or_done(
    tmp_path: Path, disk: FailingDisk, after: int
) -> None:
    sessions = await begin(tmp_path / "state.db")
    async with opened(tmp_path / "state.db", disk) as service:
        disk.fail(Operation.READ, after=after)
        answers = await append_all(service, sessions, range(MESSAGES))
        disk.mend()
        assert {type(error) for error in told_no(answers).values()} <= {errors.StoreFailed}
        assert flat(await stored_numbers(service, sessions)) == sorted(told_yes(answers))
        again = await append_all(service, sessions, sorted(told_no(answers)))
        assert set(again.values()) <= {True}


async def test_database_file_without_room_delays_only_the_checkpoint(
    tmp_path: Path, disk: FailingDisk, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = await begin(tmp_path / "state.db")
    database = tmp_path / "state.db"
    async with opened(database, disk) as service:
        before = database.stat().st_size
        disk.fail(Operation.WRITE, kind=Kind.DATABASE)
        for number in range(20):
            assert await service.append_to_transcript(sessions[0], message(number, LARGE_BYTES))
        assert "checkpoint_failed" in caplog.text
        assert database.stat().st_size == before
        disk.mend()
        assert await service.append_to_transcript(sessions[0], message(20))
        assert len(await service.load_transcript(sessions[0])) == 21
    assert database.stat().st_size > 20 * LARGE_BYTES
    async with opened(database) as service:
        assert await stored_numbers(service, sessions[:1]) == [list(range(21))]


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_creation_fails_by_name_at_every_step_and_succeeds_afterwards(
    tmp_path: Path, disk: FailingDisk, operation: Operation
) -> None:
    refused = 0
    for after in range(0, 1000, counts.count(5, 1)):
        path = tmp_path / str(after) / "state.db"
        disk.failures = 0
        disk.fail(operation, after=after)
        try:
            async with opened(path, disk):
                disk.mend()
        except errors.StoreFailed:
            refused += 1
        disk.mend()
        async with opened(path) as service:
            await service.get_or_create_session(direct())
        if not disk.failures:
            break
    assert refused


async def test_store_that_closes_on_a_failing_disk_gives_its_file_back(
    tmp_path: Path, disk: FailingDisk
) -> None:
    sessions = await begin(tmp_path / "state.db")
    with contextlib.suppress(errors.StoreFailed):
        async with opened(tmp_path / "state.db", disk) as service:
            await append_all(service, sessions, range(MESSAGES))
            disk.fail(Operation.WRITE, kind=Kind.DATABASE)
    disk.mend()
    async with opened(tmp_path / "state.db") as service:
        assert flat(await stored_numbers(service, sessions)) == list(range(MESSAGES))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with mounts.tiny_disk(tmp_path / "tiny") as folder:
        yield folder


async def test_real_disk_that_runs_full_keeps_its_word(tiny_disk: Path) -> None:
    sessions = await begin(tiny_disk / "state.db")
    async with opened(tiny_disk / "state.db") as service:
        answers: dict[int, Answer] = {}
        for first in range(0, 20 * MESSAGES, MESSAGES):
            answers |= await append_all(service, sessions, range(first, first + MESSAGES))
        assert told_yes(answers)
        assert {type(error) for error in told_no(answers).values()} == {errors.StoreFull}
        assert flat(await stored_numbers(service, sessions)) == sorted(told_yes(answers))
        mounts.enlarge(tiny_disk)
        again = await append_all(service, sessions, sorted(told_no(answers)))
        assert set(again.values()) == {True}
    async with opened(tiny_disk / "state.db") as service:
        assert flat(await stored_numbers(service, sessions)) == list(range(20 * MESSAGES))


async def test_store_on_a_full_disk_refuses_to_open_by_name_and_opens_later(tiny_disk: Path) -> None:
    await begin(tiny_disk / "state.db")
    filler = tiny_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    for name in ("state.db", "new.db"):
        with pytest.raises(errors.StoreFull):
            async with opened(tiny_disk / name):
                pass
    filler.unlink()
    for name in ("state.db", "new.db"):
        async with opened(tiny_disk / name) as service:
            await service.get_or_create_session(direct())
