"""The feed: written with what it tells of, read from a place on."""

from datetime import datetime

from frontdesk.contracts.store import Work
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition, News
from frontdesk.model.turns import Turn, TurnState
from frontdesk.stores.columns import to_micros
from frontdesk.stores.rows import FEED
from frontdesk.stores.work import Noun, reads, writes_lazily


class Feed(Noun):
    @reads
    def end(self) -> Work[FeedPosition]:
        (found,) = yield "feed_end", {}
        return FeedPosition(*found)

    @reads
    def since(self, place: FeedPosition, limit: int) -> Work[News[FeedEvent]]:
        found = yield "feed_since", {"xid": place.xid, "number": place.number, "limit": limit}
        settled = [row for row in found if row[-1]]
        behind = FeedPosition(*settled[-1][-3:-1]) if settled else place
        told = [event for event in map(FEED.read, found) if event]
        return News(
            [event for event in told if event.place <= behind],
            behind,
            [event for event in told if event.place > behind],
        )

    @writes_lazily
    def prune(self, before: datetime) -> Work[None]:
        """Forget what happened before that time."""
        yield "prune_feed", {"before": to_micros(before)}


def tell(
    kind: FeedKind,
    at: datetime,
    *,
    session_key: str | None = None,
    session_id: str | None = None,
    turn_id: str | None = None,
    delivery_id: str | None = None,
    state: str | None = None,
) -> Work[None]:
    """Write into the feed, in the same transaction as what it tells of."""
    values = {"session_key": session_key, "session_id": session_id, "turn_id": turn_id}
    told = {"at": to_micros(at), "kind": str(kind), "delivery_id": delivery_id, "state": state}
    yield "tell_feed", {**values, **told}


def tell_turn(turn: Turn, state: TurnState, at: datetime, session_id: str | None = None) -> Work[None]:
    """Write into the feed that a turn is in another state."""
    values = {"session_key": turn.session_key, "session_id": session_id or turn.session_id}
    yield from tell(FeedKind.TURN, at, turn_id=turn.id, state=str(state), **values)
