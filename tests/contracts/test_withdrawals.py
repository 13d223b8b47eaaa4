"""What a turn asked for and no longer waits for, on every store: it is withdrawn, and never carried out."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import errors, plugins
from frontdesk.contracts.confirmations import Redeemer, Redemption
from frontdesk.model import audit, lanes, turns
from frontdesk.model.confirmations import Confirmation, Settings, Status
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.asking import AGENT, CHAT, Asker, request

KEY = "agent:main:webhook@shop:dm:c1"
STOPPED = turns.Ending(state=turns.TurnState.INTERRUPTED)


class Desk(Asker):
    """Confirmations of turns that run here."""

    node: int = 0

    async def begin(self, turn_id: str, key: str = KEY) -> turns.TurnClaim:
        turn = turns.Turn(
            id=turn_id, session_key=key, source=CHAT, text="hello", received_at=self.clock.now()
        )
        await self.store.turns.accept(turn, lambda *_: turns.Admission())
        return await self.claim()

    async def claim(self) -> turns.TurnClaim:
        claims = await self.store.turns.claim(
            self.node, lanes.LaneKind.TURN, 1, self.clock.now(), lambda _: []
        )
        return claims[0]

    async def ask_in(self, claim: turns.TurnClaim, **fields: Any) -> Confirmation:
        return await self.ask(request(turn_id=claim.turn.id, session_key=claim.turn.session_key, **fields))

    async def withdraw(self, claim: turns.TurnClaim, lease: lanes.Lease | None = None) -> list[Confirmation]:
        now = self.clock.now()
        return [*await self.kept.withdraw(claim.turn.id, now, tell=self.tell, lease=lease)]

    async def use(self, asked: Confirmation, claim: turns.TurnClaim) -> Redemption:
        now = self.clock.now()
        redeemer = Redeemer(by=AGENT, claim=claim)
        return await self.kept.redeem(
            asked.id, asked.digest, redeemer, now, new_id=self.new_id, tell=self.tell
        )

    async def status(self, asked: Confirmation) -> Status:
        found = await self.kept.find(asked.id)
        assert found
        return found.status


@pytest.fixture
async def desk(store_url: str, clock: SettableClock) -> AsyncIterator[Desk]:
    store: Store = await plugins.load_store(store_url)(store_url)
    opened = Desk(store, clock)
    opened.node = await store.nodes.join("test", clock.now())
    yield opened
    await store.close()


async def test_withdrawn_request_is_over_and_says_why(desk: Desk) -> None:
    claim = await desk.begin("t1")
    asked = await desk.ask_in(claim)
    (withdrawn,) = await desk.withdraw(claim, claim.lease)
    assert withdrawn == await desk.kept.find(asked.id)
    assert (withdrawn.status, withdrawn.resolved_by) == (Status.EXPIRED, "system:withdrawn")
    assert desk.told[-1].is_withdrawn
    assert await desk.kinds() == [audit.AuditKind.SUBMITTED, audit.AuditKind.WITHDRAWN]
    assert await desk.withdraw(claim) == []


@pytest.mark.parametrize("approves", [True, False])
async def test_nothing_is_decided_about_what_was_withdrawn(desk: Desk, approves: bool) -> None:
    claim = await desk.begin("t1")
    asked = await desk.ask_in(claim)
    await desk.withdraw(claim)
    with pytest.raises(errors.Withdrawn, match="withdrawn") as caught:
        await desk.vote(asked, approves=approves)
    assert vars(caught.value)["status"] == "expired"
    assert (await desk.use(asked, claim)).refused == "expired"


async def test_only_what_waits_for_that_turn_is_withdrawn(desk: Desk) -> None:
    claim, other = await desk.begin("t1"), await desk.begin("t2", KEY + ":other")
    decided = await desk.vote(await desk.ask_in(claim, target="decided"))
    theirs, nobodys = await desk.ask_in(other), await desk.ask(request(target="nobody's"))
    assert await desk.withdraw(claim) == []
    assert await desk.status(decided) is Status.APPROVED
    assert [await desk.status(each) for each in (theirs, nobodys)] == [Status.PENDING] * 2


async def test_turn_does_not_join_what_another_turn_waits_for(desk: Desk) -> None:
    claim, other = await desk.begin("t1"), await desk.begin("t2", KEY + ":other")
    mine = await desk.ask(request(turn_id=claim.turn.id, session_key=KEY))
    theirs = await desk.ask(request(turn_id=other.turn.id, session_key=KEY))
    assert [ended.id for ended in await desk.withdraw(claim)] == [mine.id]
    assert (await desk.vote(theirs)).status is Status.APPROVED


async def test_withdrawn_request_uses_an_allowance(desk: Desk) -> None:
    """People were told of it: else one could tell them of as many as one stops."""
    one = Settings(rate_limit=1)
    claim = await desk.begin("t1")
    await desk.submit(request(turn_id=claim.turn.id, session_key=KEY), settings=one)
    await desk.withdraw(claim)
    with pytest.raises(errors.RateLimited):
        await desk.submit(request(turn_id=claim.turn.id, session_key=KEY), settings=one)


async def test_withdrawn_request_does_not_mute_the_next_one(desk: Desk) -> None:
    claim = await desk.begin("t1")
    asked = await desk.ask_in(claim)
    await desk.withdraw(claim)
    again = await desk.ask_in(claim)
    assert again.id != asked.id
    assert again.status is Status.PENDING


async def test_who_has_lost_the_turn_withdraws_nothing(desk: Desk) -> None:
    lost = await desk.begin("t1")
    asked = await desk.ask_in(lost)
    await desk.store.turns.recover(desk.node, lambda *_: None, desk.clock.now())
    now = await desk.claim()
    assert now.turn.id == lost.turn.id
    with pytest.raises(errors.LeaseLost):
        await desk.withdraw(lost, lost.lease)
    assert await desk.status(asked) is Status.PENDING


async def test_turn_that_goes_on_keeps_its_request(desk: Desk) -> None:
    """Running, waiting, or to be run again after its node died."""
    claim = await desk.begin("t1")
    asked = await desk.ask_in(claim)
    assert await desk.expire() == []
    await desk.store.turns.mark(claim, turns.TurnState.WAITING, desk.clock.now())
    assert await desk.expire() == []
    await desk.store.turns.recover(desk.node, lambda *_: None, desk.clock.now())
    assert await desk.expire() == []
    assert await desk.status(asked) is Status.PENDING


@pytest.mark.parametrize("state", sorted(turns.FINISHED))
async def test_request_of_a_turn_that_has_ended_is_swept(desk: Desk, state: turns.TurnState) -> None:
    claim = await desk.begin("t1")
    asked, other = await desk.ask_in(claim), await desk.ask(request(target="nobody's"))
    await desk.store.turns.finish(claim, turns.Ending(state=state), desk.clock.now())
    (swept,) = await desk.expire()
    assert (swept.id, swept.is_withdrawn) == (asked.id, True)
    assert await desk.status(other) is Status.PENDING
    assert (await desk.kinds())[-1] == audit.AuditKind.WITHDRAWN


async def test_overdue_request_of_a_turn_that_has_ended_ends_once(desk: Desk) -> None:
    claim = await desk.begin("t1")
    asked = await desk.ask_in(claim)
    await desk.store.turns.finish(claim, STOPPED, desk.clock.now())
    desk.clock.advance(seconds=asked.timeout_seconds)
    (swept,) = await desk.expire()
    assert not swept.is_withdrawn
    assert await desk.kinds() == [audit.AuditKind.SUBMITTED, audit.AuditKind.EXPIRED]


async def test_turn_that_goes_on_uses_its_grant(desk: Desk) -> None:
    claim = await desk.begin("t1")
    asked = await desk.vote(await desk.ask_in(claim))
    assert (await desk.use(asked, claim)).payload == asked.payload


async def test_stopped_turn_does_not_use_its_grant(desk: Desk) -> None:
    claim = await desk.begin("t1")
    asked = await desk.vote(await desk.ask_in(claim))
    await desk.store.turns.request_stop(KEY, desk.clock.now())
    redemption = await desk.use(asked, claim)
    assert (redemption.payload, redemption.refused) == (None, "stopped")
    assert (await desk.kinds())[-1] == audit.AuditKind.REDEEM_REFUSED


async def test_who_has_lost_the_turn_does_not_use_its_grant(desk: Desk) -> None:
    lost = await desk.begin("t1")
    asked = await desk.vote(await desk.ask_in(lost))
    await desk.store.turns.recover(desk.node, lambda *_: None, desk.clock.now())
    with pytest.raises(errors.LeaseLost):
        await desk.use(asked, lost)
    assert (await desk.use(asked, await desk.claim())).payload == asked.payload
