"""Pages of turns, deliveries and the audit log on every store."""

from datetime import timedelta

import pytest

from frontdesk import SessionStore, Viewer
from frontdesk.model import lanes, turns
from frontdesk.model.audit import AuditKind
from frontdesk.model.deliveries import Delivery, DeliveryState, Settlement
from frontdesk.model.lists import LISTED_CHARACTERS, ListedAudit, ListedDeliveries, ListedTurns
from frontdesk.stores import loading
from frontdesk.stores.lists import working
from frontdesk.testing import SettableClock
from tests.contracts.asking import ANN, Asker, request
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import LASTING, direct
from tests.contracts.weighing import WeighingEngine

ALL = Viewer.everything()


class Bench:
    """A store with somebody who writes, runs and sends."""

    def __init__(self, service: SessionStore, clock: SettableClock) -> None:
        self.service, self.store, self.clock = service, service.store, clock
        self.node = 0

    async def join(self) -> None:
        self.node = await self.store.nodes.join("test", self.clock.now())

    async def write(self, number: int, person: str = "ann", text: str = "hello") -> None:
        source = direct(person)
        turn = turns.Turn(
            id=f"t{number}",
            session_key=await self.service.session_key_for(source),
            source=source,
            text=text,
            content=[{"type": "text", "text": text}],
            received_at=self.clock.now(),
        )
        await self.store.turns.accept(turn, lambda *_: turns.Admission())

    async def claim(self) -> turns.TurnClaim:
        now = self.clock.now()
        (claimed,) = await self.store.turns.claim(self.node, lanes.LaneKind.TURN, 1, now, lambda _: ())
        return claimed

    async def send(
        self, name: str, state: DeliveryState | None, person: str = "ann", text: str | None = None
    ) -> None:
        source, now = direct(person), self.clock.now()
        entry = await self.service.get_or_create_session(source)
        letter = Delivery(
            id=name,
            lane=lanes.chat_lane(source),
            to=source,
            text=text or name,
            session_id=entry.session_id,
            session_key=entry.session_key,
            created_at=now,
        )
        await self.store.deliveries.add([letter])
        if state:
            (taken,) = await self.store.deliveries.claim(self.node, 1, now)
            later = now + timedelta(hours=1) if state is DeliveryState.PENDING else None
            await self.store.deliveries.settle(
                taken, Settlement(state=state, error="no", retry_at=later), now
            )

    async def turns(self, wanted: ListedTurns, viewer: Viewer = ALL) -> list[str]:
        page = await self.store.lists.turns(viewer, wanted)
        assert page.next is None
        return [each.id for each in page.items]

    async def deliveries(self, wanted: ListedDeliveries, viewer: Viewer = ALL) -> list[str]:
        page = await self.store.lists.deliveries(viewer, wanted)
        assert page.next is None
        return [each.id for each in page.items]


@pytest.fixture
async def bench(service: SessionStore, clock: SettableClock) -> Bench:
    made = Bench(service, clock)
    await made.join()
    return made


async def test_turns_are_listed_by_what_becomes_of_them(bench: Bench) -> None:
    for number in (1, 2, 3):
        await bench.write(number)
    running = await bench.claim()
    assert await bench.turns(ListedTurns.WAITING) == ["t3", "t2"]
    assert await bench.turns(ListedTurns.RUNNING) == ["t1"]
    ended = turns.Ending(state=turns.TurnState.SET_ASIDE, error="begun too often")
    await bench.store.turns.finish(running, ended, bench.clock.now())
    page = await bench.store.lists.turns(ALL, ListedTurns.SET_ASIDE)
    (aside,) = page.items
    assert aside.turn is not None
    assert (aside.turn.error, aside.turn.attempts, aside.lane) == ("begun too often", 1, running.lease.lane)
    assert await bench.turns(ListedTurns.RECENT) == ["t3", "t2", "t1"]


async def test_pages_of_turns_follow_each_other(bench: Bench) -> None:
    for number in range(5):
        await bench.write(number)
    for wanted in (ListedTurns.WAITING, ListedTurns.RECENT):
        first = await bench.store.lists.turns(ALL, wanted, 3)
        second = await bench.store.lists.turns(ALL, wanted, 3, first.next)
        assert [each.id for each in (*first.items, *second.items)] == ["t4", "t3", "t2", "t1", "t0"]
        assert second.next is None


