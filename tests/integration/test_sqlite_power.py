"""The power fails: what the SQLite store has confirmed by then is there, whatever became of the rest."""

import asyncio
import contextlib
import itertools
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from frontdesk import SessionEntry, SessionStore, Usage, errors
from frontdesk.testing import SettableClock
from tests import counts, faults
from tests.contracts.samples import LASTING, Message, direct
from tests.faults import Action, Event, Fate, Kind, Platter, RecordingDisk

CHATS = 4
ROUNDS = 3
LARGE_BYTES = 300_000
LARGE_MESSAGES = 18  # more than the log takes before it is moved into the database
TOKENS = 7
SUFFIXES = {kind: suffix for suffix, kind in faults.SUFFIXES.items()}


class Said(NamedTuple):
    """A message is in a transcript."""

    session_id: str
    message_id: str


class Touched(NamedTuple):
    """A session was active, at that time or later."""

    session_id: str
    at: datetime


class Overridden(NamedTuple):
    """A session has a model of its own, that one or a later one."""

    session_id: str
    model: int


Fact = Said | Touched | Overridden


class Diary:
    """What the store has confirmed, and how far the disk was by then."""

    def __init__(self, disk: RecordingDisk) -> None:
        self._disk = disk
        self._facts: list[tuple[int, Fact]] = []
        self._lazy: list[Fact] = []

    def note_lazy(self, fact: Fact) -> None:
        """A power cut may take this, until the store confirms something that came after it."""
        self._lazy.append(fact)

    async def note(self, confirmed: Awaitable[object], *facts: Fact) -> None:
        before = tuple(self._lazy)
        await confirmed
        self._facts += [(len(self._disk.events), fact) for fact in (*before, *facts)]

    def facts_at(self, events: int) -> list[Fact]:
        return [fact for at, fact in self._facts if at <= events]


class Talk:
    """Some chats on a store, whose lazy and durable work mixes."""

    _models = itertools.count()

    def __init__(self, service: SessionStore, clock: SettableClock, diary: Diary) -> None:
        self._service = service
        self._clock = clock
        self._diary = diary

    async def run(self, name: str) -> None:
        for number in range(ROUNDS):
            async with asyncio.TaskGroup() as chats:
                for chat in range(CHATS):
                    chats.create_task(self.take_turn(chat, f"{name}-{number}"))

    async def take_turn(self, chat: int, name: str) -> None:
        entry = await self.touch(chat)
        session_id = entry.session_id
        question = said("user", f"{name}-question")
        answer = [said("assistant", f"{name}-{part}") for part in ("first", "last")]
        usage = Usage(output_tokens=len(answer) * TOKENS)
        asked = self._service.append_to_transcript(session_id, question)
        await self._diary.note(asked, Said(session_id, f"{name}-question"))
        await self.touch(chat)
        answered = self._service.record_turn(session_id, answer, turn_id=name, usage=usage)
        await self._diary.note(answered, *(Said(session_id, row["platform_message_id"]) for row in answer))
        model = next(self._models)
        overridden = self._service.set_model_override(entry.session_key, {"model": str(model)})
        await self._diary.note(overridden, Overridden(session_id, model))

    async def touch(self, chat: int) -> SessionEntry:
        """Lazy work, which a read waits for: in a commit of its own, unless another chat is at work."""
        self._clock.advance(seconds=1)
        now = self._clock.now()
        entry = await self._service.get_or_create_session(direct(str(chat)))
        await self._service.list_sessions(limit=1)
        self._diary.note_lazy(Touched(entry.session_id, now))
        return entry

    async def fill_log(self) -> None:
        for number in range(LARGE_MESSAGES):
            entry = await self.touch(number % CHATS)
            name = f"large-{number}"
            asked = self._service.append_to_transcript(entry.session_id, said("user", name, LARGE_BYTES))
            await self._diary.note(asked, Said(entry.session_id, name))


def said(role: str, name: str, size: int = 10) -> Message:
    return {"role": role, "content": "x" * size, "platform_message_id": name}


@contextlib.asynccontextmanager
async def opened(path: Path, clock: SettableClock, vfs: str = "") -> AsyncIterator[SessionStore]:
    async with await SessionStore.open(f"sqlite:///{path}{vfs}", LASTING, clock=clock) as service:
        yield service


@pytest.fixture
def disk() -> Iterator[RecordingDisk]:
    with faults.recording_disk() as disk:
        yield disk


async def live(path: Path, disk: RecordingDisk) -> Diary:
    """A store's life: made, used, its log moved into the database, closed, opened and used again."""
    clock, diary = SettableClock(), Diary(disk)
    async with opened(path, clock, f"?vfs={disk.name}") as service:
        talk = Talk(service, clock, diary)
        await talk.run("first")
        await talk.fill_log()
        await talk.run("second")
    async with opened(path, clock, f"?vfs={disk.name}") as service:
        await Talk(service, clock, diary).run("third")
    return diary


