"""What SQLite's engine knows of sessions without looking is what the file says."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw
import apsw.ext
import pytest

from frontdesk import SessionStore, errors
from frontdesk.model.people import Viewer
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session, SessionEntry, Usage
from frontdesk.stores.rows import NAMED, SESSIONS
from frontdesk.stores.sql import load_queries
from frontdesk.stores.sqlite import known
from frontdesk.stores.sqlite.engine import SqliteEngine
from frontdesk.stores.sqlite.files import Location
from frontdesk.stores.sqlite.known import ALTERS, KnownRows
from frontdesk.stores.sqlite.threads import drive, equip
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests import counts, faults
from tests.contracts.samples import (
    LASTING,
    UNKNOWN_ID,
    agent_calls,
    agent_says,
    direct,
    tool_answers,
    user_says,
)
from tests.faults import FailingDisk, Operation

QUERIES = load_queries("sqlite")
CHATS = list("abcdef")
AT_ONCE = 8
USUAL = 0.7
MOST_FEW = 3
ONCE = ("make_appending", "make_audit_triggers")
"""They make what is there when a store was opened."""
WRITES = {"SQLITE_UPDATE", "SQLITE_INSERT", "SQLITE_DELETE"}

Step = Callable[[], Awaitable[object]]


class Watched:
    """A store of a few chats, whose engine can be asked what it knows."""

    def __init__(self, engine: SqliteEngine, path: Path, disk: FailingDisk) -> None:
        self.disk = disk
        self.clock = SettableClock()
        self.service = SessionStore(Store(engine), LASTING, clock=self.clock)
        self.known: KnownRows = engine._at_desk.known
        self.keys: dict[str, str] = {}
        self._path = path
        self._random = random.Random(7)
        self._sent = 0

    async def begin(self) -> None:
        for chat in CHATS:
            entry = await self.service.get_or_create_session(direct(chat))
            self.keys[chat] = entry.session_key

    def compare(self) -> int:
        """How many are known; each as it stands in the file."""
        keys = list(self.keys.values())
        with closing(apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
            equip(db)
            found = [drive(db.cursor(), QUERIES, SESSIONS.one("current_session", key=key)) for key in keys]
        told: list[Session | None] = [self.known.get(key) for key in keys]
        assert [told_one for told_one in told if told_one] == [
            found_one for told_one, found_one in zip(told, found, strict=True) if told_one
        ]
        return sum(each is not None for each in told)

    async def do_some(self) -> None:
        """Several steps at once, some of which fail; or one, which may be done on the loop."""
        self.clock.advance(seconds=self._random.choice([0, 1, 70]))
        steps = [self._step() for _ in range(self._random.choice([1, 1, AT_ONCE // 2, AT_ONCE]))]
        for answer in await asyncio.gather(*(step() for step in steps), return_exceptions=True):
            if isinstance(answer, BaseException) and not isinstance(answer, errors.FrontdeskError):
                raise answer

    def _step(self) -> Step:
        chat = self._random.choice(CHATS)
        rare = [self._change, self._undo, self._call, self._decide, self._begin_anew, self._misdirect]
        step = self._talk if self._random.random() < USUAL else self._random.choice(rare)
        return lambda: step(chat)

    async def _talk(self, chat: str) -> None:
        entry = await self.service.get_or_create_session(direct(chat))
        number = self._random.randint(1, 20)
        await self.service.append_to_transcript(entry.session_id, user_says(platform_message_id=str(number)))
        usage = Usage(
            input_tokens=number,
            cost_usd=0.1 * number,
            cost_status=self._random.choice([None, "estimated"]),
            last_prompt_tokens=self._random.choice([None, number]),
        )
        await self.service.record_turn(entry.session_id, [agent_says()], usage=usage)

    async def _call(self, chat: str) -> None:
        entry = await self.service.get_or_create_session(direct(chat))
        for said in agent_calls("one"), tool_answers("one"):
            await self.service.append_to_transcript(entry.session_id, said)

    async def _misdirect(self, chat: str) -> None:
        """What is refused takes back what was done together with it, which is done again."""
        entry = await self.service.get_or_create_session(direct(chat))
        says = [self.service.append_to_transcript(entry.session_id, user_says()) for _ in range(2)]
        await asyncio.gather(*says, self.service.append_to_transcript(UNKNOWN_ID, user_says()))

    async def _change(self, chat: str) -> None:
        await self.service.update_session(self.keys[chat], output_tokens=3)
        current = await self.service.get_session(self.keys[chat])
        if current is None:  # another has taken the key's session
            return
        title = self._random.choice(["x", "y", None])
        await self.service.set_title(current.session_id, title, Viewer.everything())

    async def _undo(self, chat: str) -> None:
        entry = await self.service.get_or_create_session(direct(chat))
        undo = self._random.choice([self.service.rewind_session, self.service.redo_session])
        await undo(entry.session_id)

    async def _decide(self, chat: str) -> None:
        decisions = [
            self.service.suspend_session,
            self.service.mark_resume_pending,
            self.service.clear_resume_pending,
            self.service.reset_message_count,
            self.service.consume_reset,
            self.service.mark_expiry_finalized,
        ]
        await self._random.choice(decisions)(self.keys[chat])

    async def _begin_anew(self, chat: str) -> None:
        key = self.keys[chat]
        current = await self.service.get_session(key)
        match self._random.randrange(4):
            case 0:
                await self.service.reset_session(key)
            case 1:
                await self.service.branch_session(key)
            case 2 if current:
                await self.service.end_session(current.session_id, EndReason.MESSAGE_LIMIT)
            case _:
                other = await self.service.get_session(self.keys[self._random.choice(CHATS)])
                if other:
                    await self.service.switch_session(key, other.session_id)


@pytest.fixture
def disk() -> Iterator[FailingDisk]:
    with faults.failing_disk() as disk:
        yield disk


@pytest.fixture
async def store(tmp_path: Path, disk: FailingDisk) -> AsyncIterator[Watched]:
    path = tmp_path / "state.db"
    engine = await asyncio.to_thread(SqliteEngine, Location(path, vfs=disk.name))
    watched = Watched(engine, path, disk)
    await watched.begin()
    yield watched
    disk.mend()
    await engine.close()
    assert watched.compare() == 0, "nobody is told anything by a store that is closed"


async def test_what_is_known_is_what_the_file_says(store: Watched, tell: counts.Tell) -> None:
    known = 0
    for _ in range(counts.count(300, 10_000)):
        await store.do_some()
        known += store.compare()
    tell("sessions known and compared", known)
    assert known


async def test_what_is_known_is_what_the_file_says_after_failures(store: Watched, tell: counts.Tell) -> None:
    known = 0
    for number in range(counts.count(150, 5_000)):
        operation = (Operation.WRITE, Operation.SYNC)[number % 2]
        store.disk.fail(operation, after=number % 11, times=1 + number % 3)
        await store.do_some()
        known += store.compare()
        store.disk.mend()
        await store.do_some()
        known += store.compare()
    tell("sessions known and compared around failures", known)
    assert known
    assert store.disk.failures


async def test_look_up_of_a_chat_that_goes_on_asks_nothing_of_the_file(store: Watched) -> None:
    await store.service.get_or_create_session(direct("a"))
    entry = await store.service.get_or_create_session(direct("a"))
    assert await store.service.append_to_transcript(entry.session_id, user_says())
    store.disk.fail(Operation.READ)
    again = await store.service.get_or_create_session(direct("a"))
    assert (again.session_id, again.message_count) == (entry.session_id, entry.message_count + 1)


def test_no_more_is_known_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "MOST_KNOWN", MOST_FEW)
    rows = KnownRows()
    for number in range(MOST_FEW + 2):
        rows.learn(f"key {number}", session(f"id {number}"))
    assert [number for number in range(MOST_FEW + 2) if rows.get(f"key {number}")] == [2, 3, 4]


def session(session_id: str, **of_origin: str) -> Session:
    now = datetime.now(UTC)
    entry = SessionEntry(
        session_key="key",
        session_id=session_id,
        created_at=now,
        updated_at=now,
        origin=direct("a", **of_origin),
    )
    return Session(entry=entry, owner="o", peer="p")


def test_what_is_large_is_looked_up_again() -> None:
    rows = KnownRows()
    rows.learn("key", session("id", chat_topic="x" * 100_000))
    assert rows.get("key") is None


def test_change_that_fails_leaves_nothing_known_and_is_not_made_twice() -> None:
    def fail(record: Session) -> Session:
        raise MemoryError

    rows = KnownRows()
    rows.learn("key", session("id"))
    rows.change("id", lambda record: record)
    rows.change("id", fail)
    rows.committed()
    assert rows.get("key") is None
    assert not rows.changes


def test_every_query_is_named_that_alters_what_is_known(store: Watched) -> None:
    """As SQLite itself says what a statement writes."""
    with closing(apsw.Connection(str(store._path))) as db:
        equip(db)
        db.execute(QUERIES["make_appending"].sql)
        altering = {name for name in QUERIES.keys() - set(ONCE) if _alters(db, QUERIES[name].sql)}
    assert altering == ALTERS.keys()
    for name, values in ALTERS.items():
        assert all(f":{value}" in QUERIES[name]._whole for value in values), name


def _alters(db: apsw.Connection, sql: str) -> bool:
    actions = apsw.ext.query_info(db, sql, actions=True).actions if sql else ()
    written = [action for action in actions or () if action.action_name in WRITES]
    return any(
        action.table_name == "routes"
        or (
            action.table_name == "sessions"
            and (action.action_name == "SQLITE_DELETE" or action.column_name in NAMED["session"])
        )
        for action in written
    )
