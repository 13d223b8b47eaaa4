"""The feed: written with what it tells of, read from a place on."""

from datetime import datetime

from frontdesk.contracts.store import Row, Work
from frontdesk.model.feed import FeedEvent, FeedKind, FeedPosition
from frontdesk.model.turns import Turn, TurnState
from frontdesk.stores.rows import from_micros, to_micros
from frontdesk.stores.work import Noun, first, reads, writes_lazily


class Feed(Noun):
    @reads
    def end(self) -> Work[FeedPosition]:
        found = first((yield "feed_end", {}))
        return FeedPosition(*found) if found else FeedPosition()

    @reads
    def since(self, place: FeedPosition, limit: int) -> Work[list[FeedEvent]]:
        found = yield "feed_since", {"xid": place.xid, "number": place.number, "limit": limit}
        return [_event(each) for each in found]

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


def _event(found: Row) -> FeedEvent:
    xid, number, at, kind, session_key, session_id, turn_id, delivery_id, state = found
    return FeedEvent(
        place=FeedPosition(xid, number),
        at=from_micros(at),
        kind=FeedKind(kind),
        session_key=session_key,
        session_id=session_id,
        turn_id=turn_id,
        delivery_id=delivery_id,
        state=state,
    )
