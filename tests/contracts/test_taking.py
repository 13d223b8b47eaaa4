"""Messages that are claimed and begun in the transaction that takes them in."""

import asyncio
from datetime import UTC
from uuid import uuid4

import pytest

from frontdesk import plugins
from frontdesk.model import lanes, messages, turns
from frontdesk.model.lanes import Taker
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.resolution import Opening, Resolver
from frontdesk.model.turns import TurnState
from frontdesk.stores.store import Store
from tests import schemas
from tests.contracts import test_pipeline
from tests.contracts.test_pipeline import KEY, NOW, claim_one, make_delivery, make_session, make_turn, queue

store, node = test_pipeline.store, test_pipeline.node
DONE = turns.Ending(state=TurnState.DONE)
RESOLVER = Resolver(now=NOW, policy=SessionResetPolicy(), machine_zone=UTC, freshness=None)


def opening_of(turn: turns.Turn) -> Opening:
    row = {"role": "user", "content": turn.text}
    return Opening(RESOLVER, messages.pack(row, turn.id, 0), turn.text, row)


async def take_in(
    store: Store, node: int, turn: turns.Turn, *, admit: turns.Admission | None = None
) -> turns.Accepted:
    opening, taker = opening_of(turn), Taker(node=node)
    return await store.turns.accept(turn, lambda *_: admit or turns.Admission(), taker=taker, opening=opening)


async def test_message_is_claimed_and_begun_where_it_is_taken_in(store: Store, node: int) -> None:
    await make_session(store, told=True)
    before = await store.feed.end()
    accepted = await take_in(store, node, make_turn(1))
    claim = accepted.claim
    assert claim
    assert claim.session
    assert claim.begun == turns.Begun(position=1, message_count=1)
    assert claim.session.id == "s1"
    found = await store.turns.find("t1")
    assert found
    assert (found.state, found.attempts, found.session_id) == (TurnState.RUNNING, 1, "s1")
    assert (found.started_at, found.number) == (NOW, claim.turn.number)
    assert [row["content"] for row in await store.transcripts.load("s1")] == ["text 1"]
    told = (await store.feed.since(before, 10)).entries
    assert [(each.turn_id, each.state, each.session_id) for each in told] == [("t1", "running", "s1")]
    assert await claim_one(store, node) is None
    await store.turns.finish(claim, DONE, NOW)
    ended = await store.turns.find("t1")
    assert ended
    assert ended.state is TurnState.DONE


async def test_message_without_a_session_is_claimed_and_begun_by_itself(store: Store, node: int) -> None:
    accepted = await take_in(store, node, make_turn(1))
    claim = accepted.claim
    assert claim
    assert claim.begun is None
    assert claim.session is None
    await make_session(store)
    await store.turns.begin(claim, "s1", [messages.pack({"role": "user", "content": "hello"}, "t1", 0)], NOW)
    await store.turns.finish(claim, DONE, NOW)
    assert len(await store.transcripts.load("s1")) == 1


async def test_next_message_waits_for_the_one_that_was_begun(store: Store, node: int) -> None:
    first = await take_in(store, node, make_turn(1))
    second = await take_in(store, node, make_turn(2))
    assert first.claim
    assert second.claim is None
    assert (second.waiting, second.running) == (1, "t1")
    await store.turns.finish(first.claim, DONE, NOW)
    third = await take_in(store, node, make_turn(3))
    assert third.claim is None, "the second is before it"
    claimed = await claim_one(store, node)
    assert claimed
    assert claimed.turn.id == "t2"


async def test_message_is_not_begun_before_others_that_wait_elsewhere(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1, key=f"{KEY}:other"), queue)
    second = await take_in(store, node, make_turn(2))
    assert second.claim is None
    claims = await store.turns.claim(node, lanes.LaneKind.TURN, 10, NOW, lambda _: [])
    assert {claim.turn.id for claim in claims} == {"t1", "t2"}


async def test_control_command_is_begun_though_turns_wait(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1), queue)
    command = await take_in(store, node, make_turn(2, kind=turns.TurnKind.CONTROL))
    assert command.claim
    assert command.claim.lease.lane == lanes.control_lane(KEY)


async def test_same_event_is_not_begun_a_second_time(store: Store, node: int) -> None:
    first = await take_in(store, node, make_turn(1, event_id="e1"))
    assert first.claim
    await store.turns.finish(first.claim, DONE, NOW)
    again = await take_in(store, node, make_turn(2, event_id="e1"))
    assert (again.repeated, again.turn.id, again.claim) == (True, "t1", None)
    assert await store.turns.held(node) == set()
    third = await take_in(store, node, make_turn(3))
    assert third.claim, "nothing of the repeated one is left in the lane"


async def test_same_event_for_several_chats_at_once_is_begun_once(store: Store, node: int) -> None:
    same = [make_turn(number, event_id="same", key=f"{KEY}:{number}") for number in range(8)]
    accepted = await asyncio.gather(*(take_in(store, node, turn) for turn in same))
    claims = [each.claim for each in accepted if each.claim]
    claims += await store.turns.claim(node, lanes.LaneKind.TURN, 10, NOW, lambda _: [])
    assert len(claims) == 1
    assert sum(not each.repeated for each in accepted) == 1


async def test_what_was_begun_by_a_node_that_is_gone_is_run_again(store: Store, node: int) -> None:
    await make_session(store, told=True)
    await take_in(store, node, make_turn(1))
    await store.turns.recover(node, lambda *_: None, NOW)
    again = await claim_one(store, node)
    assert again
    assert (again.turn.id, again.turn.attempts) == ("t1", 2)


async def test_admission_that_is_told_is_told(store: Store, node: int) -> None:
    notice = make_delivery("d1")
    accepted = await take_in(store, node, make_turn(1), admit=turns.Admission(notices=(notice,)))
    assert accepted.claim
    assert [each.id for each in await store.deliveries.waiting(notice.lane, 10)] == ["d1"]


@pytest.mark.parametrize("taken", test_pipeline.TAKEN)
async def test_message_is_not_begun_while_others_decide_about_its_conversation(
    postgres_url: str, taken: str
) -> None:
    url = f"{postgres_url}?schema=test_{uuid4().hex}"
    async with await plugins.load_store(url)(url) as store, schemas.connected(url) as other:
        node = await store.nodes.join("test", NOW)
        await make_session(store, told=True)
        async with other.transaction():
            await other.execute(taken)
            accepted = await take_in(store, node, make_turn(1))
        assert accepted.claim
        assert accepted.claim.begun is None
