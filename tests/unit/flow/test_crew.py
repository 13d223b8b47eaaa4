"""How much a crew does at a time, and what becomes of what it has claimed when it is given up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from frontdesk.contracts.bells import Bells, Topic
from frontdesk.contracts.clock import SystemClock
from frontdesk.flow.crew import Crew, Place

PATIENCE_SECONDS = 60.0


class Work:
    """A queue with a crew of so many places; its claims last until they are let go on."""

    def __init__(self, places: int, waiting: int, is_handed_work: bool = False) -> None:
        self._waiting = waiting
        self.claiming = asyncio.Event()
        self.may_claim = asyncio.Event()
        self.ends = asyncio.Event()
        self.under_way = 0
        self.most = 0
        self.begun: list[str] = []
        self.put_back: list[str] = []
        parts: Any = SimpleNamespace(store=SimpleNamespace(bells=Bells()), clock=SystemClock())
        self.crew = Crew(
            parts,
            Topic.TURNS,
            places,
            self._claim,
            self._do,
            self._put_back,
            self._next_due,
            is_handed_work=is_handed_work,
        )

    async def _claim(self, limit: int) -> list[str]:
        self.claiming.set()
        await self.may_claim.wait()
        taken = min(limit, self._waiting)
        self._waiting -= taken
        return ["claimed"] * taken

    async def _do(self, what: str, _: Place) -> None:
        self.begun.append(what)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.ends.wait()
        self.under_way -= 1

    async def _put_back(self, what: str) -> None:
        self.put_back.append(what)

    async def _next_due(self) -> None:
        return None


@asynccontextmanager
async def working(work: Work) -> AsyncIterator[None]:
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(work.crew.run())
        try:
            yield
        finally:
            work.may_claim.set()
            work.crew.close()
            await work.crew.abandon()


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never held")


@pytest.mark.parametrize(("is_handed_work", "begun"), [(False, ["claimed"] * 4), (True, ["handed over"] * 2)])
async def test_what_others_claim_gets_no_place_that_a_claim_under_way_may_fill(
    is_handed_work: bool, begun: list[str]
) -> None:
    work = Work(4, 10, is_handed_work)
    async with working(work):
        await work.claiming.wait()
        for _ in range(4):
            claimed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            claimed.set_result("handed over")
            if work.crew.has_room:
                work.crew.begin(None, claimed)
        work.may_claim.set()
        await eventually(lambda: len(work.begun) >= 4)
        assert (work.most, work.begun[: len(begun)]) == (4, begun)


async def test_there_is_room_again_after_a_claim_that_found_nothing() -> None:
    work = Work(places=1, waiting=0)
    async with working(work):
        await work.claiming.wait()
        assert not work.crew.has_room
        work.may_claim.set()
        await eventually(lambda: work.crew.has_room)


async def abandon_soon(work: Work) -> "asyncio.Task[None]":
    """The crew is being abandoned, and waits for what it cannot cut off."""
    work.crew.close()
    abandoning = asyncio.create_task(work.crew.abandon())
    for _ in range(3):
        await asyncio.sleep(0)
    return abandoning


async def test_what_is_being_claimed_when_the_crew_is_abandoned_is_put_back() -> None:
    work = Work(places=3, waiting=2)
    async with working(work):
        await work.claiming.wait()
        abandoning = await abandon_soon(work)
        work.may_claim.set()
        await abandoning
        assert (work.begun, work.put_back) == ([], ["claimed", "claimed"])


async def test_what_others_are_claiming_when_the_crew_is_abandoned_is_put_back() -> None:
    work = Work(places=1, waiting=0)
    work.may_claim.set()
    claiming: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    async with working(work):
        work.crew.begin(None, claiming)
        abandoning = await abandon_soon(work)
        claiming.set_result("handed over")
        await abandoning
        assert (work.begun, work.put_back) == ([], ["handed over"])


async def test_what_was_claimed_and_not_begun_when_the_crew_is_abandoned_is_put_back() -> None:
    work = Work(places=1, waiting=0)
    work.may_claim.set()
    async with working(work):
        work.crew.begin("handed over")
        work.crew.close()
        await work.crew.abandon()
        assert (work.begun, work.put_back) == ([], ["handed over"])
