"""Server-sent events for many: what changed, from a place of the feed on, for whoever may see it.

A page is a snapshot and follows from there on::

    place = await streams.place(visitor)  # before anything is read: what changes since then comes as an event
    ...                                   # the page says ``data-place="{{ place }}"``

and the row that it follows gives what `events` gives, in the form ``EVENTS``::

    @ROWS.add("GET", "/events", form=Form.EVENTS, who=Who.VISITOR, need=Need.LOOK, query=Since)
    async def follow_events(site, call):
        after = call.headers.last_event_id or call.query.after
        return site.streams.events(call.known, after, may_look=…, about=[session_id])

``about`` are the subjects of `FeedEvent`: a session's id or key, a turn, a request, an owner, a kind such as
``delivery``; without any, everything that the visitor sees. Each event is named after its kind, with what it
names as JSON; ``here`` is a sign of life, and ``node`` without an id tells that the gateway itself is in
another condition. Its id is where the browser goes on when it comes back: nothing is lost, nothing comes
twice. It tells those who do not see everything nothing of how much happens, and is no good for anybody else.
When that place is not known, or too far behind, there is an event ``reset`` instead: the page starts over.

A stream ends when ``may_look`` says no, when an hour is over, and with us. That is asked as soon as the feed
tells of a change about the visitor (a pass, a role, a link), and every few seconds before something is sent.
All of them together have one timer; while nothing happens none of them has a task. What happens while many
follow is told to a few at a time (`Slices`), and written once for all who see the same (`Telling`).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextvars import Context, copy_context
from datetime import datetime
from typing import Any, Protocol

from frontdesk import errors
from frontdesk.contracts.ticks import Ticker, ticker
from frontdesk.flow.following import Follower, Following
from frontdesk.logs import get_logger
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.visitors import Visitor
from frontdesk.stores.feed import Feed
from frontdesk.stores.seals import Seals
from frontdesk.web.pushing import Pushed, PushedConnection
from frontdesk.web.slices import Slices
from frontdesk.web.told import Bookmark, Sight, Telling

STREAM_SECONDS = 3600.0
"""A stream ends after so long; whoever comes back shows their credential again."""
RETRY_MILLISECONDS = 2000
READ_AT_ONCE = 500
MOST_READ = 20_000
"""Who is further behind than so many changes, their own or not, starts over."""
OWED_SECONDS = 0.1
ASKED_SECONDS = 10.0
"""How long somebody who may look is sent events without being asked again."""
IDLE_SECONDS = 240.0
"""The same while there are none."""
ROUND_SECONDS_OF_EACH = 0.00006
"""What happens within that time, for each who is there, is told together: with many, pushing takes long
enough to keep others waiting."""
MOST_ROUND_SECONDS = 0.06
COST_OF_ASKING = 10
CONDITION = b'event: %s\ndata: {"at":%.3f}\n\n'
"""That the gateway is in another condition. The feed has nothing of it, since the store itself may fail."""


class MayLook(Protocol):
    """Whether somebody may still look; ``anew`` when something about them has changed."""

    def __call__(self, *, anew: bool = False) -> Awaitable[bool]: ...


log = get_logger(__name__)


class EventStreams:
    """Everybody who follows the feed over HTTP, on one node."""

    def __init__(
        self,
        following: Following[FeedEvent],
        feed: Feed,
        seals: Seals,
        ticks: Ticker | None = None,
        somebody_waits: Callable[[], bool] = lambda: False,
    ) -> None:
        """``somebody_waits`` says whether others wait for an answer: theirs comes first."""
        self.following = following
        self.feed = feed
        self.seals = seals
        self.is_closed = False
        self.telling = Telling()
        self.slices = Slices(self._round, somebody_waits)
        self._ticks = ticks
        self._open: set[EventStream] = set()
        self._following_condition: set[EventStream] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def _round(self) -> float:
        return min(ROUND_SECONDS_OF_EACH * len(self), MOST_ROUND_SECONDS)

    def close(self) -> None:
        """End all streams, now and from now on."""
        self.is_closed = True
        for stream in self._open:
            stream.ring()

    @property
    def is_condition_followed(self) -> bool:
        """Whether anybody is told how the gateway itself is."""
        return bool(self._following_condition)

    def tell_condition(self, at: datetime) -> None:
        """Tell those who see it that the gateway is in another condition."""
        told = CONDITION % (FeedKind.NODE.encode(), at.timestamp())
        for stream in self._following_condition:
            stream.tell_condition(told)

    async def place(self, visitor: Visitor) -> str:
        """From where on a page of this visitor's follows that is made after this."""
        sight = await self.look(Sight.of(visitor))
        return self.telling.written(Bookmark(await self.feed.end()), sight)

    async def look(self, sight: Sight) -> Sight:
        """The same, once places can be written for whoever it is."""
        if sight.holder and self.telling.seal is None:
            self.telling.seal = await self.seals.seal()
        return sight

    def events(
        self, visitor: Visitor, after: str | None, *, may_look: MayLook, about: Collection[str] = ()
    ) -> "EventStream":
        """What happens after a place, or from now on, of what the visitor sees and what it is about."""
        return EventStream(self, visitor, after, may_look, about)

    async def enter(self, stream: "EventStream") -> None:
        await self.following.join(stream, stream.subjects)
        self._open.add(stream)
        if stream.sight.shows_condition:
            self._following_condition.add(stream)
        (ticker() if self._ticks is None else self._ticks).add(stream.ring)

    async def leave(self, stream: "EventStream") -> None:
        if stream in self._open:
            self._open.discard(stream)
            self._following_condition.discard(stream)
            (ticker() if self._ticks is None else self._ticks).remove(stream.ring)
        await self.following.leave(stream, stream.subjects)

    def start(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> None:
        task = asyncio.create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class EventStream(Follower[FeedEvent], Pushed):
    """What one visitor is told. While nothing happens, no task waits for it."""

    is_patient = True

    __slots__ = (
        "_after",
        "_asked_at",
        "_condition",
        "_connection",
        "_context",
        "_end",
        "_is_due",
        "_mark",
        "_may_look",
        "_owes",
        "_streams",
        "sight",
        "subjects",
    )

    def __init__(
        self,
        streams: EventStreams,
        visitor: Visitor,
        after: str | None,
        may_look: MayLook,
        about: Collection[str],
    ) -> None:
        super().__init__()
        self.sight = Sight.of(visitor, about)
        self.subjects = tuple(self.sight.subjects(visitor.people | {visitor.id}))
        self._context = copy_context()  # what is asked about a visitor may look at their request's
        self._streams = streams
        self._after = after
        self._may_look = may_look
        self._mark = Bookmark(FeedPosition())
        self._owes = False
        """Whether something was left out that is told once nothing can come before it."""
        self._condition = b""
        """What is still to be said of the gateway's own condition."""
        self._is_due = False
        """Whether it has its turn in a moment, or right now."""
        self._connection: PushedConnection | None = None
        self._asked_at = _now()
        self._end = self._asked_at + STREAM_SECONDS

    async def open(self) -> bytes:
        """The first words, with all that came since the place where somebody left."""
        await self._streams.look(self.sight)
        await self._streams.enter(self)
        try:
            self._mark = Bookmark(self._streams.following.place or FeedPosition())
            opening = b": here\nretry: %d\n\n" % RETRY_MILLISECONDS
            if self._after is None:
                return opening + self._still_here()
            mark = self._streams.telling.read(self._after, self.sight)
            if mark is None or not await self._streams.feed.goes_on_from(mark.place):
                return opening + self._reset()
            self._mark = mark
            return opening + (await self._catch_up() or self._still_here())
        except BaseException:
            await self._streams.leave(self)
            raise

    def push_to(self, connection: PushedConnection) -> None:
        self._connection = connection
        if self._rung:
            self.ring()

    def left(self) -> None:
        self._connection = None
        self._streams.start(self._streams.leave(self))

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                await self.wait()
                chunk = await self._next()
                if chunk is None:
                    return
                if chunk:
                    yield chunk
        finally:
            await self._streams.leave(self)

    def ring(self) -> None:
        """There is something to be said, or it is time to say that we are still here."""
        super().ring()
        if self._connection and not self._is_due:
            self._is_due = True
            self._streams.slices.add(self)

    def tell_condition(self, told: bytes) -> None:
        self._condition = told
        self.ring()

    def go(self) -> int:
        """Say it; what takes longer is a task's."""
        if self._connection is None:
            return 0
        came, now = None if self._missed else self._unread, _now()
        if self._streams.is_closed or now > self._end or self._is_to_ask(came, now):
            self._streams.start(self._push(self._connection), self._context)
            return COST_OF_ASKING
        self._rung = False
        if chunk := self._say(self.take() or ()):
            self._connection.push(chunk)
        if self._owes:
            self._missed = self._rung = True
            self._streams.start(self._push(self._connection), self._context)
            return COST_OF_ASKING
        self._is_due = False
        return 1

    async def _push(self, connection: PushedConnection) -> None:
        try:
            while self._rung:
                self._rung = False
                chunk = await self._next()
                if chunk is None:
                    self._connection = None
                    connection.end()
                    return
                if chunk:
                    connection.push(chunk)
        finally:
            self._is_due = False

    def _say(self, came: Sequence[FeedEvent]) -> bytes:
        # All that is settled by now was given to whom it concerns: it is in what came, or was told before.
        # What this visitor may not see, is not even told of by a sign of life.
        told = self._write(came, self._streams.following.place)
        condition, self._condition = self._condition, b""
        return condition + (told if came else self._still_here())

    async def _next(self) -> bytes | None:
        """What is to be said now; None when it is over."""
        came = self.take()
        now = _now()
        if self._streams.is_closed or now > self._end:
            return None
        try:
            chunk = await self._catch_up() if came is None else self._say(came)
            while self._owes:
                await asyncio.sleep(OWED_SECONDS)
                chunk += await self._catch_up()
            return chunk if await self._is_allowed(came, now) else None
        except errors.StoreError as error:
            log.warning("events_cut", why=str(error))
            return None

    def _is_to_ask(self, came: Sequence[FeedEvent] | None, now: float) -> bool:
        """Whether it is not sure that they may still look. That is asked at once when something about them
        has changed, which the feed tells, and else by the clock."""
        return _is_own(came) or now >= self._asked_at + (ASKED_SECONDS if came else IDLE_SECONDS)

    async def _is_allowed(self, came: Sequence[FeedEvent] | None, now: float) -> bool:
        if not self._is_to_ask(came, now):
            return True
        self._asked_at = now
        return await self._may_look(anew=_is_own(came))

    async def _catch_up(self) -> bytes:
        """What the store has after the last that was told; that it starts over, where that is too much."""
        chunks: list[bytes] = []
        for _ in range(0, MOST_READ, READ_AT_ONCE):
            news = await self._streams.feed.since(self._mark.place, READ_AT_ONCE)
            chunks.append(self._write([*news.entries, *news.unsettled], news.place))
            if len(news.entries) < READ_AT_ONCE:
                return b"".join(chunks)
        return self._reset()

    def _write(self, came: Sequence[FeedEvent], settled: FeedPosition) -> bytes:
        chunk, self._mark, self._owes = self._streams.telling.tell(self._mark, self.sight, came, settled)
        return chunk

    def _reset(self) -> bytes:
        self._mark = Bookmark(self._streams.following.place)
        return self._streams.telling.starting_over(self._mark, self.sight)

    def _still_here(self) -> bytes:
        return self._streams.telling.still_here(self._mark, self.sight)


def _is_own(came: Sequence[FeedEvent] | None) -> bool:
    """Whether something about whoever follows may have changed."""
    return came is None or any(each.kind is FeedKind.PERSON for each in came)


def _now() -> float:
    return asyncio.get_running_loop().time()
