"""Messages that come in at once become what they would have become one after the other."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk import Platform, SessionSource, errors, plugins
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Admit
from frontdesk.model import lanes
from frontdesk.model.deliveries import Delivery
from frontdesk.model.turns import Accepted, Admission, Ending, Turn, TurnKind, TurnState
from frontdesk.stores import arrivals, turns
from frontdesk.stores.store import Store
from tests import counts

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOST_WAITING = 2
CHATS = ("ann", "bob", "cat", "dan", "eve", "fay", "gus", "Zoë")
EVENTS = (None, None, "1", "2", "3", "4", "5", "6", "7", "e'\"\\é")
LONG = "x" * (arrivals.SHORT_CHARACTERS + 1)
TEXTS = st.one_of(
    st.just("hello"), st.text(max_size=20), st.sampled_from([LONG, 'a "b" \\ \n\0 \x7f 😀 \u2028 {"c": [1]}'])
)
PARTS = [{"type": "text", "text": "part"}]

TABLES = {
    "turns": "SELECT * FROM turns ORDER BY lane, number",
    "lanes": "SELECT * FROM lanes ORDER BY name",
    "feed": "SELECT f.* FROM feed f LEFT JOIN turns t ON t.id = f.turn_id ORDER BY t.lane, f.number",
    "deliveries": "SELECT * FROM deliveries ORDER BY id",
}
UNSTEADY = ("number", "leased_until")

on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


class Message(msgspec.Struct, frozen=True):
    chat: str
    text: str
    event_id: str | None
    kind: TurnKind
    parts: bool


MESSAGES = st.builds(
    Message,
    st.sampled_from(CHATS),
    TEXTS,
    st.sampled_from(EVENTS),
    st.sampled_from([*[TurnKind.MESSAGE] * 6, TurnKind.COMMAND, TurnKind.CONTROL, TurnKind.OBSERVED]),
    st.sampled_from([*[False] * 6, True]),
)
Rounds = list[tuple[list[Message], int]]
ROUNDS = st.lists(st.tuples(st.lists(MESSAGES, max_size=10), st.integers(0, 4)), min_size=2, max_size=4)
"""What comes in at once, and in how many conversations a turn is begun afterwards: all but one are ended."""


def turn_of(message: Message, name: str, at: datetime) -> Turn:
    return Turn(
        id=name,
        kind=message.kind,
        session_key=f"agent:main:webhook:dm:{message.chat}",
        source=SessionSource(platform=Platform.WEBHOOK, chat_id=message.chat, user_name=message.chat),
        text=message.text,
        content=PARTS if message.parts else None,
        event_id=message.event_id,
        received_at=at,
    )


def admit_for(turn: Turn) -> Admit:
    """An admission that makes use of everything it may ask for."""

    def admit(running: Turn | None, queued: int, _crowd: int) -> Admission:
        if queued >= MOST_WAITING:
            raise errors.TooManyWaiting(waiting=queued)
        if running is None and not queued:
            return Admission()
        notice = Delivery(
            id=f"d-{turn.id}",
            lane=lanes.chat_lane(turn.source),
            to=turn.source,
            text="wait",
            created_at=turn.received_at,
        )
        return Admission(steers=queued == 0, interrupts=turn.kind is TurnKind.COMMAND, notices=(notice,))

    return admit


async def take_in(store: Store, turn: Turn) -> Accepted | str:
    try:
        return await store.turns.accept(turn, admit_for(turn))
    except errors.TooManyWaiting as refusal:
        return str(refusal)


Outcomes = list[Accepted | str]
TakeIn = Callable[[Store, Sequence[Turn]], Awaitable[Outcomes]]


async def one_by_one(store: Store, new: Sequence[Turn]) -> Outcomes:
    return [await take_in(store, turn) for turn in new]


async def at_once(store: Store, new: Sequence[Turn]) -> Outcomes:
    return await asyncio.gather(*(take_in(store, turn) for turn in new))


async def live_through(url: str, rounds: Rounds, take_in_all: TakeIn) -> list[Outcomes]:
    store: Store = await plugins.load_store(url)(url)
    try:
        node = await store.nodes.join("test", NOW)
        seen = []
        for number, (messages, worked_on) in enumerate(rounds):
            at = NOW + timedelta(seconds=number)
            new = [turn_of(message, f"t-{number}-{place}", at) for place, message in enumerate(messages)]
            seen.append([_unnumbered(outcome) for outcome in await take_in_all(store, new)])
            claims = await store.turns.claim(node, lanes.LaneKind.TURN, worked_on, at, lambda _: [])
            for claim in claims[1:]:
                await store.turns.finish(claim, Ending(state=TurnState.DONE), at)
        return seen
    finally:
        await store.close()


def _unnumbered(outcome: Accepted | str) -> Accepted | str:
    if isinstance(outcome, str):
        return outcome
    return msgspec.structs.replace(outcome, turn=msgspec.structs.replace(outcome.turn, number=0))


def contents(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row that messages become; their numbers and when leases end differ from run to run."""
    with closing(sqlite3.connect(path)) as db:
        return {table: _rows(db.execute(query)) for table, query in TABLES.items()}


def _rows(found: sqlite3.Cursor) -> list[dict[str, Any]]:
    names = [column[0] for column in found.description]
    every = [dict(zip(names, row, strict=True)) for row in found]
    return [{name: value for name, value in row.items() if name not in UNSTEADY} for row in every]


