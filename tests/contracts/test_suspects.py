"""Turns that break off with their process, on every store: the right one is blamed, and it leaves no mess."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from frontdesk import Platform, SessionSource, plugins
from frontdesk.contracts.store import Store
from frontdesk.model import lanes, messages, moves, policies, sessions, turns
from frontdesk.model.deliveries import Delivery
from tests.contracts.conftest import EditStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@asynccontextmanager
async def opened(store_url: str) -> AsyncIterator[Store]:
    store: Store = await plugins.load_store(store_url)(store_url)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with opened(store_url) as store:
        yield store


@pytest.fixture
async def node(store: Store) -> int:
    return await store.nodes.join("test", NOW)


def nothing(_turn: turns.Turn) -> list[Delivery]:
    return []


async def accept(store: Store, *names: str) -> None:
    """A message in a conversation of its own for each name."""
    for name in names:
        source = SessionSource(platform=Platform.WEBHOOK, chat_id=name, user_id=name)
        turn = turns.Turn(id=name, session_key=name, source=source, text="hello", received_at=NOW)
        await store.turns.accept(turn, lambda *_: turns.Admission())


async def claim(
    store: Store, node: int, now: datetime = NOW, beside: Sequence[turns.Turn] = ()
) -> list[turns.Claim]:
    return await store.turns.claim(node, lanes.Kind.TURN, 10, now, nothing, beside=beside)


async def crash(store: Store, node: int, times: int) -> None:
    """Begin everything that waits and break off."""
    for _ in range(times):
        assert await claim(store, node)
        await store.turns.recover(node, lambda _: True, NOW)


async def test_turns_are_begun_for_the_last_time_one_at_a_time(store: Store, node: int) -> None:
    await accept(store, "a", "b", "c")
    await crash(store, node, turns.MAX_ATTEMPTS - 1)
    (first,) = await claim(store, node)
    assert first.turn.tries == turns.MAX_ATTEMPTS
    assert await claim(store, node, LATER, beside=[first.turn]) == []
    await store.turns.finish(first, turns.Ending(state=turns.State.DONE), NOW)
    (second,) = await claim(store, node, LATER + timedelta(minutes=1))
    assert second.turn.tries == second.turn.attempts == turns.MAX_ATTEMPTS
    assert second.turn.id != first.turn.id


async def test_what_broke_off_once_is_begun_again_all_at_once(store: Store, node: int) -> None:
    await accept(store, "a", "b", "c")
    await crash(store, node, 1)
    assert {each.turn.id for each in await claim(store, node)} == {"a", "b", "c"}


async def test_last_attempt_is_not_made_beside_what_broke_off_before(store: Store, node: int) -> None:
    await accept(store, "a")
    await crash(store, node, turns.MAX_ATTEMPTS - 2)
    await accept(store, "b")
    await crash(store, node, 1)
    (first,) = await claim(store, node)
    (second,) = await claim(store, node, LATER)
    assert {first.turn.tries, second.turn.tries} == {turns.MAX_ATTEMPTS, turns.MAX_ATTEMPTS - 1}


async def test_turn_that_has_ended_stays_ended(store: Store, node: int) -> None:
    await accept(store, "a")
    (begun,) = await claim(store, node)
    await store.turns.finish(begun, turns.Ending(state=turns.State.DONE, holds_lane=True), NOW)
    notice = Delivery(
        id="d", lane=lanes.chat_lane(begun.turn.source), to=begun.turn.source, text="!", created_at=NOW
    )
    failed = turns.Ending(state=turns.State.FAILED, deliveries=(notice,))
    await store.turns.finish(begun, failed, NOW)
    turn = await store.turns.find("a")
    assert turn is not None
    assert turn.state is turns.State.DONE
    assert await store.deliveries.find("d") is None
    assert await store.turns.held(node) == set()


async def test_turn_that_must_wait_for_its_last_attempt_lets_its_lane_go(store: Store, node: int) -> None:
    await accept(store, "a", "b")
    await crash(store, node, turns.MAX_ATTEMPTS - 1)
    (first,) = await claim(store, node)
    assert await store.turns.held(node) == {first.lease}
    due = await store.turns.next_due(lanes.Kind.TURN)
    assert due is not None
    assert NOW < due < LATER


async def test_fresh_turns_are_begun_beside_a_last_attempt(store: Store, node: int) -> None:
    await accept(store, "a")
    await crash(store, node, turns.MAX_ATTEMPTS - 1)
    await accept(store, "b", "c")
    assert {each.turn.id for each in await claim(store, node)} == {"a", "b", "c"}


async def test_only_the_turn_that_breaks_off_alone_is_set_aside(store: Store, node: int) -> None:
    await accept(store, "a", "b", "c")
    await crash(store, node, turns.MAX_ATTEMPTS - 1)
    (culprit,) = await claim(store, node)
    await store.turns.recover(node, lambda _: True, NOW)
    ended: dict[str, turns.State] = {}
    for minute in range(1, 10):
        for each in await claim(store, node, NOW + timedelta(minutes=minute)):
            await store.turns.finish(each, turns.Ending(state=turns.State.DONE), NOW)
    for name in ("a", "b", "c"):
        turn = await store.turns.find(name)
        assert turn is not None
        ended[name] = turn.state
    wanted = dict.fromkeys(("a", "b", "c"), turns.State.DONE) | {culprit.turn.id: turns.State.SET_ASIDE}
    assert ended == wanted


async def test_turn_that_is_set_aside_leaves_no_open_calls(store: Store, node: int) -> None:
    entry = sessions.SessionEntry(session_key="a", session_id="s", created_at=NOW, updated_at=NOW)
    session = sessions.Session(entry=entry, owner="me", peer="peer")
    await store.sessions.settle(
        "a",
        lambda _: moves.Start(session=session, ends=policies.EndReason.NEW),
        now=NOW,
        new_id=lambda: "s",
    )
    await accept(store, "a")
    for attempt in range(turns.MAX_ATTEMPTS):
        (begun,) = await claim(store, node)
        await store.turns.begin(
            begun, "s", [messages.pack({"role": "user", "content": "hello"}, "a", 0)], NOW
        )
        called = {"role": "assistant", "content": None, "tool_calls": [CALL | {"id": f"c{attempt}"}]}
        await store.turns.record(begun, "s", [messages.pack(called, "a", 1 + attempt)], NOW)
        await store.turns.recover(node, lambda _: True, NOW)
    assert await claim(store, node) == []
    rows = await store.transcripts.load("s")
    called_ids = [call["id"] for row in rows for call in row.get("tool_calls") or ()]
    assert [row["tool_call_id"] for row in rows if row["role"] == "tool"] == called_ids
    found = await store.sessions.find("s")
    assert found is not None
    assert found.entry.suspended
    assert found.entry.message_count == len(rows)


async def test_what_was_taken_from_a_node_is_no_longer_held_by_it(store: Store, node: int) -> None:
    await accept(store, "a", "b")
    claims = await claim(store, node)
    assert await store.turns.held(node) == {each.lease for each in claims}
    await store.turns.recover(node, lambda _: True, NOW)
    assert await store.turns.held(node) == set()
    again = await claim(store, node)
    assert await store.turns.held(node) == {each.lease for each in again}
    assert not {each.lease for each in again} & {each.lease for each in claims}


async def test_lease_that_nobody_renews_runs_out_for_its_own_node_too(
    store_url: str, edit_store: EditStore
) -> None:
    async with opened(store_url) as store:
        node = await store.nodes.join("test", NOW)
        await accept(store, "known", "unknown")
        known, unknown = sorted(await claim(store, node), key=lambda each: each.turn.id)
    await edit_store("UPDATE lanes SET leased_until = 1")
    async with opened(store_url) as store:
        await store.turns.renew([known.lease])
        assert await store.nodes.overdue() == [node]
        recovered = await store.turns.recover(node, lambda _: True, NOW, overdue=True)
        assert [turn.id for turn in recovered] == [unknown.turn.id]
        assert await store.nodes.overdue() == []
        assert await store.turns.held(node) == {known.lease}


async def test_lease_that_was_lost_is_not_renewed(store_url: str, edit_store: EditStore) -> None:
    async with opened(store_url) as store:
        node = await store.nodes.join("test", NOW)
        await accept(store, "a")
        (lost,) = await claim(store, node)
        await store.turns.recover(node, lambda _: True, NOW)
        await claim(store, node)
    await edit_store("UPDATE lanes SET leased_until = 1")
    async with opened(store_url) as store:
        await store.turns.renew([lost.lease])
        assert await store.nodes.overdue() == [node]
