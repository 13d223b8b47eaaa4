"""What is told to those who follow: written once for all who see the same and were told the same so far."""

import struct
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from frontdesk.formats.sealing import PlaceSeal
from frontdesk.model.audit import ABOUT_ACCESS
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.people import Viewer
from frontdesk.model.visitors import Need, Visitor

MOST_AHEAD = 50
"""Of what others may still come before, so many are told at once; the rest when nothing can."""
MAX_PLACE_CHARACTERS = 3_000
PLACES = "events"
"""What is sealed here, among other places that are."""
KEPT_DATA = 1024
KEPT_CHUNKS = 1000


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

    __slots__ = ("_ahead", "place", "written")

    def __init__(self, place: FeedPosition, ahead: Collection[FeedPosition] = ()) -> None:
        self.place = place
        self._ahead = tuple(ahead)
        self.written = "~".join(map(str, (place, *sorted(ahead))))

    def __str__(self) -> str:
        return self.written

    @classmethod
    def read(cls, written: str) -> "Bookmark | None":
        """What was written; None for whatever else somebody sends."""
        if len(written) > MAX_PLACE_CHARACTERS:
            return None
        place, *ahead = [FeedPosition.read(each) for each in written.split("~")]
        known = [each for each in ahead if each]
        return cls(place, known) if place and len(known) == len(ahead) else None

    @property
    def packed(self) -> bytes:
        """The same in a form whose length does not tell how far it is."""
        places = (self.place, *self._ahead)
        return b"".join(struct.pack(">QQ", each.xid, each.number) for each in places)

    @classmethod
    def unpacked(cls, packed: bytes) -> "Bookmark":
        place, *ahead = [FeedPosition(*each) for each in struct.iter_unpack(">QQ", packed)]
        return cls(place, ahead)

    @property
    def is_full(self) -> bool:
        """Whether no more can be told ahead of what others may still come before."""
        return len(self._ahead) >= MOST_AHEAD

    def knows(self, place: FeedPosition) -> bool:
        """Whether what is there was told."""
        return place <= self.place or place in self._ahead

    def moved(self, told: FeedPosition, settled: FeedPosition) -> "Bookmark":
        """Where it is when that event was told, and all before it that is settled."""
        ahead = (*self._ahead, told) if told > settled else self._ahead
        place = max(self.place, min(told, settled))
        if place == self.place and ahead is self._ahead:
            return self
        return Bookmark(place, [each for each in ahead if each > place])


class Sight(msgspec.Struct, frozen=True):
    """Of which events somebody is told."""

    viewer: Viewer
    requests: bool
    """Whether they see what is asked for, whoever asks."""
    about: frozenset[str] = frozenset()
    """What they chose of it; nothing stands for everything."""
    holder: str = ""
    """For whom places of the feed are sealed; nobody, where somebody sees all of it."""

    @classmethod
    def of(cls, visitor: Visitor, about: Collection[str] = ()) -> "Sight":
        viewer = visitor.viewer
        holder = "" if viewer.administrator else f"{PLACES} {visitor.id}"
        return cls(viewer, visitor.may(Need.LOOK_AT_REQUESTS), frozenset(about), holder)

    def subjects(self, names: frozenset[str]) -> Collection[str]:
        """What somebody of these names follows; nothing stands for everything."""
        if self.about:
            return self.about | names
        if self.viewer.administrator:
            return ()
        asked = {str(FeedKind.CONFIRMATION)} if self.requests else set()
        return self.viewer.owners | names | asked

    @property
    def shows_condition(self) -> bool:
        """Whether they follow how the gateway itself is."""
        return self.viewer.administrator and (not self.about or str(FeedKind.NODE) in self.about)

    def shows(self, event: FeedEvent) -> bool:
        return self._sees(event) and (not self.about or not self.about.isdisjoint(event.subjects))

    def _sees(self, event: FeedEvent) -> bool:
        if event.kind is FeedKind.CONFIRMATION and self.requests and event.state not in ABOUT_ACCESS:
            return True
        return self.viewer.administrator or (event.owner is not None and self.viewer.sees(event.owner))


class Told(NamedTuple):
    """What somebody is told, and where they are then."""

    chunk: bytes
    mark: Bookmark
    owes: bool = False
    """Whether something was left out that is told once nothing can come before it."""


class Telling:
    """Writes what came, and remembers it: of a thousand who follow the same, the first costs more than the
    others.

    How far the feed is, tells how much happens: who does not see all of that is given places that only we can
    read, each new, so that they do not even tell whether anything happened.
    """

    seal: PlaceSeal | None = None
    """Is there once somebody is told who does not see everything."""

    def __init__(self) -> None:
        self._settled: FeedPosition | None = None
        self._kept: dict[tuple[object, ...], tuple[Told, Sequence[FeedEvent]]] = {}

    def read(self, written: str, sight: Sight) -> Bookmark | None:
        """Where somebody was; None for what was not written for them."""
        if not sight.holder:
            return Bookmark.read(written)
        packed = self.seal and self.seal.open(written, sight.holder)
        return Bookmark.unpacked(packed) if packed else None

    def tell(self, mark: Bookmark, sight: Sight, came: Sequence[FeedEvent], settled: FeedPosition) -> Told:
        """What came, as far as somebody sees it and was not told of it."""
        if not came:
            return Told(b"", mark.moved(settled, settled))
        if settled is not self._settled or len(self._kept) >= KEPT_CHUNKS:
            self._settled = settled
            self._kept.clear()
        key = (
            mark.written,
            sight,
            *map(id, came),
        )  # what is kept below lives as long as its id is looked for
        if kept := self._kept.get(key):
            return kept[0]
        told = self._told(mark, sight, came, settled)
        self._kept[key] = told, came
        return told

    def _told(self, mark: Bookmark, sight: Sight, came: Iterable[FeedEvent], settled: FeedPosition) -> Told:
        chunks: list[bytes] = []
        owes = False
        for event in sorted(came, key=_place):
            if not mark.knows(event.place) and sight.shows(event):
                if event.place > settled and mark.is_full:
                    owes = True
                    break
                mark = mark.moved(event.place, settled)
                place = self.written(mark, sight).encode()
                chunks.append(b"event: %s\nid: %s\ndata: %s\n\n" % (event.kind.encode(), place, _data(event)))
        return Told(b"".join(chunks), mark.moved(settled, settled), owes)

    def still_here(self, mark: Bookmark, sight: Sight) -> bytes:
        """That the connection is one, and from where a page would go on: without a line of data a browser
        would not tell its page."""
        return b"event: here\ndata: {}\nid: %s\n\n" % self.written(mark, sight).encode()

    def starting_over(self, mark: Bookmark, sight: Sight) -> bytes:
        return b"event: reset\nid: %s\ndata: {}\n\n" % self.written(mark, sight).encode()

    def written(self, mark: Bookmark, sight: Sight) -> str:
        """A place, as whoever it is may know it."""
        if not sight.holder:
            return mark.written
        assert self.seal
        return self.seal.close(mark.packed, sight.holder)


def _place(event: FeedEvent) -> FeedPosition:
    return event.place


@lru_cache(maxsize=KEPT_DATA)
def _data(event: FeedEvent) -> bytes:
    """The same for everybody who is told of it."""
    return msgspec.json.encode(EventData.of(event))
