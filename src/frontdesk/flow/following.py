"""Following: a log of the store is read once for all who follow it here, and each is woken by what concerns
it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import msgspec

from frontdesk.contracts.bells import Bell, Bells, Topic
from frontdesk.contracts.ticks import Waker
from frontdesk.flow import rounds
from frontdesk.model import audit, turns
from frontdesk.model.feed import FeedEvent, News
from frontdesk.stores.store import Store

LOOK_SECONDS = 1.0
"""Until another look without a bell: one may have been lost on its way from another node."""
UNSETTLED_SECONDS = 0.02
"""The same while there is something that others may still come before."""
READ_AT_ONCE = 500
WOKEN_AT_ONCE = 50
GATHERED_SECONDS = 0.03
"""Who is patient is told together what happened within that time: of a message come several changes."""
MOST_UNREAD = 1_000
"""Who leaves more than that unread is told that something was missed."""

FINISHED = frozenset(map(str, turns.FINISHED))

Entry = TypeVar("Entry")


class Followed(msgspec.Struct, Generic[Entry], frozen=True, kw_only=True):
    """A log of the store, as it is followed."""

    end: Callable[[], Awaitable[Any]]
    """A place that nothing new comes before."""
    since: Callable[[Any, int], Awaitable[News[Entry]]]
    """What came after a place, at most so many."""
    subjects_of: Callable[[Entry], Iterable[str]]
    """What an entry concerns."""
    topic: Topic
    """Rings when there is something new."""


class Follower(Waker, Generic[Entry]):
    """What somebody who follows has not read yet. One task waits for it, no more."""

    __slots__ = ("_missed", "_unread")

    is_patient = False
    """Whether nobody waits for what comes."""

    def __init__(self) -> None:
        super().__init__()
        self._unread: list[Entry] = []
        self._missed = False

    def put(self, entries: Sequence[Entry]) -> None:
        """Something came, and whoever puts it rings."""
        if len(self._unread) + len(entries) <= MOST_UNREAD:
            self._unread += entries
        else:
            self._missed = True

    def miss(self) -> None:
        """Something may have come, and only the store knows what."""
        self._missed = True
        self.ring()

    def take(self) -> Sequence[Entry] | None:
        """What came since the last time; None when that is to be looked up in the store."""
        taken, missed = self._unread, self._missed
        if taken or missed:
            self._unread, self._missed = [], False
        return None if missed else taken


class Following(Generic[Entry]):
    """Reads a log while anybody follows it, one task for all of them."""

    place: Any = None
    """Whatever comes before this place of the log was given to those whom it concerns."""

    def __init__(self, followed: Followed[Entry], bells: Bells) -> None:
        self._followed = followed
        self._bells = bells
        self._followers: dict[str | None, set[Follower[Entry]]] = {}
        self._impatient: set[Follower[Entry]] = set()
        self._gathered = Waker()
        self._begun = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def about(self, *subjects: str) -> AsyncIterator[Follower[Entry]]:
        """Follow what concerns any of these subjects, or everything. Whatever is written after this was
        entered comes, once."""
        follower = Follower[Entry]()
        try:
            await self.join(follower, subjects)
            yield follower
        finally:
            await self.leave(follower, subjects)

    async def join(self, follower: Follower[Entry], subjects: Collection[str]) -> None:
        """The same for a follower who leaves by itself; who does not, is told for ever."""
        for subject in subjects or (None,):
            self._followers.setdefault(subject, set()).add(follower)
        if not follower.is_patient:
            self._impatient.add(follower)
            self._gathered.ring()
        if self._reader is None:
            self._begun = asyncio.Event()
            self._reader = asyncio.create_task(self._read(self._begun))
        await self._begun.wait()

    async def leave(self, follower: Follower[Entry], subjects: Collection[str]) -> None:
        """Follow no more what was followed."""
        self._impatient.discard(follower)
        for subject in subjects or (None,):
            followers = self._followers.get(subject, set())
            followers.discard(follower)
            if not followers:
                self._followers.pop(subject, None)
        if self._reader and not self._followers:
            # Whoever comes while this one ends begins another.
            ending, self._reader = self._reader, None
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)

    async def _read(self, begun: asyncio.Event) -> None:
        bell = self._bells.listen(self._followed.topic)
        try:
            while True:
                with rounds.going_on():
                    await self._read_on(begun, bell)
                begun.set()
                self._miss()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            bell.silence()

    async def _read_on(self, begun: asyncio.Event, bell: Bell) -> None:
        """Until the store fails; what was written since then is to be looked up there."""
        self.place, told = await self._followed.end(), frozenset[Entry]()
        if begun.is_set():
            self._miss()
        begun.set()
        while True:
            news = await self._followed.since(self.place, READ_AT_ONCE)
            concerned = self._give([each for each in (*news.entries, *news.unsettled) if each not in told])
            self.place, told = news.place, frozenset(news.unsettled)
            await _wake(concerned)
            if len(news.entries) == READ_AT_ONCE:
                continue
            if await bell.wait(UNSETTLED_SECONDS if told else LOOK_SECONDS):
                await self._gather()

    async def _gather(self) -> None:
        """Wait for more, while nobody waits for what there is."""
        if not self._impatient:
            timer = asyncio.get_running_loop().call_later(GATHERED_SECONDS, self._gathered.ring)
            await self._gathered.wait()
            timer.cancel()

    def _give(self, entries: Sequence[Entry]) -> Collection[Follower[Entry]]:
        """Hand each entry to those whom it concerns; who they are."""
        concerned: set[Follower[Entry]] = set()
        for entry in entries:
            to: set[Follower[Entry]] = set()
            for subject in self._followed.subjects_of(entry):
                to.update(self._followers.get(subject, ()))
            for follower in to:
                follower.put((entry,))
            concerned |= to
        if entries and (of_everything := self._followers.get(None)):
            for follower in of_everything:
                follower.put(entries)
            concerned |= of_everything
        return concerned

    def _miss(self) -> None:
        for followers in self._followers.values():
            for follower in followers:
                follower.miss()


async def _wake(followers: Collection[Follower[Entry]]) -> None:
    """A few at a time: between them goes on whatever else there is to do, such as taking a message in."""
    for number, follower in enumerate(followers, 1):
        follower.ring()
        if number % WOKEN_AT_ONCE == 0:
            await asyncio.sleep(0)


def follow_feed(store: Store) -> Following[FeedEvent]:
    """The feed, whose events concern turns, sessions, conversations, requests and people."""
    followed = Followed[FeedEvent](
        end=store.feed.end,
        since=store.feed.since,
        subjects_of=lambda event: event.subjects,
        topic=Topic.FEED,
    )
    return Following(followed, store.bells)


def follow_audit(store: Store) -> Following[audit.Row]:
    """The audit log, whose rows concern confirmations; their numbers have no gaps."""

    async def end() -> int:
        newest = await store.confirmations.audit_newest(1)
        return newest[0].number if newest else 0

    async def since(place: int, limit: int) -> News[audit.Row]:
        found = list(await store.confirmations.audit_rows(place, limit))
        return News(found, found[-1].number if found else place)

    followed = Followed[audit.Row](end=end, since=since, subjects_of=_confirmation, topic=Topic.CONFIRMATIONS)
    return Following(followed, store.bells)


def _confirmation(row: audit.Row) -> Iterable[str]:
    named = row.readable.confirmation_id if row.readable else None
    return (named,) if named else ()


def has_ended(came: Sequence[FeedEvent] | None) -> bool:
    """Whether what came about a turn may be its end."""
    return came is None or any(event.state in FINISHED for event in came)