@pytest.mark.timeout(counts.count(120, 1_200))
@settings(max_examples=counts.count(15, 1_000), deadline=None)
@given(rounds=ROUNDS)
def test_messages_at_once_become_what_they_would_one_by_one(rounds: Rounds) -> None:
    with TemporaryDirectory() as folder:
        first, second = Path(folder) / "first.db", Path(folder) / "second.db"
        seen = asyncio.run(live_through(f"sqlite:///{first}", rounds, one_by_one))
        assert asyncio.run(live_through(f"sqlite:///{second}", rounds, at_once)) == seen
        assert contents(second) == contents(first)


@pytest.fixture
async def store(store_url: str) -> Any:
    async with AsyncExitStack() as opened:
        made: Store = await plugins.load_store(store_url)(store_url)
        opened.push_async_callback(made.close)
        yield made


def plain(number: int, event_id: str | None = None) -> Turn:
    message = Message(f"chat-{number}", "hello", event_id, TurnKind.MESSAGE, False)
    return turn_of(message, f"t-{number}", NOW)


async def test_crowd_is_taken_in_each_once_and_can_be_worked_on(store: Store) -> None:
    crowd = [plain(number, event_id=str(number)) for number in range(200)]
    accepted = await at_once(store, crowd)
    again = await at_once(store, [msgspec.structs.replace(turn, id=f"{turn.id}-again") for turn in crowd])
    assert [outcome.turn.id for outcome in again if isinstance(outcome, Accepted) and outcome.repeated] == [
        turn.id for turn in crowd
    ]
    numbers = [outcome.turn.number for outcome in accepted if isinstance(outcome, Accepted)]
    assert len(set(numbers)) == len(crowd)
    node = await store.nodes.join("test", NOW)
    claims = await store.turns.claim(node, lanes.LaneKind.TURN, 1_000, NOW, lambda _: [])
    assert {(claim.turn.id, claim.turn.number) for claim in claims} == {
        (turn.id, number) for turn, number in zip(crowd, numbers, strict=True)
    }


async def test_same_event_for_several_chats_at_once_is_taken_in_once(store: Store) -> None:
    outcomes = await at_once(store, [plain(number, event_id="same") for number in range(20)])
    assert sorted(outcome.repeated for outcome in outcomes if isinstance(outcome, Accepted)) == [
        False,
        *[True] * 19,
    ]
    assert await store.turns.counts() == {"queued": 1}


async def test_refused_message_refuses_no_other(store: Store) -> None:
    full = [plain(0), *(msgspec.structs.replace(plain(0), id=f"t-0-{number}") for number in range(9))]
    others = [plain(number) for number in range(1, 50)]
    outcomes = await at_once(store, [*full, *others])
    assert sum(isinstance(outcome, str) for outcome in outcomes) == len(full) - MOST_WAITING
    assert await store.turns.counts() == {"queued": len(others) + MOST_WAITING}


async def test_refused_message_keeps_nobody_from_hearing_of_the_others(store: Store) -> None:
    full = [msgspec.structs.replace(plain(0), id=f"t-0-{number}") for number in range(MOST_WAITING + 1)]
    await one_by_one(store, full[:MOST_WAITING])
    bell = store.bells.listen(Topic.TURNS)
    # Something goes ahead, so that the others go to the writer together, the refused one first.
    _, refused, *taken = await asyncio.gather(
        store.feed.prune(NOW), take_in(store, full[-1]), *(take_in(store, plain(each)) for each in (1, 2))
    )
    assert isinstance(refused, str)
    assert all(isinstance(outcome, Accepted) for outcome in taken)
    assert await bell.wait(0.5)


@pytest.fixture
async def short_way(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of turns that were taken in together, as is done on SQLite."""
    together: list[str] = []
    accept_together = arrivals.accept_together

    def spy(crowd: Sequence[arrivals.Arrival]) -> Any:
        done = yield from accept_together(crowd)
        together.extend(outcome.turn.id for outcome in done if outcome)
        return done

    monkeypatch.setattr(turns, "accept_together", spy)
    return together


@on_sqlite
async def test_crowd_goes_the_short_way(store: Store, short_way: list[str]) -> None:
    await at_once(store, [plain(number) for number in range(100)])
    assert len(short_way) >= 98  # the first may have gone ahead alone


@on_sqlite
async def test_what_is_long_or_admitted_with_more_does_not_go_the_short_way(
    store: Store, short_way: list[str]
) -> None:
    long = [turn_of(Message(f"l{number}", LONG, None, TurnKind.MESSAGE, False), f"long-{number}", NOW)
            for number in range(10)]  # fmt: skip
    steering = [plain(number) for number in range(10)]
    await asyncio.gather(
        *(store.turns.accept(turn, lambda *_: Admission(steers=True)) for turn in steering),
        *(take_in(store, turn) for turn in long),
    )
    assert short_way == []
    node = await store.nodes.join("test", NOW)
    claims = await store.turns.claim(node, lanes.LaneKind.TURN, 100, NOW, lambda _: [])
    assert {claim.turn.id for claim in claims if claim.turn.steers} == {turn.id for turn in steering}


@on_sqlite
async def test_more_come_at_once_than_are_handed_over_at_once(store: Store) -> None:
    crowd = [plain(number) for number in range(2_000)]
    outcomes = await at_once(store, crowd)
    assert {outcome.turn.id for outcome in outcomes if isinstance(outcome, Accepted)} == {
        turn.id for turn in crowd
    }
    assert await store.turns.counts() == {"queued": len(crowd)}
