"""The feed: written with what it tells of, read from a place on."""

from datetime import datetime
from typing import TypedDict, Unpack

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Work, ring
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition, News
from frontdesk.model.sessions import Session
from frontdesk.model.turns import Turn, TurnState
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import FEED
from frontdesk.stores.work import Noun, few_or_many, glances, reads, writes_lazily

FEW = 50
"""As many events are looked at without waking a reader."""


class Feed(Noun):
    @glances
    def end(self) -> Work[FeedPosition]:
        (found,) = yield "feed_end", {}
        return FeedPosition(*found)

    async def since(self, place: FeedPosition, limit: int) -> News[FeedEvent]:
        found = await few_or_many(self._engine, "feed_since", FEW, limit, xid=place.xid, number=place.number)
        settled = [row for row in found if row[-1]]
        behind = FeedPosition(*settled[-1][-3:-1]) if settled else place
        told = [event for event in map(FEED.read, found) if event]
        return News(
            [event for event in told if event.place <= behind],
            behind,
            [event for event in told if event.place > behind],
        )

    @reads
    def goes_on_from(self, place: FeedPosition) -> Work[bool]:
        """Whether all that came after a place is still there: it is neither older than what is kept, nor of
        another store that was further."""
        (end,) = yield "feed_end", {}
        oldest = yield "feed_begin", {}
        begin = FeedPosition(*oldest[0]) if oldest else FeedPosition()
        return place <= FeedPosition(*end) and (place >= begin or begin.number <= 1)

    @writes_lazily
    def tell_checkpoint(self, at: datetime, **named: Unpack["Named"]) -> Work[None]:
        """The working directory was kept, or put back: what is kept of it is not in the store."""
        return announce(FeedKind.CHECKPOINT, at, **named)

    @writes_lazily
    def prune(self, before: datetime) -> Work[None]:
        """Forget what happened before that time."""
        yield "prune_feed", {"before": to_micros(before)}


class Named(TypedDict, total=False):
    """What an event names. Whose it is, is said where no session tells."""

    session_key: str | None
    session_id: str | None
    turn_id: str | None
    delivery_id: str | None
    confirmation_id: str | None
    state: str | None
    owner: str | None


NOTHING = dict.fromkeys(Named.__annotations__)


def announce(kind: FeedKind, at: datetime, **named: Unpack[Named]) -> Work[None]:
    """Write into the feed, in the same transaction as what it tells of, and ring for whoever follows."""
    yield "tell_feed", {**NOTHING, **named, "at": to_micros(at), "kind": str(kind)}
    yield ring(Topic.FEED)


def tell_confirmation(confirmation_id: str | None, state: str, at: datetime) -> Work[None]:
    """Write into the feed what happened to a request, or to what decides about requests, and ring."""
    values = {"at": to_micros(at), "kind": str(FeedKind.CONFIRMATION), "state": state}
    yield "tell_confirmation", {**values, "confirmation_id": confirmation_id}
    yield ring(Topic.FEED)


def tell_session(session: Session, at: datetime) -> Work[None]:
    """Write into the feed that a session is another, or another one's key has it now."""
    named = {"session_key": session.entry.session_key, "session_id": session.id}
    yield from announce(FeedKind.SESSION, at, state=str(session.status), **named)


def tell_turn(turn: Turn, state: TurnState, at: datetime, session_id: str | None = None) -> Work[None]:
    """Write into the feed that a turn is in another state. Whoever tells more of it rings."""
    values = {"session_key": turn.session_key, "session_id": session_id or turn.session_id}
    values |= {"turn_id": turn.id, "state": str(state)}
    yield "tell_feed", {**NOTHING, **values, "at": to_micros(at), "kind": str(FeedKind.TURN)}
