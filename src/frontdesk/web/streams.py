"""Server-sent events for many: what changed, from a place of the feed on, for whoever may see it.

A page is a snapshot and follows from there on::

    place = await streams.place()  # before anything is read: what changes since then comes as an event
    ...                            # the page says ``data-place="{{ place }}"``

and the row that it follows gives what `events` gives, in the form ``EVENTS``::

    @ROWS.add("GET", "/events", form=Form.EVENTS, who=Who.VISITOR, need=Need.LOOK, query=Since)
    async def follow_events(site, call):
        after = call.headers.last_event_id or call.query.after
        return site.streams.events(call.known, after, may_look=…, about=[session_id])

``about`` are the subjects of `FeedEvent`: a session's id or key, a turn, a request, an owner, a kind such as
``delivery``; without any, everything that the visitor sees. Each event is named after its kind, with what it
names as JSON. Its id is where the browser goes on when it comes back: nothing is lost, nothing comes twice.
When that place is not known, or too far behind, there is an event ``reset`` instead: the page starts over.

A stream ends when ``may_look`` says no, when an hour is over, and with us. That is asked as soon as the feed
tells of a change about the visitor (a pass, a role, a link), and every few seconds before something is sent.
All of them together have one timer; while nothing happens none of them has a task.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from contextvars import Context, copy_context
from functools import lru_cache
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.ticks import Ticker, ticker
from frontdesk.flow.following import Follower, Following
from frontdesk.logs import get_logger
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.visitors import Need, Visitor
from frontdesk.stores.feed import Feed
from frontdesk.web.pushing import Pushed, PushedConnection

STREAM_SECONDS = 3600.0
"""A stream ends after so long; whoever comes back shows their credential again."""
RETRY_MILLISECONDS = 2000
READ_AT_ONCE = 500
MOST_READ = 20_000
"""Who is further behind than so many changes, their own or not, starts over."""
MOST_AHEAD = 50
"""Of what others may still come before, so many are told at once; the rest when nothing can."""
OWED_SECONDS = 0.1
ASKED_SECONDS = 10.0
"""How long somebody who may look is sent events without being asked again."""
IDLE_SECONDS = 240.0
"""The same while there are none."""
KEPT_DATA = 1024
NOTHING: frozenset[str] = frozenset()
MAX_PLACE_CHARACTERS = 3_000

MayLook = Callable[[], Awaitable[bool]]

log = get_logger(__name__)


class EventData(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an event says: never more than names, so that whoever reads it asks for the rest."""

    at: float
    session_key: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    delivery_id: str | None = None
    confirmation_id: str | None = None
    state: str | None = None
    owner: str | None = None

    @classmethod
    def of(cls, event: FeedEvent) -> "EventData":
        named = {name: getattr(event, name) for name in cls.__struct_fields__[1:]}
        return cls(event.at.timestamp(), **named)


class Bookmark:
    """How far somebody was told: everything up to a place, and some of what comes after it."""

    __slots__ = ("_ahead", "_place")

    def __init__(self, place: FeedPosition, ahead: Collection[FeedPosition] = ()) -> None:
        self._place = place
        self._ahead = ahead

    @classmethod
    def read(cls, written: str) -> "Bookmark | None":
        """What `str` wrote; None for whatever else somebody sends."""
        if len(written) > MAX_PLACE_CHARACTERS:
            return None
        place, *ahead = [FeedPosition.read(each) for each in written.split("~")]
        known = [each for each in ahead if each]
        return cls(place, known) if place and len(known) == len(ahead) else None

    def __str__(self) -> str:
        return "~".join(map(str, (self._place, *sorted(self._ahead))))

    @property
    def place(self) -> FeedPosition:
        return self._place

    @property
    def is_full(self) -> bool:
        """Whether no more can be told ahead of what others may still come before."""
        return len(self._ahead) >= MOST_AHEAD

    def knows(self, place: FeedPosition) -> bool:
        """Whether what is there was told."""
        return place <= self._place or place in self._ahead

    def move(self, told: FeedPosition, settled: FeedPosition) -> None:
        """That event was told, and all before it that is settled."""
        ahead = (*self._ahead, told) if told > settled else self._ahead
        self._place = max(self._place, min(told, settled))
        if ahead:
            self._ahead = tuple(each for each in ahead if each > self._place)


