"""When a delivery that does not arrive is given up."""

import math
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from frontdesk import Platform, SessionSource
from frontdesk.contracts.channels import Capabilities
from frontdesk.flow.crew import ask
from frontdesk.flow.delivery import FEWEST_ATTEMPTS, MAX_WHY_CHARACTERS, Sender, Sending
from frontdesk.flow.pacing import Pacing
from frontdesk.flow.parts import Parts
from frontdesk.model.deliveries import Delivery, DeliveryClaim, DeliveryState, NotSent, Outcome, Settlement
from frontdesk.model.lanes import Lease
from frontdesk.model.running import Running
from frontdesk.testing.clock import SettableClock

CREATED = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
AWAY = NotSent(why="away")


class Ledger:
    """Keeps what became of deliveries."""

    def __init__(self) -> None:
        self.settled: list[Settlement] = []

    async def settle(self, claim: DeliveryClaim, settlement: Settlement, now: datetime) -> None:
        self.settled.append(settlement)


async def settlement_of(attempts: int, age: timedelta, outcome: Outcome | None = AWAY) -> Settlement:
    """What is decided about a delivery that ends so."""

    async def send(_: Delivery) -> Outcome | None:
        return outcome

    ledger = Ledger()
    parts: Any = SimpleNamespace(
        clock=SettableClock(CREATED + age),
        elapsed=lambda: 0.0,
        running=Running(delivery_max_age_seconds=DAY.total_seconds()),
        store=SimpleNamespace(nodes=SimpleNamespace(standing=0), deliveries=ledger),
        channel_of=lambda _: SimpleNamespace(send=send),
        try_again_at=lambda *_: None,
        capabilities_of=lambda _: Capabilities(),
        pacing=Pacing(lambda: 0.0),
    )
    to = SessionSource(platform=Platform.TELEGRAM, chat_id="1")
    delivery = Delivery(id="d", lane="chat:1", to=to, text="x", created_at=CREATED, attempts=attempts)
    lease = Lease(lane="chat:1", node=1, token=1)
    sending = Sending(
        cast(Parts, parts), DeliveryClaim(delivery=delivery, lease=lease), ask(cast(Parts, parts))
    )
    await Sender(cast(Parts, parts)).send(sending)
    (settled,) = ledger.settled
    return settled


@pytest.mark.parametrize(
    ("attempts", "age", "state"),
    [
        (1, timedelta(0), DeliveryState.PENDING),
        (300, DAY, DeliveryState.PENDING),
        (300, DAY * 2, DeliveryState.DEAD),
        (FEWEST_ATTEMPTS, DAY * 2, DeliveryState.DEAD),
        (FEWEST_ATTEMPTS - 1, DAY * 2, DeliveryState.PENDING),
        (1, DAY * 300, DeliveryState.PENDING),
    ],
)
async def test_old_delivery_is_given_up_after_some_attempts(
    attempts: int, age: timedelta, state: DeliveryState
) -> None:
    assert (await settlement_of(attempts, age)).state is state


async def test_next_attempt_comes_later_each_time() -> None:
    delays = []
    for attempts in range(1, FEWEST_ATTEMPTS):
        retry_at = (await settlement_of(attempts, DAY * 2)).retry_at
        assert retry_at is not None
        delays.append(retry_at - CREATED - DAY * 2)
    assert delays == [timedelta(seconds=2**number) for number in range(FEWEST_ATTEMPTS - 1)]


async def next_pause(attempts: int, waited: float) -> float:
    retry_at = (await settlement_of(attempts, timedelta(seconds=waited))).retry_at
    assert retry_at is not None
    return (retry_at - CREATED).total_seconds() - waited


@pytest.mark.parametrize("outage_seconds", [10, 60, 600, 1800])
async def test_receiver_that_is_back_is_tried_soon(outage_seconds: int) -> None:
    waited, attempts = 0.0, 1
    while waited < outage_seconds:
        waited += await next_pause(attempts, waited)
        attempts += 1
    assert waited - outage_seconds <= max(5.0, outage_seconds / 5)
    assert attempts <= 60


@pytest.mark.parametrize(
    ("asked", "seconds"), [(50.0, 50.0), (0.0, 1.0), (7200.0, 7200.0), (1e300, DAY.total_seconds())]
)
async def test_wait_that_the_platform_asks_for_is_kept(asked: float, seconds: float) -> None:
    settled = await settlement_of(1, timedelta(0), NotSent(why="wait", retry_after_seconds=asked))
    assert settled.retry_at == CREATED + timedelta(seconds=seconds)


@pytest.mark.parametrize("asked", [None, math.nan, -5.0])
async def test_wait_that_makes_no_sense_is_not_kept(asked: float | None) -> None:
    settled = await settlement_of(1, timedelta(0), NotSent(why="wait", retry_after_seconds=asked))
    assert settled.retry_at == CREATED + timedelta(seconds=1)


async def test_channel_that_gives_no_outcome_has_perhaps_sent() -> None:
    settled = await settlement_of(1, timedelta(0), None)
    assert settled.state is DeliveryState.UNKNOWN


async def test_what_a_platform_says_is_kept_in_bounds() -> None:
    settled = await settlement_of(1, timedelta(0), NotSent(why="x\0" * 10_000))
    assert len(settled.error or "") == MAX_WHY_CHARACTERS


async def test_pause_never_grows_beyond_five_minutes() -> None:
    assert await next_pause(300, 80_000.0) == 300.0
