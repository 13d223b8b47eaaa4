"""A crew: claims work of one kind and does it, so much at a time; and what it knows of its claims."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.flow.parts import Parts
from frontdesk.flow.rounds import going_on
from frontdesk.logs import get_logger
from frontdesk.model.deliveries import DeliveryClaim
from frontdesk.model.turns import TurnClaim

T = TypeVar("T")
C = TypeVar("C", TurnClaim, DeliveryClaim)

IDLE_SECONDS = 5.0
"""Until another look when nothing waits."""
LONGEST_WAIT_SECONDS = 1.0
"""And when something is due later, since the clock may be set, or where there are other nodes: they ring for
themselves first, and do what they have no room for later than this one could."""
SHORTEST_WAIT_SECONDS = 0.01
STORE_PAUSE_SECONDS = 0.5
LAST_CLAIM_SECONDS = 5.0
"""How long a claim that is under way is waited for when the crew is abandoned."""

CERTAIN_SHARE = 2 / 3
"""Of a lease. The rest is for what is begun in that certainty."""

log = get_logger(__name__)


class AskedAt(NamedTuple):
    """When the store was asked for a lease, taken before it was: the lease lasts at least from then on."""

    at: float
    standing: int | None


def ask(parts: Parts) -> AskedAt:
    return AskedAt(parts.elapsed(), parts.store.nodes.standing)


class Held(Generic[C]):
    """Something that was claimed, while it is worked on here.

    A node that stood still does not notice. So before it does what cannot be taken back, it looks how much
    time has passed since it was given the lease: as long as that cannot have run out, nobody else has it;
    after that, the store is asked.
    """

    def __init__(self, parts: Parts, claim: C, asked: AskedAt) -> None:
        self._parts = parts
        self.claim: C = claim
        self.lease = claim.lease
        self.asked = asked
        self.is_lost = False
        self._certain_seconds = parts.running.lease_seconds * CERTAIN_SHARE

    def lose(self) -> None:
        """Somebody else has it."""
        self.is_lost = True

    async def confirm(self) -> None:
        """Return while the lease is ours; LeaseLost when somebody else may have it.

        Nothing is waited for while that is certain: whoever begins something right after this begins it in
        the same breath. What remains is a process that is stopped in exactly between, for longer than the
        third of a lease that is left then.
        """
        parts = self._parts
        while not self.is_lost:
            standing, age = parts.store.nodes.standing, parts.elapsed() - self.asked.at
            if standing is not None and standing == self.asked.standing and age < self._certain_seconds:
                return
            asked, seconds = ask(parts), parts.running.lease_seconds
            if self.lease not in await parts.store.turns.renew([self.lease], lease_seconds=seconds):
                break
            self.asked = asked
            if not self.is_lost and parts.elapsed() - asked.at < self._certain_seconds:
                return  # while the others may take us for gone, this is all that can be known
        self.is_lost = True  # whoever asks ends by this error: nobody has to be told
        raise errors.LeaseLost(lane=self.lease.lane)


async def until_stored(
    write: Callable[[], Awaitable[object]],
    gives_up: tuple[type[Exception], ...] = (errors.StoreClosed,),
    **about: str,
) -> None:
    """Write as soon as the store takes it, unless somebody else has by then what it is about."""
    while True:
        try:
            await write()
        except errors.LeaseLost as error:
            log.warning("lease_lost", why=str(error), **about)
        except gives_up:
            raise
        except errors.StoreError as error:
            log.warning("store_troubled", why=str(error), **about)
            await asyncio.sleep(STORE_PAUSE_SECONDS)
            continue
        return


class Place(msgspec.Struct, eq=False):
    """What a piece of work takes up of its crew. It can be lent to others for as long as the work only waits.

    Whoever has waited goes on at once, although another may have the place by then: nothing new is begun
    until there is room again.
    """

    _tell: Callable[["Place"], None]
    """Is called when it is lent and given back."""
    task: "asyncio.Task[None] | None" = None
    is_begun: bool = False
    is_lent: bool = False

    @contextmanager
    def lent(self) -> Iterator[None]:
        """The place is free for others; when the crew closes, what waits in here is ended at once."""
        self.is_lent = True
        try:
            self._tell(self)
            yield
        finally:
            self.is_lent = False
            self._tell(self)


class Crew(Generic[T]):
    def __init__(
        self,
        parts: Parts,
        topic: Topic,
        places: int,
        claim: Callable[[int], Awaitable[Sequence[T]]],
        work: Callable[[T, Place], Awaitable[None]],
        put_back: Callable[[T], Awaitable[None]],
        next_due: Callable[[], Awaitable[datetime | None]],
        *,
        is_handed_work: bool = False,
    ) -> None:
        """``is_handed_work``: others claim something for it, too, and `begin` it here."""
        self._topic = topic
        self._bells = parts.store.bells
        self._clock = parts.clock
        self._free = places
        """How many places nobody has; fewer than none when some have waited and go on."""
        self._claim = claim
        self._work = work
        self._put_back = put_back
        self._next_due = next_due
        self._is_handed_work = is_handed_work
        self._closing = False
        self._emptying = False
        self._abandoned = False
        self._ended = asyncio.Event()
        self._tasks: dict[asyncio.Task[None], Place] = {}
        self._reserved = 0
        """How many places a claim that is under way may fill."""
        self._bell = self._bells.listen(topic)

    async def run(self) -> None:
        """Work until told to close; what was claimed by then is still done."""
        try:
            while not self._closing:
                with going_on("crew_failed", crew=str(self._topic)):
                    while not self._closing:
                        if not await self._take():
                            await self._wait()
                    break
                await asyncio.sleep(STORE_PAUSE_SECONDS)
            with suppress(errors.StoreError):
                await self._empty()
        finally:
            self._bell.silence()
            self._ended.set()

    async def _take(self) -> bool:
        """Claim as much as there is room for; whether there may be more than that."""
        # While the store is asked, turns that end look for room for their answers, and what is claimed here
        # would come on top of those. So these places are kept until it is known how many are filled; and no
        # more than half of those that are free, or all answers would have to wait for the next claim.
        free = max(self._free, 0)
        self._reserved = wanted = (free + 1) // 2 if self._is_handed_work else free
        try:
            claimed = await self._claim(wanted) if wanted else ()
        finally:
            self._reserved = 0
        for each in claimed:
            self.begin(each)
        filled = bool(claimed) and len(claimed) == wanted
        if filled:
            self._bells.ring(self._topic)  # there may be more than this node has room for
        return filled

    def begin(self, claimed: T | None, claiming: "asyncio.Future[T | None] | None" = None) -> None:
        """Do what was claimed, or what somebody else is claiming, if they get it. It has its place from now
        on, so that it is not forgotten when the crew is emptied meanwhile."""
        place = Place(self._passed_on)
        place.task = task = asyncio.create_task(self._do(claimed, claiming, place))
        self._tasks[task] = place
        self._free -= 1
        task.add_done_callback(self._done)

    @property
    def has_room(self) -> bool:
        """Whether something that was claimed elsewhere can be done here at once, until whoever asks waits for
        something: `begin` belongs into the same breath."""
        return self._free > self._reserved and not self._closing

    async def _empty(self) -> None:
        """Do what is due, and what becomes due by that."""
        while self._emptying:
            if await self._take():
                continue
            if not self._tasks:
                return
            # Whatever is done frees its lane, and what waits behind it there becomes due.
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

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
        del self._tasks[task]
        self._free += 1
        if self._free <= 1:  # it was full
            self._bells.ring(self._topic, far=False)

    def _passed_on(self, place: Place) -> None:
        """Somebody only waits from now on, or goes on."""
        self._free += 1 if place.is_lent else -1
        if place.is_lent and self._closing and place.task:
            place.task.cancel()  # it goes on elsewhere, or later
        elif place.is_lent and self._free == 1:
            self._bells.ring(self._topic, far=False)

    async def _wait(self) -> None:
        """Wait for a bell, or until something is due. Who was not called looks before anything is claimed:
        a claim locks, and nobody should wait for one that finds nothing."""
        while not self._closing:
            due = await self._next_due() if self._free > 0 else None
            seconds = LONGEST_WAIT_SECONDS if self._bells.carry else IDLE_SECONDS
            if due:  # what is due already is held by others, or was not to be had: not at once again
                left = (due - self._clock.now()).total_seconds()
                seconds = min(max(left, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
            if await self._bell.wait(seconds) or (due and due <= self._clock.now()):
                return

    def close(self, *, empties: bool = False) -> None:
        """Claim nothing more, or ``empties`` only what is due; and let go of what only waits."""
        self._closing, self._emptying = True, empties
        for task, place in self._tasks.items():
            if place.is_lent:
                task.cancel()
        self._bells.ring(self._topic, far=False)

    async def drained(self, seconds: float, hurried: asyncio.Event) -> bool:
        """Whether everything that was begun has ended within the time, and before it was to be hurried."""
        told, ended = asyncio.create_task(hurried.wait()), asyncio.create_task(self._ended.wait())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._drain(told, ended)
        finally:
            told.cancel()
            ended.cancel()
        if self._tasks or not self._ended.is_set():
            log.info("crew_not_drained", crew=str(self._topic), left=len(self._tasks))
        return not self._tasks

    async def _drain(self, told: "asyncio.Task[Any]", ended: "asyncio.Task[Any]") -> None:
        # What is being claimed now is begun, too. Emptying lasts, and may be hurried.
        first: set[asyncio.Future[Any]] = {ended, told} if self._emptying else {ended}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        while self._tasks and not told.done():
            ends: set[asyncio.Future[Any]] = {*self._tasks, told}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)

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
