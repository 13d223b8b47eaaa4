"""A crew: claims work of one kind and does it, so much at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Generic, TypeVar

from frontdesk import errors
from frontdesk.contracts.bells import Bells, Topic
from frontdesk.contracts.clock import Clock
from frontdesk.logs import get_logger

T = TypeVar("T")

IDLE_SECONDS = 5.0
"""Until another look when nothing waits."""
LONGEST_WAIT_SECONDS = 1.0
"""And when something is due later, since the clock may be set, or where there are other nodes: they ring for
themselves first, and do what they have no room for later than this one could."""
SHORTEST_WAIT_SECONDS = 0.01
STORE_PAUSE_SECONDS = 0.5
LAST_CLAIM_SECONDS = 5.0
"""How long a claim that is under way is waited for when the crew is abandoned."""

log = get_logger(__name__)


class Place:
    """What a piece of work takes up of its crew. It can be lent to others for as long as the work only waits.

    Whoever has waited goes on at once, although another may have the place by then: nothing new is begun
    until there is room again.
    """

    def __init__(self, tell: Callable[["Place"], None] | None = None) -> None:
        """``tell`` is called when it is lent and given back; without it, it is a place in no crew."""
        self._tell = tell
        self.is_begun = False
        self.is_lent = False

    @contextmanager
    def lent(self) -> Iterator[None]:
        """The place is free for others; when the crew closes, what waits in here is ended at once."""
        self._pass_on(True)
        try:
            yield
        finally:
            self._pass_on(False)

    def _pass_on(self, is_lent: bool) -> None:
        self.is_lent = is_lent
        if self._tell:
            self._tell(self)


class Crew(Generic[T]):
    def __init__(
        self,
        topic: Topic,
        bells: Bells,
        clock: Clock,
        places: int,
        claim: Callable[[int], Awaitable[Sequence[T]]],
        work: Callable[[T, Place], Awaitable[None]],
        put_back: Callable[[T], Awaitable[None]],
        next_due: Callable[[], Awaitable[datetime | None]],
    ) -> None:
        self._topic = topic
        self._bells = bells
        self._clock = clock
        self._places = places
        self._claim = claim
        self._work = work
        self._put_back = put_back
        self._next_due = next_due
        self._closing = False
        self._emptying = False
        self._abandoned = False
        self._ended = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], Place] = {}
        self._taken = 0
        self._reserved = 0
        """How many places a claim that is under way may fill."""
        self._bell = bells.listen(topic)

    async def run(self) -> None:
        """Work until told to close; what was claimed by then is still done."""
        try:
            while not self._closing:
                try:
                    if not await self._take():
                        await self._wait()
                except errors.StoreError as error:
                    log.warning("store_troubled", crew=str(self._topic), why=str(error))
                    await asyncio.sleep(STORE_PAUSE_SECONDS)
                except Exception:
                    log.exception("crew_failed", crew=str(self._topic))
                    await asyncio.sleep(STORE_PAUSE_SECONDS)
            with suppress(errors.StoreError):
                await self._empty()
        finally:
            self._bell.silence()
            self._ended.set()

    async def _take(self) -> bool:
        """Claim as much as there is room for; whether there may be more than that."""
        # While the store is asked, turns that end look for room for their answers, and what is claimed here
        # would come on top of those. So these places are kept until it is known how many are filled.
        self._reserved = free = self._free
        try:
            claimed = await self._claim(free) if free else ()
        finally:
            self._reserved = 0
        for each in claimed:
            self.begin(each)
        filled = bool(claimed) and len(claimed) == free
        if filled:
            self._bells.ring(self._topic)  # let the others know
        return filled

    def begin(self, claimed: T | None, claiming: "asyncio.Future[T | None] | None" = None) -> None:
        """Do what was claimed, or what somebody else is claiming, if they get it. It has its place from now
        on, so that it is not forgotten when the crew is emptied meanwhile."""
        place = Place(self._passed_on)
        task = asyncio.create_task(self._do(claimed, claiming, place))
        self._tasks[task] = place
        self._taken += 1
        task.add_done_callback(self._done)

    @property
    def has_room(self) -> bool:
        """Whether something that was claimed elsewhere can be done here at once."""
        return self._free > self._reserved and not self._closing

    async def _empty(self) -> None:
        """Do what is due, and what becomes due by that."""
        while self._emptying:
            await self._take()
            if not self._tasks:
                return
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    @property
    def _free(self) -> int:
        """How many places nobody has."""
        return max(self._places - self._taken, 0)

    async def _do(self, claimed: T | None, claiming: "asyncio.Future[T | None] | None", place: Place) -> None:
        """The outermost door of the work: whatever gets here is a fault of ours."""
        place.is_begun = True
        try:
            if claiming:
                claimed = await _outlast(claiming)
            if claimed is not None:
                await (self._put_back(claimed) if self._abandoned else self._work(claimed, place))
        except Exception:
            log.exception("work_failed", crew=str(self._topic))

    def _done(self, task: "asyncio.Task[None]") -> None:
        full = not self._free
        del self._tasks[task]
        self._taken -= 1
        if full:
            self._bells.ring(self._topic, far=False)

    def _passed_on(self, place: Place) -> None:
        """Somebody only waits from now on, or goes on."""
        self._taken += -1 if place.is_lent else 1
        if place.is_lent and self._closing:
            self._let_go([place])
        elif place.is_lent and self._free == 1:
            self._bells.ring(self._topic, far=False)

    def _let_go(self, places: Collection[Place]) -> None:
        """End what only waits: it goes on elsewhere, or later."""
        for task, place in self._tasks.items():
            if place in places:
                task.cancel()

    async def _wait(self) -> None:
        """Wait for a bell, or until something is due. Who was not called looks before anything is claimed:
        a claim locks, and nobody should wait for one that finds nothing."""
        while not self._closing:
            due = await self._next_due() if self._free else None
            if await self._bell.wait(self._seconds_until(due)) or (due and due <= self._clock.now()):
                return

    def _seconds_until(self, due: datetime | None) -> float:
        """What is due already is held by others, or was not to be had: not at once again."""
        if due is None:
            return LONGEST_WAIT_SECONDS if self._bells.carry else IDLE_SECONDS
        seconds = (due - self._clock.now()).total_seconds()
        return min(max(seconds, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)

    def close(self, *, empties: bool = False) -> None:
        """Claim nothing more, or ``empties`` only what is due; and let go of what only waits."""
        self._closing, self._emptying = True, empties
        self._let_go([place for place in self._tasks.values() if place.is_lent])
        self._bells.ring(self._topic, far=False)

    async def drained(self, seconds: float, hurried: asyncio.Event) -> bool:
        """Whether everything that was begun has ended within the time, and before it was to be hurried."""
        told, ended = asyncio.create_task(hurried.wait()), asyncio.create_task(self._ended.wait())
        try:
            async with asyncio.timeout(seconds):
                # What is being claimed now is begun, too. Emptying lasts, and may be hurried.
                first: set[asyncio.Future[Any]] = {ended, told} if self._emptying else {ended}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                while self._tasks and not told.done():
                    ends: set[asyncio.Future[Any]] = {*self._tasks, told}
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            log.info("crew_not_drained", crew=str(self._topic), left=len(self._tasks))
        finally:
            told.cancel()
            ended.cancel()
        return not self._tasks

    async def abandon(self) -> None:
        """End what is still under way. What is not begun by now, or only being claimed, is put back: nobody
        else knows that nothing of it was done."""
        self._emptying, self._abandoned = False, True
        for task, place in self._tasks.items():
            if place.is_begun:  # a task that is cancelled before its first step could put nothing back
                task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_CLAIM_SECONDS):
                await self._ended.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _outlast(claiming: "asyncio.Future[T | None]") -> T | None:
    """What comes of a claim of somebody else, who deals with its failure. It is waited for even when this is
    cut off: once it is committed, only this place knows that nobody has begun."""
    while not claiming.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({claiming})
    return None if claiming.cancelled() or claiming.exception() else claiming.result()
