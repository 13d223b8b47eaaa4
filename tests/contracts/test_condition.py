"""How a gateway fares, as every store tells it."""

from datetime import timedelta

from frontdesk import SessionStore
from frontdesk.model import lanes, turns
from frontdesk.model.chats import Cursor
from frontdesk.testing import SettableClock
from tests.contracts.samples import direct


async def write(service: SessionStore, clock: SettableClock, number: int, person: str) -> None:
    source = direct(person)
    key = await service.session_key_for(source)
    turn = turns.Turn(id=f"t{number}", session_key=key, source=source, text="x", received_at=clock.now())
    await service.store.turns.accept(turn, lambda *_: turns.Admission())


async def test_what_waits_is_told_with_how_long_it_has(service: SessionStore, clock: SettableClock) -> None:
    began = clock.now()
    for number, person in enumerate(("ann", "ann", "bob")):
        await write(service, clock, number, person)
        clock.advance(timedelta(minutes=1))
    (queue,) = await service.store.health.queues()
    assert (queue.kind, queue.items, queue.lanes, queue.oldest_at) == ("turn", 3, 2, began)
    deepest, other = await service.store.health.deepest()
    assert (deepest.items, deepest.lane) == (2, lanes.turn_lane(await service.session_key_for(direct("ann"))))
    assert other.items == 1


async def test_nodes_are_told_with_what_they_hold(service: SessionStore, clock: SettableClock) -> None:
    store = service.store
    first = await store.nodes.join("first", clock.now())
    await write(service, clock, 1, "ann")
    await store.turns.claim(first, lanes.LaneKind.TURN, 1, clock.now(), lambda _: ())
    (lease,) = await store.health.leases()
    assert (lease.node, lease.name, lease.kind) == (first, "first", "turn")
    (node,) = await store.nodes.census()
    assert (node.number, node.held, node.leased_until) == (first, 1, lease.until)
    assert node.alive is (None if store.nodes.is_alone else True)


async def test_last_sign_of_a_platform_is_told(service: SessionStore, clock: SettableClock) -> None:
    store = service.store
    assert await store.health.channels() == []
    await write(service, clock, 1, "ann")
    (heard,) = await store.health.channels()
    assert (heard.platform, heard.account, heard.at) == ("telegram", None, clock.now())
    await store.cursors.move("matrix", "shop", Cursor(value="s1"))
    assert [(each.platform, each.account) for each in await store.health.channels()] == [
        ("matrix", "shop"),
        ("telegram", None),
    ]


async def test_size_of_the_store_is_told(service: SessionStore, clock: SettableClock) -> None:
    before = await service.store.health.store()
    assert before.feed_since is None
    await write(service, clock, 1, "ann")
    after = await service.store.health.store()
    assert after.bytes >= before.bytes > 0
    assert after.feed_since == clock.now()
