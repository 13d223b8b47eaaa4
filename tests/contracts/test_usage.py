"""What turns came to, on every store: by day, and by how many messages their session had."""

from datetime import date, timedelta

import pytest

from frontdesk import SessionStore
from frontdesk.model import lanes, turns
from frontdesk.model.turns import TurnState, TurnTally
from frontdesk.model.usage import CurvePoint, UsageDay, bucket_of
from frontdesk.testing import SettableClock
from tests.contracts.samples import direct

EVER = (date(2000, 1, 1), date(2100, 1, 1))


class Worker:
    """Runs turns that come to something."""

    def __init__(self, service: SessionStore, clock: SettableClock) -> None:
        self.store, self._clock = service.store, clock
        self._service = service
        self._count = 0

    async def run(
        self, tally: TurnTally, state: TurnState = TurnState.DONE, *, retried: bool = False
    ) -> None:
        self._count += 1
        now, source = self._clock.now(), direct()
        key = await self._service.session_key_for(source)
        turn = turns.Turn(id=f"t{self._count}", session_key=key, source=source, text="x", received_at=now)
        await self.store.turns.accept(turn, lambda *_: turns.Admission())
        claimed = await self._claim()
        if retried:
            await self.store.turns.requeue(claimed, turns.Again(due_at=now, tally=tally), now)
            claimed = await self._claim()
        await self.store.turns.finish(claimed, turns.Ending(state=state, tally=tally), now)

    async def _claim(self) -> turns.TurnClaim:
        (claimed,) = await self.store.turns.claim(1, lanes.LaneKind.TURN, 1, self._clock.now(), lambda _: ())
        return claimed

    async def days(self) -> list[UsageDay]:
        return await self.store.usage.days(*EVER)

    async def curve(self, model: str | None = None) -> list[CurvePoint]:
        return await self.store.usage.curve(*EVER, model)


@pytest.fixture
def worker(service: SessionStore, clock: SettableClock) -> Worker:
    return Worker(service, clock)


async def test_turns_are_added_up_by_day_and_model(worker: Worker, clock: SettableClock) -> None:
    used = TurnTally(
        number=3, messages=2, tools=4, failures=1, input_tokens=10, output_tokens=5, cost_usd=0.5
    )
    await worker.run(used)
    await worker.run(used, TurnState.FAILED)
    await worker.run(TurnTally(number=12, messages=2, model="large"))
    clock.advance(timedelta(days=1))
    await worker.run(used)
    noted, points = await worker.days(), await worker.curve()
    first, large, second = noted
    assert (first.platform, first.model, first.turns, first.failed) == ("telegram", "", 2, 1)
    assert (first.messages, first.tools, first.failures) == (4, 8, 2)
    assert (first.input_tokens, first.output_tokens, first.cost_usd) == (20, 10, 1.0)
    assert (large.model, large.day) == ("large", first.day)
    assert second.day == first.day + timedelta(days=1)
    assert [(each.number, each.turns, each.error_rate) for each in points] == [(1, 3, 0.25), (11, 1, None)]
    await worker.store.usage.fold_all()
    assert (await worker.days(), await worker.curve()) == (noted, points)
    assert await worker.store.usage.fold(10) == 0
    await worker.run(used)
    assert [each.turns for each in await worker.days()] == [2, 1, 2]
    assert [each.number for each in await worker.curve("large")] == [11]
    assert await worker.store.usage.days(first.day, first.day) == [first, large]


@pytest.mark.parametrize("folded", [False, True])
async def test_turn_that_is_run_again_counts_once_with_all_that_it_used(worker: Worker, folded: bool) -> None:
    await worker.run(TurnTally(number=1, input_tokens=7), retried=True)
    if folded:
        await worker.store.usage.fold_all()
    (day,) = await worker.days()
    assert (day.turns, day.input_tokens) == (1, 14)


async def test_what_an_agent_makes_up_stands_in_nobodys_way(worker: Worker) -> None:
    for _ in range(3):
        await worker.run(TurnTally(number=2**53, input_tokens=2**53, cost_usd=1e300, model="a\0" * 1_000))
    await worker.store.usage.fold_all()
    (day,) = await worker.days()
    assert (day.turns, day.input_tokens, len(day.model)) == (3, 3 * 10**12, 100)
    assert await worker.store.usage.fold(10) == 0


def test_long_sessions_are_one_point() -> None:
    assert [bucket_of(number) for number in (0, 1, 10, 11, 1_000, 1_001, 10**9)] == [
        1,
        1,
        1,
        11,
        991,
        1001,
        1001,
    ]
