"""Turns that break off with their process, on every store: the right one is blamed, and it leaves no mess."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from frontdesk import Platform, SessionSource, plugins
from frontdesk.model import lanes, messages, moves, policies, sessions, turns
from frontdesk.model.deliveries import Delivery
from frontdesk.stores.store import Store
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
) -> list[turns.TurnClaim]:
    return await store.turns.claim(node, lanes.LaneKind.TURN, 10, now, nothing, beside=turns.Beside(beside))


async def crash(store: Store, node: int, times: int) -> None:
    """Begin everything that waits and break off."""
    for _ in range(times):
        assert await claim(store, node)
        await store.turns.recover(node, lambda _, now: now, NOW)


async def states(store: Store, *names: str) -> dict[str, turns.TurnState]:
    return {name: (await found(store, name)).state for name in names}


async def found(store: Store, name: str) -> turns.Turn:
    turn = await store.turns.find(name)
    assert turn is not None
    return turn


async def finish(store: Store, *claims: turns.TurnClaim) -> None:
    for each in claims:
        await store.turns.finish(each, turns.Ending(state=turns.TurnState.DONE), NOW)


async def in_doubt(store: Store, node: int, *names: str) -> None:
    """Suspects of which nobody knows which one kills the process."""
    await accept(store, *names)
    await crash(store, node, turns.MAX_ATTEMPTS)


def acquitted(claim: turns.TurnClaim) -> turns.Turn:
    return replace(claim.turn, on_trial=False)


async def test_suspects_are_begun_all_at_once_beside_all_others(store: Store, node: int) -> None:
    await accept(store, "a", "b", "c")
    await crash(store, node, turns.MAX_ATTEMPTS - 1)
    await accept(store, "fresh")
    begun = await claim(store, node)
    assert {each.turn.id for each in begun if each.turn.is_suspect} == {"a", "b", "c"}
    assert len(begun) == 4


async def test_nobody_is_blamed_while_several_may_have_done_it(store: Store, node: int) -> None:
    await in_doubt(store, node, "a", "b", "c")
    assert [(await found(store, name)).tries for name in "abc"] == [turns.MAX_ATTEMPTS - 1] * 3
    ended: list[str] = []
    for minute in range(1, 5):
        begun = await claim(store, node, NOW + timedelta(minutes=minute))
        await finish(store, *begun)
        ended += [each.turn.id for each in begun]
    assert sorted(ended) == ["a", "b", "c"]


async def test_suspects_in_doubt_are_begun_one_after_the_other(store: Store, node: int) -> None:
    await in_doubt(store, node, "a", "b", "c")
    (first,) = await claim(store, node)
    assert first.turn.tries == turns.MAX_ATTEMPTS
    assert await claim(store, node, LATER, beside=[first.turn]) == []
    await finish(store, first)
    (second,) = await claim(store, node, LATER + timedelta(minutes=1))
    assert second.turn.tries == turns.MAX_ATTEMPTS
    assert second.turn.id != first.turn.id


async def test_suspect_that_waits_says_why_and_lets_its_lane_go(store: Store, node: int) -> None:
    await in_doubt(store, node, "a", "b")
    (first,) = await claim(store, node)
    (other,) = {"a", "b"} - {first.turn.id}
    assert (await found(store, other)).is_held_back
    assert await store.turns.held_back() == 1
    assert await store.turns.held(node) == {first.lease}
    due = await store.turns.next_due(lanes.LaneKind.TURN)
    assert due is not None
    assert NOW < due < LATER
    await claim(store, node, LATER)
    assert await store.turns.held_back() == 0


async def test_suspect_that_runs_for_long_holds_up_no_other(store: Store, node: int) -> None:
    await in_doubt(store, node, "a", "b")
    (first,) = await claim(store, node)
    await store.turns.acquit(first)
    assert not (await found(store, first.turn.id)).on_trial
    (second,) = await claim(store, node, LATER, beside=[acquitted(first)])
    assert second.turn.is_suspect


async def test_fresh_turns_do_not_wait_for_a_suspect_in_doubt(store: Store, node: int) -> None:
    await in_doubt(store, node, "a", "b")
    (first,) = await claim(store, node)
    await accept(store, "c", "d")
    begun = await claim(store, node, beside=[first.turn])
    assert {each.turn.id for each in begun} == {"c", "d"}


async def test_suspect_on_trial_is_blamed_and_not_the_one_that_has_run_for_long(
    store: Store, node: int
) -> None:
    await in_doubt(store, node, "a", "b")
    (first,) = await claim(store, node)
    await store.turns.acquit(first)
    (second,) = await claim(store, node, LATER, beside=[acquitted(first)])
    await store.turns.recover(node, lambda _, now: now, LATER)
    (again,) = await claim(store, node, LATER)
    assert again.turn.id == first.turn.id
    wanted = {first.turn.id: turns.TurnState.RUNNING, second.turn.id: turns.TurnState.SET_ASIDE}
    assert await states(store, "a", "b") == wanted


async def test_suspect_is_not_blamed_for_what_broke_off_before_and_runs_beside_it(
    store: Store, node: int
) -> None:
    await accept(store, "a")
    await crash(store, node, turns.MAX_ATTEMPTS - 2)
    await accept(store, "b")
    await crash(store, node, 1)
    assert {each.turn.tries for each in await claim(store, node)} == {2, turns.MAX_ATTEMPTS}
    await store.turns.recover(node, lambda _, now: now, NOW)
    (first,) = await claim(store, node)
    assert {first.turn.tries} == {turns.MAX_ATTEMPTS}
    assert turns.TurnState.SET_ASIDE not in (await states(store, "a", "b")).values()


async def test_suspects_that_cannot_be_told_apart_do_not_kill_for_ever(store: Store, node: int) -> None:
    await accept(store, "a", "b")
    for minute in range(2 * (turns.MAX_ATTEMPTS + turns.MOST_DOUBTS)):
        beside: list[turns.Turn] = []
        for second in range(2):
            now = NOW + timedelta(minutes=minute, seconds=second)
            for each in await claim(store, node, now, beside=beside):
                await store.turns.acquit(each)
                beside.append(acquitted(each))
        await store.turns.recover(node, lambda _, now: now, NOW + timedelta(minutes=minute))
    assert set((await states(store, "a", "b")).values()) == {turns.TurnState.SET_ASIDE}
    assert (await found(store, "a")).attempts <= turns.MAX_ATTEMPTS + turns.MOST_DOUBTS + 1


async def test_attempt_that_an_announced_stop_cuts_off_does_not_count(store_url: str) -> None:
    async with opened(store_url) as store:
        await accept(store, "a", "b")
    for _ in range(2 * turns.MAX_ATTEMPTS):
        async with opened(store_url) as store:
            node = await store.nodes.join("test", NOW)
            assert len(await claim(store, node)) == 2
            await store.nodes.announce_stop(node, NOW)
        async with opened(store_url) as store:
            await store.turns.recover(node, lambda _, now: now, NOW)
    async with opened(store_url) as store:
        turn = await found(store, "a")
    assert (turn.state, turn.tries, turn.doubts) == (turns.TurnState.QUEUED, 0, 0)


async def test_turn_that_is_claimed_after_the_stop_was_announced_is_excused_too(
    store: Store, node: int
) -> None:
    await store.nodes.announce_stop(node, NOW)
    await accept(store, "a")
    await crash(store, node, 1)
    assert (await found(store, "a")).tries == 0


async def test_announced_stop_excuses_nothing_in_the_next_life(store_url: str) -> None:
    async with opened(store_url) as store:
        await store.nodes.announce_stop(await store.nodes.join("test", NOW), NOW)
    async with opened(store_url) as store:
        node = await store.nodes.join("test", NOW)
        await accept(store, "a")
        await crash(store, node, turns.MAX_ATTEMPTS)
        assert await claim(store, node) == []
        assert await states(store, "a") == {"a": turns.TurnState.SET_ASIDE}


async def test_crashed_turn_was_interrupted_when_its_node_was_last_seen(
    store_url: str, edit_store: EditStore
) -> None:
    async with opened(store_url) as store:
        node = await store.nodes.join("test", NOW)
        await accept(store, "a")
        await claim(store, node)
    await edit_store("UPDATE lanes SET leased_until = leased_until - 7200000000")
    async with opened(store_url) as store:
        await store.turns.recover(node, lambda _, now: now, NOW)
        interrupted = (await found(store, "a")).interrupted_at
    assert interrupted is not None
    assert timedelta(hours=1, minutes=59) < NOW - interrupted < timedelta(hours=2, minutes=1)


async def test_turn_that_was_claimed_again_and_not_begun_was_interrupted_before(
    store: Store, node: int
) -> None:
    await accept(store, "a")
    await crash(store, node, 1)
    before = (await found(store, "a")).interrupted_at
    await claim(store, node, LATER)
    await store.turns.recover(node, lambda _, now: now, LATER + timedelta(hours=5))
    assert (await found(store, "a")).interrupted_at == before


async def test_what_broke_off_once_is_begun_again_all_at_once(store: Store, node: int) -> None:
    await accept(store, "a", "b", "c")
    await crash(store, node, 1)
    assert {each.turn.id for each in await claim(store, node)} == {"a", "b", "c"}


async def test_turn_that_has_ended_stays_ended(store: Store, node: int) -> None:
    await accept(store, "a")
    (begun,) = await claim(store, node)
    await store.turns.finish(begun, turns.Ending(state=turns.TurnState.DONE, holds_lane=True), NOW)
    notice = Delivery(
        id="d", lane=lanes.chat_lane(begun.turn.source), to=begun.turn.source, text="!", created_at=NOW
    )
    failed = turns.Ending(state=turns.TurnState.FAILED, deliveries=(notice,))
    await store.turns.finish(begun, failed, NOW)
    turn = await store.turns.find("a")
    assert turn is not None
    assert turn.state is turns.TurnState.DONE
    assert await store.deliveries.find("d") is None
    assert await store.turns.held(node) == set()


async def test_only_the_turn_that_breaks_off_alone_is_set_aside(store: Store, node: int) -> None:
    await in_doubt(store, node, "a", "b", "c")
    (culprit,) = await claim(store, node)
    await store.turns.recover(node, lambda _, now: now, NOW)
    for minute in range(1, 10):
        await finish(store, *await claim(store, node, NOW + timedelta(minutes=minute)))
    wanted = dict.fromkeys(("a", "b", "c"), turns.TurnState.DONE) | {
        culprit.turn.id: turns.TurnState.SET_ASIDE
    }
    assert await states(store, "a", "b", "c") == wanted


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
        await store.turns.recover(node, lambda _, now: now, NOW)
    assert await claim(store, node) == []
    rows = await store.transcripts.load("s")
    called_ids = [call["id"] for row in rows for call in row.get("tool_calls") or ()]
    assert [row["tool_call_id"] for row in rows if row["role"] == "tool"] == called_ids
    found = await store.sessions.find("s")
    assert found is not None
    assert found.entry.suspended
    assert found.entry.message_count == len(rows)
    # Tried again, it goes on where it was.
    assert await store.turns.retry("a", "ops", NOW, nothing)
    taken_up = await store.sessions.find("s")
    assert taken_up
    assert not taken_up.entry.suspended


async def test_what_was_taken_from_a_node_is_no_longer_held_by_it(store: Store, node: int) -> None:
    await accept(store, "a", "b")
    claims = await claim(store, node)
    assert await store.turns.held(node) == {each.lease for each in claims}
    await store.turns.recover(node, lambda _, now: now, NOW)
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
        assert await store.turns.renew([known.lease]) == {known.lease}
        assert (await store.nodes.left_behind(node))[1] == [node]
        recovered = await store.turns.recover(node, lambda _, now: now, NOW, overdue=True)
        assert [turn.id for turn in recovered] == [unknown.turn.id]
        assert (await store.nodes.left_behind(node))[1] == []
        assert await store.turns.held(node) == {known.lease}


async def test_lease_that_was_lost_is_not_renewed(store_url: str, edit_store: EditStore) -> None:
    async with opened(store_url) as store:
        node = await store.nodes.join("test", NOW)
        await accept(store, "a")
        (lost,) = await claim(store, node)
        await store.turns.recover(node, lambda _, now: now, NOW)
        await claim(store, node)
    await edit_store("UPDATE lanes SET leased_until = 1")
    async with opened(store_url) as store:
        assert await store.turns.renew([lost.lease]) == set()
        assert (await store.nodes.left_behind(node))[1] == [node]


async def set_aside(store: Store, node: int) -> None:
    """A turn that breaks off until it is set aside."""
    await accept(store, "a")
    await crash(store, node, turns.MAX_ATTEMPTS)
    assert await claim(store, node) == []
    assert await states(store, "a") == {"a": turns.TurnState.SET_ASIDE}


def telling(turn: turns.Turn) -> list[Delivery]:
    lane = lanes.chat_lane(turn.source)
    return [Delivery(id=f"{turn.id}-told", lane=lane, to=turn.source, text="told", created_at=NOW)]


async def logged(store: Store) -> list[tuple[str, str, str]]:
    rows = [row.entry for row in await store.confirmations.audit_newest(10)]
    return [(str(each.kind), each.actor, each.facts["turn"]) for each in rows]


async def test_turn_that_was_set_aside_is_tried_once_more_however_many_want_that(
    store: Store, node: int
) -> None:
    await set_aside(store, node)
    pressed = [store.turns.retry("a", f"ops{number}", NOW, telling) for number in range(8)]
    wanted = await asyncio.gather(*pressed)
    assert sorted(wanted) == [False] * 7 + [True]
    assert await logged(store) == [("turn_retried", f"ops{wanted.index(True)}", "a")]
    assert await store.deliveries.find("a-told")
    (again,) = await claim(store, node)
    assert (again.turn.tries, again.turn.is_suspect, again.turn.on_trial) == (turns.MAX_ATTEMPTS, True, True)
    await store.turns.recover(node, lambda _, now: now, NOW)  # it breaks off this time, too
    assert await claim(store, node) == []
    assert await states(store, "a") == {"a": turns.TurnState.SET_ASIDE}
    assert await store.turns.retry("a", "ops", NOW, nothing)
    await finish(store, *await claim(store, node))
    assert not await store.turns.retry("a", "ops", NOW, nothing)
    assert not await store.turns.give_up("a", "ops", NOW, nothing)
    assert await states(store, "a") == {"a": turns.TurnState.DONE}


async def test_turn_that_was_set_aside_is_given_up_or_tried_again_and_never_both(
    store: Store, node: int
) -> None:
    await set_aside(store, node)
    done = await asyncio.gather(
        store.turns.give_up("a", "ann", NOW, telling), store.turns.retry("a", "ben", NOW, nothing)
    )
    assert sorted(done) == [False, True]
    given_up = done[0]
    turn = await found(store, "a")
    assert turn.state is (turns.TurnState.FAILED if given_up else turns.TurnState.QUEUED)
    assert bool(await claim(store, node)) is not given_up
    assert await logged(store) == [
        ("turn_given_up", "ann", "a") if given_up else ("turn_retried", "ben", "a")
    ]
    assert bool(await store.deliveries.find("a-told")) is given_up
    assert turn.error == ("it was given up by ann" if given_up else None)