async def test_work_is_counted_as_far_as_one_wants_and_the_oldest_is_the_oldest(
    bench: Bench, clock: SettableClock
) -> None:
    begun = clock.now()
    for number in range(6):
        await bench.write(number)
        clock.advance(timedelta(minutes=1))
    await bench.claim()
    found = await bench.store.lists.count_turns(ALL, 100)
    assert (found.queued, found.running, found.waiting, found.set_aside) == (5, 1, 0, 0)
    assert found.oldest_at == begun + timedelta(minutes=1)
    few = await bench.store.lists.count_turns(ALL, 3)
    assert (few.queued, few.oldest_at) == (3, found.oldest_at)
    first = clock.now()
    for number in range(4):
        await bench.send(f"dead{number}", DeliveryState.DEAD)
        clock.advance(timedelta(minutes=1))
    await bench.send("unsure", DeliveryState.UNKNOWN, "bob")
    await bench.send("late", DeliveryState.PENDING, "cid")
    await bench.send("behind", None, "cid")
    await bench.send("first", None, "dan")
    counts = await bench.store.lists.count_deliveries(ALL, 100)
    assert (counts.dead, counts.unsure, counts.late, counts.waiting) == (4, 1, 2, 1)
    assert (await bench.store.lists.count_deliveries(ALL, 2)).dead == 2
    own = await bench.service.viewer_for(direct("bob"))
    theirs = await bench.store.lists.count_deliveries(own, 100)
    assert (theirs.dead, theirs.unsure, theirs.late, theirs.waiting) == (0, 1, 0, 0)
    assert (await bench.store.lists.count_turns(own, 100)).oldest_at is None
    assert list((await bench.store.deliveries.count_troubled(100)).values()) == [(5, first)]
    assert list((await bench.store.deliveries.count_troubled(3)).values()) == [(3, first)]
    ((late, _),) = (await bench.store.deliveries.count_late(100)).values()
    assert late == 2


async def test_pages_of_turns_do_not_tell_how_many_others_have(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "TURNS_LOOKED_AT", 5)
    for person in ("ann", "bob"):
        await bench.service.get_or_create_session(direct(person))
    own = await bench.service.viewer_for(direct("ann"))
    for number in range(18):
        await bench.write(number, "ann" if number in (2, 14) else "bob")
    first = await bench.store.lists.turns(own, ListedTurns.RECENT)
    assert [each.id for each in first.items] == ["t14"]
    second = await bench.store.lists.turns(own, ListedTurns.RECENT, after=first.next)
    assert (second.items, second.next) == ([], None)
    for number in range(18, 30):
        await bench.write(number, "bob")
    page = await bench.store.lists.turns(own, ListedTurns.RECENT)
    assert (page.items, page.next) == ([], None)
    nobody = await bench.store.lists.turns(Viewer(frozenset()), ListedTurns.RECENT)
    assert (nobody.items, nobody.next) == ([], None)


async def test_people_are_shown_their_own_work_alone(bench: Bench) -> None:
    for number, person in enumerate(("ann", "bob")):
        await bench.service.get_or_create_session(direct(person))
        await bench.write(number, person)
        await bench.send(person, DeliveryState.DEAD, person)
    own = await bench.service.viewer_for(direct("bob"))
    assert await bench.turns(ListedTurns.WAITING, own) == ["t1"]
    assert await bench.turns(ListedTurns.RECENT, own) == ["t1"]
    assert await bench.deliveries(ListedDeliveries.DEAD, own) == ["bob"]
    assert await bench.deliveries(ListedDeliveries.DEAD, Viewer(frozenset())) == []
    assert await bench.turns(ListedTurns.RECENT, Viewer(frozenset())) == []


async def test_deliveries_are_listed_by_what_became_of_them(bench: Bench) -> None:
    await bench.send("dead", DeliveryState.DEAD)
    await bench.send("unsure", DeliveryState.UNKNOWN)
    await bench.send("late", DeliveryState.PENDING)
    await bench.send("behind", None)
    await bench.send("waiting", None, "bob")
    assert await bench.deliveries(ListedDeliveries.DEAD) == ["dead"]
    assert await bench.deliveries(ListedDeliveries.UNSURE) == ["unsure"]
    assert await bench.deliveries(ListedDeliveries.LATE) == ["behind", "late"]
    assert await bench.deliveries(ListedDeliveries.WAITING) == ["waiting"]


