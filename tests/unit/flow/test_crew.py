"""How much a crew does at a time, and what becomes of what it has claimed when it is given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from frontdesk.contracts.bells import Bells, Topic
from frontdesk.contracts.clock import SystemClock
from frontdesk.flow.crew import Crew, Place

PATIENCE_SECONDS = 10.0


class Work:
    """A queue with a crew of so many places; its claims last until they are let go on."""

    def __init__(self, places: int, waiting: int) -> None:
        self._waiting = waiting
        self.claiming = asyncio.Event()
        self.may_claim = asyncio.Event()
        self.ends = asyncio.Event()
        self.under_way = 0
        self.most = 0
        self.begun: list[str] = []
        self.crew = Crew(Topic.TURNS, Bells(), SystemClock(), places, self._claim, self._do, self._next_due)

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


async def test_what_others_claim_gets_no_place_that_a_claim_under_way_may_fill() -> None:
    work = Work(places=2, waiting=2)
    async with working(work):
        await work.claiming.wait()
        for _ in range(2):
            claimed = asyncio.get_running_loop().create_future()
            claimed.set_result("handed over")
            if work.crew.has_room:
                work.crew.follow(claimed)
        work.may_claim.set()
        while "claimed" not in work.begun:
            await asyncio.sleep(0)
        assert work.most == 2


async def test_there_is_room_again_after_a_claim_that_found_nothing() -> None:
    work = Work(places=1, waiting=0)
    async with working(work):
        await work.claiming.wait()
        assert not work.crew.has_room
        work.may_claim.set()
        while not work.crew.has_room:
            await asyncio.sleep(0)
