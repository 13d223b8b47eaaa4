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

A stream ends when ``may_look`` says no, which is asked before anything is sent, when an hour is over, and
with us. All of them together have one timer; while nothing happens each is a task that waits for a future.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable

import msgspec

from frontdesk import errors
from frontdesk.contracts.ticks import Ticker, ticker
from frontdesk.flow.following import Follower, Following
from frontdesk.logs import get_logger
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.visitors import Need, Visitor
from frontdesk.stores.feed import Feed

STREAM_SECONDS = 3600.0
"""A stream ends after so long; whoever comes back shows their credential again."""
RETRY_MILLISECONDS = 2000
READ_AT_ONCE = 500
MOST_READ = 20_000
"""Who is further behind than so many changes, their own or not, starts over."""
MOST_AHEAD = 50
"""Of what others may still come before, so many are told at once; the rest when nothing can."""
OWED_SECONDS = 0.1
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

    def __init__(self, place: FeedPosition, ahead: Iterable[FeedPosition] = ()) -> None:
        self._place = place
        self._ahead = frozenset(ahead)

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
        ahead = self._ahead | {told} if told > settled else self._ahead
        self._place = max(self._place, min(told, settled))
        self._ahead = frozenset(each for each in ahead if each > self._place) if ahead else ahead


class EventStreams:
    """Everybody who follows the feed over HTTP, on one node."""

    def __init__(self, following: Following[FeedEvent], feed: Feed, ticks: Ticker | None = None) -> None:
        self._following = following
        self._feed = feed
        self._ticks = ticks
        self._open: set[Follower[FeedEvent]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """End all streams, now and from now on."""
        self._closed = True
        for follower in self._open:
            follower.ring()

    async def place(self) -> str:
        """From where on a page follows that is made after this."""
        return str(await self._feed.end())

    async def events(
        self, visitor: Visitor, after: str | None, *, may_look: MayLook, about: Collection[str] = ()
    ) -> AsyncGenerator[bytes, None]:
        """What happens after a place, or from now on, of what the visitor sees and what it is about."""
        ticks = ticker() if self._ticks is None else self._ticks
        subjects = about or subjects_of(visitor)
        async with self._following.about(*subjects) as follower:
            ticks.add(follower.ring)
            self._open.add(follower)
            told = _Told(self._following, self._feed, visitor, frozenset(about))
            end = asyncio.get_running_loop().time() + STREAM_SECONDS
            try:
                yield await told.begin(after)
                while not self._closed and asyncio.get_running_loop().time() < end:
                    chunk = await told.next(follower)
                    if self._closed or not await may_look():
                        return
                    if chunk:
                        yield chunk
            except errors.StoreError as error:
                log.warning("events_cut", why=str(error))
            finally:
                self._open.discard(follower)
                ticks.remove(follower.ring)


class _Told:
    """What one visitor was told."""

    __slots__ = ("_about", "_feed", "_following", "_mark", "_owes", "_visitor")

    def __init__(
        self, following: Following[FeedEvent], feed: Feed, visitor: Visitor, about: frozenset[str]
    ) -> None:
        self._following = following
        self._feed = feed
        self._visitor = visitor
        self._about = about
        self._mark = Bookmark(following.place or FeedPosition())
        self._owes = False
        """Whether something was left out that is told once nothing can come before it."""

    async def begin(self, after: str | None) -> bytes:
        """The first words, with all that came since the place where somebody left."""
        opening = b": here\nretry: %d\n\n" % RETRY_MILLISECONDS
        if after is None:
            return opening + self._still_here()
        mark = Bookmark.read(after)
        if mark is None or not await self._feed.goes_on_from(mark.place):
            return opening + self._reset()
        self._mark = mark
        return opening + (await self._catch_up() or self._still_here())

    async def next(self, follower: Follower[FeedEvent]) -> bytes:
        """What comes next; after a while without anything, that we are still here."""
        if self._owes:
            await asyncio.sleep(OWED_SECONDS)
            return await self._catch_up()
        await follower.wait()
        came = follower.take()
        if came is None:
            return await self._catch_up()
        # All that is settled by now was given to whom it concerns: it is in what came, or was told before.
        # What this visitor may not see, is not even told of by a sign of life.
        told = self._write(came, self._following.place)
        return told if came else self._still_here()

    async def _catch_up(self) -> bytes:
        """What the store has after the last that was told; that it starts over, where that is too much."""
        chunks: list[bytes] = []
        for _ in range(0, MOST_READ, READ_AT_ONCE):
            news = await self._feed.since(self._mark.place, READ_AT_ONCE)
            chunks.append(self._write([*news.entries, *news.unsettled], news.place))
            if len(news.entries) < READ_AT_ONCE:
                return b"".join(chunks)
        return self._reset()

    def _write(self, came: Iterable[FeedEvent], settled: FeedPosition) -> bytes:
        chunks: list[bytes] = []
        self._owes = False
        for event in sorted(came, key=lambda each: each.place):
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
        self._mark = Bookmark(self._following.place)
        return b"event: reset\nid: %s\ndata: {}\n\n" % str(self._mark).encode()


def _written(event: FeedEvent, mark: Bookmark) -> bytes:
    data = msgspec.json.encode(EventData.of(event))
    return b"event: %s\nid: %s\ndata: %s\n\n" % (event.kind.encode(), str(mark).encode(), data)


def subjects_of(visitor: Visitor) -> Collection[str]:
    """What a visitor follows who follows all that they see; nothing stands for everything."""
    viewer = visitor.viewer
    if viewer.administrator:
        return ()
    asked = {str(FeedKind.CONFIRMATION)} if visitor.may(Need.LOOK_AT_REQUESTS) else set()
    return viewer.owners | asked


def is_shown(visitor: Visitor, event: FeedEvent) -> bool:
    """Whether the visitor sees what an event is about."""
    if event.kind is FeedKind.CONFIRMATION and visitor.may(Need.LOOK_AT_REQUESTS):
        return True
    viewer = visitor.viewer
    return viewer.administrator or (event.owner is not None and viewer.sees(event.owner))