async def test_discarded_delivery_is_never_sent_and_the_log_says_by_whom(bench: Bench) -> None:
    await bench.send("d1", DeliveryState.DEAD)
    now = bench.clock.now()
    assert await bench.store.deliveries.discard("d1", ANN, now)
    assert not await bench.store.deliveries.discard("d1", ANN, now)
    assert not await bench.store.deliveries.revive("d1", now)
    assert await bench.deliveries(ListedDeliveries.DEAD) == []
    assert await bench.deliveries(ListedDeliveries.DISCARDED) == ["d1"]
    page = await bench.store.lists.audit(ListedAudit(kind=AuditKind.DELIVERY_DISCARDED))
    (row,) = page.items
    assert (row.entry.actor, row.entry.facts) == (ANN, {"delivery": "d1"})
    assert await bench.store.deliveries.prune(now + timedelta(days=1), 10) == 1
    assert await bench.deliveries(ListedDeliveries.DISCARDED) == []


async def test_turn_that_cannot_be_read_is_listed_all_the_same(
    open_session_store: OpenSessionStore, edit_store: EditStore, clock: SettableClock
) -> None:
    bench = Bench(await open_session_store(LASTING), clock)
    await bench.write(1)
    await bench.service.close()
    await edit_store("UPDATE turns SET body = X'7b'", postgresql="UPDATE turns SET body = '\\x7b'")
    again = await open_session_store(LASTING)
    (found,) = (await again.store.lists.turns(ALL, ListedTurns.WAITING)).items
    assert (found.id, found.turn) == ("t1", None)


async def test_audit_log_is_read_backwards_and_filtered(service: SessionStore, clock: SettableClock) -> None:
    asker = Asker(service.store, clock)
    asked = [(await asker.submit(request(f"deploy {number}"))).confirmation for number in range(3)]
    await asker.vote(asked[0])
    lists = service.store.lists
    first = await lists.audit(ListedAudit(), 2)
    second = await lists.audit(ListedAudit(), 2, first.next)
    assert [row.number for row in (*first.items, *second.items)] == [4, 3, 2, 1]
    of_ann = await lists.audit(ListedAudit(actor=ANN))
    assert [row.entry.kind for row in of_ann.items] == [AuditKind.APPROVED]
    about = await lists.audit(ListedAudit(confirmation_id=asked[1].id))
    assert [row.entry.kind for row in about.items] == [AuditKind.SUBMITTED]


@pytest.mark.parametrize("held", [loading.GIVEN_BYTES, 5_000], ids=["at once", "in slices"])
async def test_lists_have_only_the_beginning_of_what_somebody_wrote(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(loading, "GIVEN_BYTES", held)
    for number in range(5):
        await bench.write(number, text=str(number) * 3_000)
    beginnings = [str(number) * (LISTED_CHARACTERS + 1) for number in (4, 3, 2, 1, 0)]
    page = await bench.store.lists.turns(ALL, ListedTurns.WAITING)
    assert [each.turn and each.turn.text for each in page.items] == beginnings
    assert [each.turn and each.turn.content for each in page.items] == [None] * 5
    whole = await bench.store.lists.turns(ALL, ListedTurns.RECENT, whole=True)
    assert [each.turn and len(each.turn.text) for each in whole.items] == [3_000] * 5
    opened = await bench.store.lists.open_turns((await bench.claim()).turn.session_key, 3)
    assert [turn.text for turn in opened] == beginnings[:1:-1]
    for number in range(3):
        await bench.send(str(number), None, text=str(number) * 3_000)
    sent = await bench.store.lists.deliveries(ALL, ListedDeliveries.WAITING)
    assert [each.text for each in sent.items] == beginnings[2:]
    sent = await bench.store.lists.deliveries(ALL, ListedDeliveries.WAITING, whole=True)
    assert [len(each.text) for each in sent.items] == [3_000] * 3


async def test_list_holds_no_more_of_the_store_at_once_than_may_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "GIVEN_BYTES", 20_000)
    for number in range(8):
        await bench.write(number, text="x" * 3_000)
        await bench.send(str(number), None, text="x" * 6_000)
    engine = WeighingEngine(bench.store.lists._engine)
    lists = type(bench.store.lists)(engine)
    await lists.turns(ALL, ListedTurns.WAITING)
    await lists.turns(ALL, ListedTurns.RECENT)
    await lists.deliveries(ALL, ListedDeliveries.WAITING)
    assert sum(engine.answers) > 3 * 8 * 6_000
    assert max(engine.answers) <= 20_000


def test_list_reads_no_more_at_once_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "GIVEN_BYTES", 100)
    sizes = [(5, 40), (4, 60), (3, 1), (2, 500), (1, 99)]
    assert list(loading.slices_of(sizes)) == [[5, 4], [3], [2], [1]]