class State(NamedTuple):
    """What a disk may hold, and what must be found in it."""

    files: dict[Kind, bytes]
    facts: list[Fact]


def states(events: Sequence[Event], diary: Diary, points: Sequence[int]) -> Iterator[State]:
    """The power fails after so many events: a state for every fate of what was not synced by then."""
    platter, done, dice = Platter(), 0, random.Random(len(points))
    for point in sorted(points):
        platter.follow(events[done:point])
        done = point
        for fate in Fate:
            yield State(platter.cut_power(fate, dice), diary.facts_at(point))


def points_of(events: Sequence[Event], number: int) -> list[int]:
    """Moments all over the time, half of them just before or after a sync."""
    dice = random.Random(number)
    syncs = [at for at, event in enumerate(events) if event.action is Action.SYNC]
    near = [at + dice.choice([0, 1]) for at in dice.choices(syncs, k=number // 2)]
    return [*near, *dice.choices(range(len(events) + 1), k=number - len(near) - 1), len(events)]


def lay_out(files: dict[Kind, bytes], folder: Path) -> None:
    folder.mkdir()
    for kind, content in files.items():
        if content:
            (folder / f"state.db{SUFFIXES[kind]}").write_bytes(content)


async def check(state: State, folder: Path) -> None:
    """The store opens, holds every fact, agrees with itself, and goes on."""
    lay_out(state.files, folder)
    async with opened(folder / "state.db", SettableClock()) as service:
        await check_facts(service, state.facts)
        for entry in await service.list_sessions():
            await check_session(service, entry)
        fresh = await service.get_or_create_session(direct("fresh"))
        await service.append_to_transcript(fresh.session_id, said("user", "fresh"))
    with contextlib.closing(apsw.Connection(str(folder / "state.db"))) as db:
        assert db.pragma("integrity_check") == "ok"
        assert db.pragma("foreign_key_check") is None


async def check_facts(service: SessionStore, facts: Sequence[Fact]) -> None:
    for session_id in {fact.session_id for fact in facts}:
        entry = await service.lookup_by_session_id(session_id)
        assert entry
        transcript = await service.load_transcript(session_id)
        found = [row["platform_message_id"] for row in transcript]
        ours = [fact for fact in facts if fact.session_id == session_id]
        expected = [fact.message_id for fact in ours if isinstance(fact, Said)]
        assert [name for name in found if name in set(expected)] == expected
        for fact in ours:
            if isinstance(fact, Touched):
                assert entry.updated_at >= fact.at
            if isinstance(fact, Overridden):
                assert entry.model_override
                assert int(entry.model_override["model"]) >= fact.model


async def check_session(service: SessionStore, entry: SessionEntry) -> None:
    transcript = await service.load_transcript(entry.session_id)
    names = [row["platform_message_id"] for row in transcript]
    answers = [row for row in transcript if row["role"] == "assistant"]
    assert len(set(names)) == len(names)
    assert entry.message_count == len(transcript)
    assert entry.output_tokens == TOKENS * len(answers)
    assert len(answers) % 2 == 0


@pytest.mark.prove
async def test_confirmed_work_survives_every_power_cut(
    tmp_path: Path, disk: RecordingDisk, tell: counts.Tell
) -> None:
    diary = await live(tmp_path / "state.db", disk)
    points = points_of(disk.events, counts.count(20, 200))
    number = 0
    for number, state in enumerate(states(disk.events, diary, points), 1):
        await check(state, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number))
    tell("states of the disk after a power cut: the store opens", number)


async def test_disk_that_only_pretends_to_sync_is_found_out(tmp_path: Path, disk: RecordingDisk) -> None:
    diary = await live(tmp_path / "state.db", disk)
    pretended = [
        Event(Action.WRITE, event.kind) if event.action is Action.SYNC else event for event in disk.events
    ]
    lost = 0
    for number, state in enumerate(states(pretended, diary, points_of(disk.events, 5))):
        try:
            await check(state, tmp_path / str(number))
        except (AssertionError, errors.StoreError):
            lost += 1
    assert lost


async def test_work_confirmed_after_a_failed_sync_survives_a_power_cut(
    tmp_path: Path, disk: RecordingDisk
) -> None:
    """The system may let go of what it could not write, lazy work of earlier commits with it."""
    clock, diary = SettableClock(), Diary(disk)
    async with opened(tmp_path / "state.db", clock, f"?vfs={disk.name}") as service:
        talk = Talk(service, clock, diary)
        await talk.run("before")
        for chat in range(CHATS):
            await talk.touch(chat)
        disk.sync_fails = True
        with pytest.raises(errors.StoreFailed):
            await talk.take_turn(0, "refused")
        disk.sync_fails = False
        await talk.run("after")
        cut = len(disk.events)
    for number, state in enumerate(states(disk.events, diary, [cut])):
        await check(state, tmp_path / str(number))
