"""Room for bodies: who waits for whom."""

import asyncio

import pytest

from frontdesk.web import bounds, keeping
from frontdesk.web.bounds import PortConnections, PortLimits
from frontdesk.web.keeping import KeptBodies
from tests.unit.test_bounds import FakeConnection


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "WAITING_SECONDS", 0.01)


async def test_sender_has_a_quarter_and_all_together_no_more_than_there_is() -> None:
    kept = KeptBodies(400)
    await kept.take(1, "ann", 60)
    await kept.take(2, "ann", 40)
    with pytest.raises(TimeoutError):
        await kept.take(3, "ann", 1)
    for number, sender in enumerate(("bob", "cid", "dan")):
        await kept.take(f"of others {number}", sender, 100)
    with pytest.raises(TimeoutError):
        await kept.take(4, "eve", 1)
    kept.let_go(1, rest=50)
    await kept.take(5, "ann", 10)


async def test_body_that_is_longer_than_a_part_is_taken_alone() -> None:
    kept = KeptBodies(400)
    await kept.take(1, "ann", 1000)
    kept.let_go(1)
    await kept.take(2, "ann", 1000)


async def test_who_waits_goes_on_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "WAITING_SECONDS", 60.0)
    kept = KeptBodies(400)
    await kept.take(1, "ann", 100)
    waiting = asyncio.create_task(kept.take(2, "ann", 100))
    await asyncio.sleep(0)
    kept.let_go(1)
    await waiting
    kept.let_go(2)
    await kept.take(3, "ann", 100)


async def test_connection_that_leaves_while_it_waits_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "WAITING_SECONDS", 60.0)
    port = PortConnections("test", PortLimits(kept_bytes=400), lambda: bounds.YOUNG_SECONDS)
    first, second, third = (FakeConnection() for _ in range(3))
    for each in (first, second, third):
        port.enter(each)
        port.prove(each, "ann")
    await port.take_room(first, 100)
    waiting = asyncio.create_task(port.take_room(second, 100))
    await asyncio.sleep(0)
    port.leave(second)
    port.release(first)
    await waiting
    await port.take_room(third, 100)
