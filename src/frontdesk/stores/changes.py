"""Changes: what people do to messages that are there. One that still waits is changed itself."""

from datetime import datetime

import msgspec

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Alter, Work, ring
from frontdesk.model.chats import Cursor, message_digest
from frontdesk.model.turns import Accepted, Admission, Ending, Turn, TurnState
from frontdesk.stores import arrivals, attempts
from frontdesk.stores.feed import tell_turn
from frontdesk.stores.lanes import unlined
from frontdesk.stores.rows import DELIVERIES, TURN, TURNS

WITHDRAWN = "its message was deleted before it was begun"


def change(event: Turn, decide: Alter, cursor: Cursor | None = None) -> Work[Accepted | None]:
    """Take in what was done to the message that the event's source names, once for each event; None where
    nothing is kept of it."""
    if cursor:
        yield from arrivals.move(event, cursor)
    if known := (yield from arrivals.known(event)):
        return Accepted(turn=known, repeated=True)
    digest = message_digest(event.source, event.source.message_id)
    subject = (yield from TURNS.one("turn_of_message", message_digest=digest)) if digest else None
    delivery = None
    first = None
    if subject:
        first = (yield from _first_of(subject)) or subject
        # Whoever begins a turn holds its lane: after this lock it has begun, or waits until we are done.
        yield "lock_lane", {"lane": arrivals.lane_of(first)}
        subject = yield from TURNS.one("turn", turn_id=subject.id)
        first = (yield from _first_of(subject)) if subject else None
    elif digest:
        delivery = yield from DELIVERIES.one("delivery_of_message", message_digest=digest)
    waits = first is not None and first.state is TurnState.QUEUED and not first.attempts
    decided = decide(subject, delivery, waits)
    if decided.kept:
        kept = decided.kept
        return (yield from arrivals.accept(kept, arrivals.lane_of(kept), lambda *_: Admission()))
    if not (decided.amended and first and waits):
        return None
    return (yield from _amend(event, decided.amended, first))


def _first_of(turn: Turn) -> Work[Turn | None]:
    """The turn that a message is run in."""
    return (yield from TURNS.one("turn", turn_id=turn.part_of)) if turn.part_of else turn


def _amend(event: Turn, amended: Turn, first: Turn) -> Work[Accepted]:
    """The message is another from now on. The event is done with that, and known when it comes again."""
    now = event.received_at
    source = msgspec.structs.replace(event.source, message_id=None)  # it is not the message itself
    done = {"session_key": amended.session_key, "state": TurnState.DONE}
    event = msgspec.structs.replace(event, source=source, **done)
    if not (yield from arrivals.insert(event, finished_at=now)):
        return Accepted(turn=event, repeated=True)
    body = TURN.values(msgspec.structs.asdict(amended))["body"]
    yield "amend_turn", {"turn_id": amended.id, "body": body}
    yield from tell_turn(amended, amended.state, now)
    yield ring(Topic.FEED)
    if amended.withdrawn:
        yield from _withdraw(amended, first, now)
    return Accepted(turn=event)


def _withdraw(amended: Turn, first: Turn, now: datetime) -> Work[None]:
    """The turn ends with the last of its messages."""
    others: list[Turn] = []
    if first.parts:
        others = [first, *(yield from TURNS.many("parts_of", turn_id=first.id))]
    if all(each.withdrawn for each in others if each.id != amended.id):
        yield from attempts.end(first, Ending(state=TurnState.INTERRUPTED, error=WITHDRAWN), now)
        yield from unlined(arrivals.lane_of(first))