class EventStreams:
    """Everybody who follows the feed over HTTP, on one node."""

    def __init__(self, following: Following[FeedEvent], feed: Feed, ticks: Ticker | None = None) -> None:
        self.following = following
        self.feed = feed
        self.is_closed = False
        self._ticks = ticks
        self._open: set[EventStream] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """End all streams, now and from now on."""
        self.is_closed = True
        for stream in self._open:
            stream.ring()

    async def place(self) -> str:
        """From where on a page follows that is made after this."""
        return str(await self.feed.end())

    def events(
        self, visitor: Visitor, after: str | None, *, may_look: MayLook, about: Collection[str] = ()
    ) -> "EventStream":
        """What happens after a place, or from now on, of what the visitor sees and what it is about."""
        return EventStream(self, visitor, after, may_look, about)

    async def enter(self, stream: "EventStream") -> None:
        await self.following.join(stream, stream.subjects)
        self._open.add(stream)
        (ticker() if self._ticks is None else self._ticks).add(stream.tick)

    async def leave(self, stream: "EventStream") -> None:
        if stream in self._open:
            self._open.discard(stream)
            (ticker() if self._ticks is None else self._ticks).remove(stream.tick)
        await self.following.leave(stream, stream.subjects)

    def start(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> None:
        task = asyncio.create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class EventStream(Follower[FeedEvent], Pushed):
    """What one visitor is told. While nothing happens, no task waits for it."""

    __slots__ = (
        "_about",
        "_after",
        "_asked_at",
        "_connection",
        "_context",
        "_end",
        "_is_busy",
        "_mark",
        "_may_look",
        "_owes",
        "_streams",
        "_visitor",
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
        self.subjects = tuple({*about, *names_of(visitor)} if about else subjects_of(visitor))
        self._about = frozenset(about) if about else NOTHING
        self._context = copy_context()  # what is asked about a visitor may look at their request's
        self._streams = streams
        self._visitor = visitor
        self._after = after
        self._may_look = may_look
        self._mark = Bookmark(FeedPosition())
        self._owes = False
        """Whether something was left out that is told once nothing can come before it."""
        self._is_busy = False
        self._connection: PushedConnection | None = None
        self._asked_at = _now()
        self._end = self._asked_at + STREAM_SECONDS

    async def open(self) -> bytes:
        """The first words, with all that came since the place where somebody left."""
        await self._streams.enter(self)
        try:
            self._mark = Bookmark(self._streams.following.place or FeedPosition())
            opening = b": here\nretry: %d\n\n" % RETRY_MILLISECONDS
            if self._after is None:
                return opening + self._still_here()
            mark = Bookmark.read(self._after)
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
        super().ring()
        if self._connection and not self._is_busy:
            self._is_busy = True
            self._streams.start(self._push(self._connection), self._context)

    def tick(self) -> None:
        """Say that we are still here, if nothing else is to be said or asked."""
        now = _now()
        resting = self._connection and not self._is_busy and not self._unread and not self._missed
        if self._connection and resting and now < min(self._asked_at + IDLE_SECONDS, self._end):
            self._connection.push(self._write((), self._streams.following.place) or self._still_here())
        else:
            self.ring()

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
            self._is_busy = False

    async def _next(self) -> bytes | None:
        """What is to be said now; None when it is over."""
        came = self.take()
        now = _now()
        if self._streams.is_closed or now > self._end:
            return None
        try:
            if came is None:
                chunk = await self._catch_up()
            else:
                # All that is settled by now was given to whom it concerns: it is in what came, or was told
                # before. What this visitor may not see, is not even told of by a sign of life.
                told = self._write(came, self._streams.following.place)
                chunk = told if came else self._still_here()
            while self._owes:
                await asyncio.sleep(OWED_SECONDS)
                chunk += await self._catch_up()
            return chunk if await self._is_allowed(came, now) else None
        except errors.StoreError as error:
            log.warning("events_cut", why=str(error))
            return None

    async def _is_allowed(self, came: Sequence[FeedEvent] | None, now: float) -> bool:
        """Whether they may still look: asked at once when something about them has changed, which the feed
        tells, and else by the clock."""
        own = came is None or any(each.kind is FeedKind.PERSON for each in came)
        if not own and now < self._asked_at + (ASKED_SECONDS if came else IDLE_SECONDS):
            return True
        self._asked_at = now
        return await self._may_look()

    async def _catch_up(self) -> bytes:
        """What the store has after the last that was told; that it starts over, where that is too much."""
        chunks: list[bytes] = []
        for _ in range(0, MOST_READ, READ_AT_ONCE):
            news = await self._streams.feed.since(self._mark.place, READ_AT_ONCE)
            chunks.append(self._write([*news.entries, *news.unsettled], news.place))
            if len(news.entries) < READ_AT_ONCE:
                return b"".join(chunks)
        return self._reset()

    def _write(self, came: Iterable[FeedEvent], settled: FeedPosition) -> bytes:
        chunks: list[bytes] = []
        self._owes = False
        for event in sorted(came, key=_place):
            if not self._mark.knows(event.place) and self._is_shown(event):
                if event.place > settled and self._mark.is_full:
                    self._owes = True
                    break
                self._mark.move(event.place, settled)
                chunks.append(_written(event, self._mark))
        self._mark.move(settled, settled)
        return b"".join(chunks)

    def _is_shown(self, event: FeedEvent) -> bool:
        return is_shown(self._visitor, event) and (
            not self._about or not self._about.isdisjoint(event.subjects)
        )

    def _still_here(self) -> bytes:
        """Nothing that a page would hear of, but from where it would go on."""
        return b"id: %s\n\n" % str(self._mark).encode()

    def _reset(self) -> bytes:
        self._mark = Bookmark(self._streams.following.place)
        return b"event: reset\nid: %s\ndata: {}\n\n" % str(self._mark).encode()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _place(event: FeedEvent) -> FeedPosition:
    return event.place


def _written(event: FeedEvent, mark: Bookmark) -> bytes:
    return b"event: %s\nid: %s\ndata: %s\n\n" % (event.kind.encode(), str(mark).encode(), _data(event))


@lru_cache(maxsize=KEPT_DATA)
def _data(event: FeedEvent) -> bytes:
    """The same for everybody who is told of it."""
    return msgspec.json.encode(EventData.of(event))


def names_of(visitor: Visitor) -> frozenset[str]:
    return visitor.people | {visitor.id}


def subjects_of(visitor: Visitor) -> Collection[str]:
    """What a visitor follows who follows all that they see; nothing stands for everything."""
    viewer = visitor.viewer
    if viewer.administrator:
        return ()
    asked = {str(FeedKind.CONFIRMATION)} if visitor.may(Need.LOOK_AT_REQUESTS) else set()
    return viewer.owners | names_of(visitor) | asked


def is_shown(visitor: Visitor, event: FeedEvent) -> bool:
    """Whether the visitor sees what an event is about."""
    if event.kind is FeedKind.CONFIRMATION and visitor.may(Need.LOOK_AT_REQUESTS):
        return True
    viewer = visitor.viewer
    return viewer.administrator or (event.owner is not None and viewer.sees(event.owner))
