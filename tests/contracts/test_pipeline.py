"""Turns and deliveries on every store: taken in once, worked on by one, in order."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from frontdesk import Platform, SessionSource, errors, plugins
from frontdesk.contracts.bells import Topic
from frontdesk.model import deliveries, lanes, messages, moves, policies, sessions, turns
from frontdesk.model.deliveries import Delivery, Settlement
from frontdesk.model.feed import News
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.resolution import Opening, Resolver
from frontdesk.stores.deliveries import FEW
from frontdesk.stores.feed import FEW as FEW_EVENTS
from frontdesk.stores.store import Store
from tests import schemas
from tests.contracts.conftest import EditStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = SessionSource(platform=Platform.WEBHOOK, chat_id="c1", user_id="u1", account="shop")
KEY = "agent:main:webhook@shop:dm:c1"
TAKEN = [
    "SELECT pg_advisory_xact_lock(hashtextextended(session_key, 0)) FROM routes",
    "SELECT 1 FROM sessions FOR UPDATE",
]
"""How somebody else decides about a conversation, or changes its session."""


def make_turn(number: int, *, event_id: str | None = None, key: str = KEY, **fields: object) -> turns.Turn:
    values = {"source": SOURCE, "received_at": NOW, "text": f"text {number}"} | fields
    return turns.Turn(id=f"t{number}", session_key=key, event_id=event_id, **values)  # type: ignore[arg-type]


def make_delivery(name: str, lane: str = "", **fields: object) -> Delivery:
    values = {"to": SOURCE, "text": name, "created_at": NOW} | fields
    return Delivery(id=name, lane=lane or lanes.chat_lane(SOURCE), **values)  # type: ignore[arg-type]


def queue(_running: turns.Turn | None, _waiting: int, _crowd: int) -> turns.Admission:
    return turns.Admission()


def nothing(_turn: turns.Turn) -> list[Delivery]:
    return []


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with AsyncExitStack() as opened:
        made: Store = await plugins.load_store(store_url)(store_url)
        opened.push_async_callback(made.close)
        yield made


@pytest.fixture
async def node(store: Store) -> int:
    return await store.nodes.join("test", NOW)


async def claim_one(
    store: Store, node: int, kind: lanes.LaneKind = lanes.LaneKind.TURN
) -> turns.TurnClaim | None:
    claims = await store.turns.claim(node, kind, 1, NOW, nothing)
    return claims[0] if claims else None


async def make_session(
    store: Store, session_id: str = "s1", key: str = KEY, *, told: bool = False
) -> sessions.Session:
    entry = sessions.SessionEntry(session_key=key, session_id=session_id, created_at=NOW, updated_at=NOW)
    session = sessions.Session(entry=entry, owner="me", peer="peer", started=told, reset_told=told)
    await store.sessions.settle(
        key,
        lambda _: moves.Start(session=session, ends=policies.EndReason.NEW),
        now=NOW,
        new_id=lambda: session_id,
    )
    return session


async def test_same_event_is_taken_in_once(store: Store) -> None:
    first = await store.turns.accept(make_turn(1, event_id="e1"), queue)
    second = await store.turns.accept(make_turn(2, event_id="e1"), queue)
    assert (first.repeated, second.repeated) == (False, True)
    assert second.turn.id == "t1"


async def test_same_event_id_of_another_account_is_another_message(store: Store) -> None:
    other = msg_source(account="other")
    await store.turns.accept(make_turn(1, event_id="e1"), queue)
    accepted = await store.turns.accept(make_turn(2, event_id="e1", source=other), queue)
    assert not accepted.repeated


def msg_source(**fields: object) -> SessionSource:
    values = {"platform": "webhook", "chat_id": "c1", "user_id": "u1", "account": "shop"} | fields
    return SessionSource(**values)  # type: ignore[arg-type]


async def test_second_message_waits_for_first_turn(store: Store, node: int) -> None:
    for number in (1, 2):
        await store.turns.accept(make_turn(number), queue)
    first = await claim_one(store, node)
    assert first is not None
    assert first.turn.id == "t1"
    assert await claim_one(store, node) is None
    await store.turns.finish(first, turns.Ending(state=turns.TurnState.DONE), NOW)
    second = await claim_one(store, node)
    assert second is not None
    assert second.turn.id == "t2"


async def test_turns_of_two_conversations_run_at_once(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1), queue)
    await store.turns.accept(make_turn(2, key=KEY + ":other"), queue)
    claims = await store.turns.claim(node, lanes.LaneKind.TURN, 10, NOW, nothing)
    assert {claim.turn.id for claim in claims} == {"t1", "t2"}


async def test_lane_that_is_due_without_a_turn_is_let_rest(
    store_url: str, store: Store, node: int, edit_store: EditStore
) -> None:
    await store.turns.accept(make_turn(1), queue)
    await store.close()
    await edit_store("DELETE FROM turns")
    async with await plugins.load_store(store_url)(store_url) as again:
        assert await again.turns.due(lanes.LaneKind.TURN, NOW, 10) == [None]
        assert await claim_one(again, node) is None
        assert await again.turns.next_due(lanes.LaneKind.TURN) is None
        assert await again.turns.due(lanes.LaneKind.TURN, NOW, 10) == []


@pytest.mark.parametrize("taken", TAKEN)
async def test_claim_begins_no_turn_whose_conversation_others_decide_about(
    postgres_url: str, taken: str
) -> None:
    url = f"{postgres_url}?schema=test_{uuid4().hex}"
    async with await plugins.load_store(url)(url) as store, schemas.connected(url) as other:
        node = await store.nodes.join("test", NOW)
        await make_session(store, told=True)
        resolver = Resolver(now=NOW, policy=SessionResetPolicy(), machine_zone=UTC, freshness=None)
        row = {"role": "user", "content": "hello"}
        for number, begins in ((1, False), (2, True)):
            await store.turns.accept(make_turn(number), queue)
            async with other.transaction():
                await other.execute("SELECT 1" if begins else taken)
                openings = {f"t{number}": Opening(resolver, messages.pack(row), f"text {number}", row)}
                (claim,) = await store.turns.claim(
                    node, lanes.LaneKind.TURN, 1, NOW, nothing, openings=openings
                )
            assert (claim.begun is not None) is begins
            await store.turns.finish(claim, turns.Ending(state=turns.TurnState.DONE), NOW)


async def test_control_command_does_not_wait(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1), queue)
    assert await claim_one(store, node)
    await store.turns.accept(make_turn(2, kind=turns.TurnKind.CONTROL), queue)
    control = await claim_one(store, node, lanes.LaneKind.CONTROL)
    assert control is not None
    assert control.turn.id == "t2"


async def test_turn_writes_rows_and_reply_and_delivery_together(store: Store, node: int) -> None:
    session = await make_session(store)
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    message = messages.pack({"role": "user", "content": "text 1"}, "t1", 0)
    begun = await store.turns.begin(claim, session.id, [message], NOW)
    assert (begun.position, begun.message_count) == (1, 1)
    reply = messages.pack({"role": "assistant", "content": "hello"}, "t1", 1)
    ending = turns.Ending(
        state=turns.TurnState.DONE,
        session_id="s1",
        messages=(reply,),
        usage=sessions.Usage(input_tokens=3),
        deliveries=(make_delivery("d1", turn_id="t1"),),
    )
    await store.turns.finish(claim, ending, NOW)
    assert [row["content"] for row in await store.transcripts.load("s1")] == ["text 1", "hello"]
    found = await store.turns.find("t1")
    assert found
    assert (found.state, found.session_id) == (turns.TurnState.DONE, "s1")
    assert [each.id for each in await store.deliveries.of_turn("t1")] == ["d1"]


async def test_lost_lease_writes_nothing(store: Store, node: int) -> None:
    session = await make_session(store)
    await store.turns.accept(make_turn(1), queue)
    stale = await claim_one(store, node)
    assert stale
    await store.turns.recover(node, lambda _, now: now, NOW)
    fresh = await claim_one(store, node)
    assert fresh
    assert fresh.turn.attempts == 2
    message = messages.pack({"role": "user", "content": "x"}, "t1", 0)
    with pytest.raises(errors.LeaseLost):
        await store.turns.begin(stale, session.id, [message], NOW)
    with pytest.raises(errors.LeaseLost):
        await store.turns.finish(stale, turns.Ending(state=turns.TurnState.DONE), NOW)
    assert await store.transcripts.load("s1") == []


async def test_recovered_turn_marks_its_session_to_be_resumed(store: Store, node: int) -> None:
    session = await make_session(store)
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    await store.turns.begin(
        claim, session.id, [messages.pack({"role": "user", "content": "x"}, "t1", 0)], NOW
    )
    recovered = await store.turns.recover(node, lambda _, now: now, NOW)
    assert [turn.id for turn in recovered] == ["t1"]
    entry = (await store.sessions.find("s1")).entry  # type: ignore[union-attr]
    assert entry.resume_pending
    assert entry.resume_reason == "restart_interrupted"
    again = await claim_one(store, node)
    assert again
    assert again.turn.session_id == "s1"
    await store.turns.finish(
        again, turns.Ending(state=turns.TurnState.DONE, session_id="s1", clears_mark=True), NOW
    )
    assert not (await store.sessions.find("s1")).entry.resume_pending  # type: ignore[union-attr]


async def test_turn_begun_too_often_is_set_aside_and_next_one_runs(store: Store, node: int) -> None:
    session = await make_session(store)
    for number in (1, 2):
        await store.turns.accept(make_turn(number), queue)
    for _ in range(turns.MAX_ATTEMPTS):
        claim = await claim_one(store, node)
        assert claim
        assert claim.turn.id == "t1"
        await store.turns.begin(
            claim, session.id, [messages.pack({"role": "user", "content": "x"}, "t1", 0)], NOW
        )
        await store.turns.recover(node, lambda _, now: now, NOW)
    told = [make_delivery("aside")]
    claims = await store.turns.claim(node, lanes.LaneKind.TURN, 1, NOW, lambda _: told)
    assert [claim.turn.id for claim in claims] == ["t2"]
    first = await store.turns.find("t1")
    assert first
    assert first.state is turns.TurnState.SET_ASIDE
    assert (await store.sessions.find("s1")).entry.suspended  # type: ignore[union-attr]
    assert await store.deliveries.find("aside")


async def test_turn_that_waited_for_people_is_never_set_aside_for_it(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1), queue)
    for _ in range(turns.MAX_ATTEMPTS + 2):
        claim = await claim_one(store, node)
        assert claim
        await store.turns.mark(claim, turns.TurnState.WAITING, NOW)
        await store.turns.recover(node, lambda _, now: now, NOW)
    again = await claim_one(store, node)
    assert again
    assert again.turn.tries == 1


async def test_requeued_turn_waits_until_it_is_due(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    await store.turns.requeue(claim, turns.Again(due_at=NOW + timedelta(seconds=5), error="busy"), NOW)
    assert await claim_one(store, node) is None
    later = await store.turns.claim(node, lanes.LaneKind.TURN, 1, NOW + timedelta(seconds=5), nothing)
    assert later[0].turn.attempts == 2


async def test_attempt_cut_short_by_us_does_not_count(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    await store.turns.requeue(claim, turns.Again(due_at=NOW, counts=False), NOW)
    again = await claim_one(store, node)
    assert again
    assert (again.turn.attempts, again.turn.put_backs) == (2, 1)


async def test_stop_reaches_running_turn_and_the_first_who_wanted_it_is_known(
    store: Store, node: int
) -> None:
    assert await store.turns.request_stop(KEY, NOW) is None
    await store.turns.accept(make_turn(1), queue)
    await claim_one(store, node)
    for name in ("Ann", "Bob"):
        stopped = await store.turns.request_stop(KEY, NOW, by=name)
        assert stopped
        assert (stopped.id, stopped.stopped_by) == ("t1", "Ann")
    (signals,) = await store.turns.signals(node)
    assert (signals.turn_id, signals.stop) == ("t1", True)


async def test_steering_message_is_absorbed_by_running_turn(store: Store, node: int) -> None:
    session = await make_session(store)
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    await store.turns.begin(
        claim, session.id, [messages.pack({"role": "user", "content": "a"}, "t1", 0)], NOW
    )
    await store.turns.accept(make_turn(2), lambda *_: turns.Admission(steers=True))
    (signals,) = await store.turns.signals(node)
    assert [turn.id for turn in signals.steering] == ["t2"]
    message = messages.pack({"role": "user", "content": "b"}, "t1", 1)
    await store.turns.record(claim, "s1", [message], NOW, signals.steering)
    await store.turns.finish(claim, turns.Ending(state=turns.TurnState.DONE, session_id="s1"), NOW)
    assert await claim_one(store, node) is None
    steered = await store.turns.find("t2")
    assert steered
    assert (steered.state, steered.session_id) == (turns.TurnState.DONE, "s1")


async def test_hung_turn_is_broken_off_over_its_holders_head(store: Store, node: int) -> None:
    for number in (1, 2):
        await store.turns.accept(make_turn(number), queue)
    hung = await claim_one(store, node)
    assert hung
    broken = await store.turns.break_off(hung.turn, turns.Ending(state=turns.TurnState.INTERRUPTED), NOW)
    assert broken
    assert broken.id == "t1"
    with pytest.raises(errors.LeaseLost):
        await store.turns.finish(hung, turns.Ending(state=turns.TurnState.DONE), NOW)
    following = await claim_one(store, node)
    assert following
    assert following.turn.id == "t2"


async def test_deliveries_of_a_chat_go_one_after_the_other(store: Store, node: int) -> None:
    await store.deliveries.add([make_delivery("d1"), make_delivery("d2")])
    (first,) = await store.deliveries.claim(node, 10, NOW)
    assert first.delivery.id == "d1"
    assert await store.deliveries.claim(node, 10, NOW) == []
    later = NOW + timedelta(seconds=9)
    retry = Settlement(state=deliveries.DeliveryState.PENDING, retry_at=later, error="500")
    await store.deliveries.settle(first, retry, NOW)
    assert await store.deliveries.claim(node, 10, NOW) == []
    (again,) = await store.deliveries.claim(node, 10, later)
    assert (again.delivery.id, again.delivery.attempts) == ("d1", 2)
    await store.deliveries.settle(again, Settlement(state=deliveries.DeliveryState.SENT), later)
    (second,) = await store.deliveries.claim(node, 10, later)
    assert second.delivery.id == "d2"


@pytest.mark.parametrize(("repeatable", "state"), [(True, "pending"), (False, "unknown")])
async def test_send_cut_off_is_repeated_only_where_that_does_no_harm(
    store: Store, node: int, repeatable: bool, state: str
) -> None:
    await store.deliveries.add([make_delivery("d1")])
    await store.deliveries.claim(node, 1, NOW)
    await store.turns.recover(node, lambda _, now: now if repeatable else None, NOW)
    found = await store.deliveries.find("d1")
    assert found
    assert found.state == state


async def test_dead_delivery_is_seen_and_sent_again(store: Store, node: int) -> None:
    await store.deliveries.add([make_delivery("d1")])
    (claim,) = await store.deliveries.claim(node, 1, NOW)
    await store.deliveries.settle(claim, Settlement(state=deliveries.DeliveryState.DEAD, error="gone"), NOW)
    assert [each.id for each in await store.deliveries.troubled(10)] == ["d1"]
    assert await store.deliveries.revive("d1", NOW)
    assert not await store.deliveries.revive("d1", NOW)
    assert [each.delivery.id for each in await store.deliveries.claim(node, 1, NOW)] == ["d1"]


async def test_collected_delivery_is_not_sent(store: Store, node: int) -> None:
    box = lanes.chat_lane(SOURCE, collects=True)
    await store.deliveries.add([make_delivery("d1", box)])
    assert await store.deliveries.claim(node, 10, NOW) == []
    assert [each.id for each in await store.deliveries.waiting(box, 10)] == ["d1"]
    assert await store.deliveries.collect(["d1", "d1", "nope"], NOW) == 1
    assert await store.deliveries.waiting(box, 10) == []


async def test_feed_tells_in_order_what_happened(store: Store, node: int) -> None:
    start = await store.feed.end()
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    await store.turns.finish(claim, turns.Ending(state=turns.TurnState.DONE), NOW)
    news = await store.feed.since(start, 100)
    assert [(change.turn_id, change.state) for change in news.entries] == [
        ("t1", "queued"),
        ("t1", "running"),
        ("t1", "done"),
    ]
    assert await store.feed.since(news.place, 100) == News([], news.place)


@pytest.mark.parametrize("most", [1, FEW, FEW + 1, 2 * FEW])
@pytest.mark.parametrize("there", [FEW - 1, FEW, FEW + 1, FEW + 5])
async def test_what_waits_in_a_box_is_found_however_much_there_is(
    store: Store, there: int, most: int
) -> None:
    box, names = lanes.chat_lane(SOURCE, collects=True), [f"d{number}" for number in range(there)]
    await store.deliveries.add([make_delivery(name, box) for name in names])
    assert [each.id for each in await store.deliveries.waiting(box, most)] == names[:most]


async def test_feed_is_read_on_however_much_there_is(store: Store) -> None:
    place, names = await store.feed.end(), [f"s{number}" for number in range(2 * FEW_EVENTS + 3)]
    for name in names:
        await store.feed.tell_checkpoint(NOW, session_id=name)
    found: list[str | None] = []
    for most in (1, FEW_EVENTS, FEW_EVENTS + 1, 100):
        news = await store.feed.since(place, most)
        assert len(news.entries) <= most
        found, place = found + [each.session_id for each in news.entries], news.place
    assert found == names


async def begun_turn(store: Store, node: int) -> turns.TurnClaim:
    await make_session(store)
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    await store.turns.begin(claim, "s1", [messages.pack({"role": "user", "content": "x"}, "t1", 0)], NOW)
    return claim


async def test_turn_that_has_ended_is_not_run_again(store: Store, node: int) -> None:
    claim = await begun_turn(store, node)
    ending = turns.Ending(state=turns.TurnState.DONE, session_id="s1", holds_lane=True)
    await store.turns.finish(claim, ending, NOW)
    again = turns.Again(due_at=NOW, counts=False, session_id="s1", resume_reason="restart_timeout")
    await store.turns.requeue(claim, again, NOW)
    turn, session = await store.turns.find("t1"), await store.sessions.find("s1")
    assert turn
    assert session
    assert (turn.state, session.entry.resume_pending) == (turns.TurnState.DONE, False)
    await store.turns.accept(make_turn(2), queue)
    assert await claim_one(store, node)


async def test_what_a_turn_used_is_kept_and_its_session_marked_when_it_is_put_back(
    store: Store, node: int
) -> None:
    claim = await begun_turn(store, node)
    usage = sessions.Usage(input_tokens=7)
    again = turns.Again(due_at=NOW, session_id="s1", usage=usage, resume_reason="restart_timeout")
    await store.turns.requeue(claim, again, NOW)
    entry = (await store.sessions.find("s1")).entry  # type: ignore[union-attr]
    assert (entry.input_tokens, entry.resume_pending, entry.resume_reason) == (7, True, "restart_timeout")


async def test_beginning_of_a_session_is_remembered(store: Store, node: int) -> None:
    await make_session(store)
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    row = messages.pack({"role": "user", "content": "x"}, "t1", 0)
    await store.turns.begin(claim, "s1", [row], NOW, starts=True)
    session = await store.sessions.find("s1")
    assert session
    assert (session.started, session.reset_told) == (True, True)


async def test_what_ended_long_ago_is_forgotten_and_nothing_else(store: Store, node: int) -> None:
    for number in (1, 2):
        await store.turns.accept(make_turn(number, event_id=f"e{number}"), queue)
    claim = await claim_one(store, node)
    assert claim
    ending = turns.Ending(state=turns.TurnState.DONE, deliveries=(make_delivery("d1"), make_delivery("d2")))
    await store.turns.finish(claim, ending, NOW)
    (sending,) = await store.deliveries.claim(node, 1, NOW)
    await store.deliveries.settle(sending, Settlement(state=deliveries.DeliveryState.SENT), NOW)
    later = NOW + timedelta(days=1)
    assert (await store.turns.prune(NOW, 10), await store.deliveries.prune(NOW, 10)) == (0, 0)
    assert (await store.turns.prune(later, 10), await store.deliveries.prune(later, 10)) == (1, 1)
    assert await store.turns.find("t1") is None
    assert await store.turns.find("t2")
    assert await store.deliveries.find("d2")


@pytest.mark.parametrize("collects", [True, False])
async def test_senders_are_called_for_what_is_sent_alone(store: Store, node: int, collects: bool) -> None:
    bell = store.bells.listen(Topic.DELIVERIES)
    await store.turns.accept(make_turn(1), queue)
    claim = await claim_one(store, node)
    assert claim
    answer = make_delivery("d1", lanes.chat_lane(SOURCE, collects=collects))
    await store.turns.finish(claim, turns.Ending(state=turns.TurnState.DONE, deliveries=(answer,)), NOW)
    assert await bell.wait(0) is not collects


async def test_what_nobody_collects_is_given_up_in_the_open(store: Store) -> None:
    await store.deliveries.add([make_delivery("d1", lanes.chat_lane(SOURCE, collects=True))])
    assert await store.deliveries.expire_boxes(NOW, NOW, 10) == 0
    assert await store.deliveries.expire_boxes(NOW, NOW + timedelta(days=1), 10) == 1
    assert [each.id for each in await store.deliveries.troubled(10)] == ["d1"]


async def tried_in_vain(store: Store, node: int, name: str, chat: str) -> Delivery:
    """A delivery that is to be tried again in an hour."""
    source = SessionSource(platform=Platform.WEBHOOK, chat_id=chat, user_id="u1", account="shop")
    await store.deliveries.add([make_delivery(name, lanes.chat_lane(source), to=source)])
    (claim,) = await store.deliveries.claim(node, 1, NOW)
    later = Settlement(
        state=deliveries.DeliveryState.PENDING, retry_at=NOW + timedelta(hours=1), error="away"
    )
    await store.deliveries.settle(claim, later, NOW)
    return claim.delivery


async def test_late_deliveries_are_listed_with_those_behind_them(store: Store, node: int) -> None:
    await store.deliveries.add([make_delivery("fresh", "chat:webhook::other:")])
    await store.deliveries.claim(node, 1, NOW)
    assert await store.deliveries.late(10) == []
    first = await tried_in_vain(store, node, "first", "a")
    await store.deliveries.add([make_delivery("behind", first.lane)])
    behind, late = await store.deliveries.late(10)
    assert (late.id, late.attempts, late.error, late.due_at) == ("first", 1, "away", NOW + timedelta(hours=1))
    assert (behind.id, behind.attempts, behind.error) == ("behind", 0, None)
    assert [each.id for each in await store.deliveries.late(1)] == ["behind"]
    assert await store.deliveries.troubled(10) == []
    (claim,) = await store.deliveries.claim(node, 1, NOW + timedelta(hours=2))
    assert claim.delivery.id == "first"
    assert {each.id for each in await store.deliveries.late(10)} == {"first", "behind"}


async def test_late_delivery_that_is_brought_forward_is_due_now(store: Store, node: int) -> None:
    late = [await tried_in_vain(store, node, f"d{chat}", f"c{chat}") for chat in range(3)]
    assert await store.deliveries.claim(node, 10, NOW) == []
    await store.deliveries.bring_forward(late[:2], NOW)
    claims = await store.deliveries.claim(node, 10, NOW)
    assert sorted(claim.delivery.id for claim in claims) == ["d0", "d1"]
    await store.deliveries.bring_forward(late, NOW)
    assert [claim.delivery.id for claim in await store.deliveries.claim(node, 10, NOW)] == ["d2"]
    for claim in claims:
        await store.deliveries.settle(claim, Settlement(state=deliveries.DeliveryState.SENT), NOW)
    await store.deliveries.bring_forward(late, NOW)
    assert await store.deliveries.claim(node, 10, NOW) == []
