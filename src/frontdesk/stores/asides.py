"""Turns that were set aside: somebody who runs the gateway has one tried again, or gives it up, once."""

from datetime import datetime

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import TellTurn, Work, ring
from frontdesk.model import asides, lanes, turns
from frontdesk.model.asides import NotAgain
from frontdesk.model.audit import AuditEntry, AuditKind
from frontdesk.model.feed import FeedKind
from frontdesk.model.turns import Turn, TurnState
from frontdesk.stores import audit, deliveries
from frontdesk.stores.columns import clean, to_micros
from frontdesk.stores.feed import announce, tell_turn
from frontdesk.stores.lanes import line_up, unlined
from frontdesk.stores.rows import SESSIONS, TURNS, session_row
from frontdesk.stores.work import Noun, writes

GIVEN_UP = "it was given up by {by}"
BEFORE = turns.MAX_ATTEMPTS - 1
"""So many attempts count when it is tried again: it has one more, and is watched as a suspect is."""


class AsideIntentions(Noun):
    @writes
    def retry(self, turn_id: str, by: str, now: datetime, tell: TellTurn) -> Work[bool]:
        """Try it once more; False when it is not set aside, or not any more. NotTriedAgain."""
        found = yield "set_aside_turn", {"turn_id": turn_id}
        if not found:
            return False
        lane, *row = found[0]
        turn = TURNS.read(tuple(row))
        why = asides.why_not_again(turn) or (yield from _forgotten(turn))
        if turn is None or why:
            raise errors.NotTriedAgain(turn_id=turn_id, why=asides.WHY_NOT_AGAIN[why or NotAgain.UNREADABLE])
        # The lane first, as by whoever claims: of several who want it again, the others find it waiting.
        yield from line_up(lane, now, turn.party)
        if not (yield "retry_turn", {"turn_id": turn_id, "due_at": to_micros(now), "before": BEFORE}):
            yield from unlined(lane)
            return False
        yield "retry_parts", {"turn_id": turn_id}
        yield from _take_up(turn)
        yield from tell_turn(turn, TurnState.QUEUED, now)
        yield from deliveries.add(tell(turn))
        is_prompt = lanes.kind_of(lane) is lanes.LaneKind.CONTROL
        for topic in (Topic.CONTROL if is_prompt else Topic.TURNS, Topic.FEED, Topic.DELIVERIES):
            yield ring(topic)
        yield from _write_down(AuditKind.TURN_RETRIED, turn_id, turn, by, now)
        return True

    @writes
    def give_up(self, turn_id: str, by: str, now: datetime, tell: TellTurn) -> Work[bool]:
        """It is not answered any more, and whoever wrote is told; False when it is not set aside, or not any
        more. NotTriedAgain for a part of another."""
        found = yield "set_aside_turn", {"turn_id": turn_id}
        turn = TURNS.read(tuple(found[0][1:])) if found else None
        if turn and turn.part_of:
            raise errors.NotTriedAgain(turn_id=turn_id, why=asides.WHY_NOT_AGAIN[NotAgain.PART])
        error = clean(GIVEN_UP.format(by=by))
        if not (yield "give_up_turn", {"turn_id": turn_id, "error": error}):
            return False
        yield "give_up_parts", {"turn_id": turn_id}
        if turn:
            yield from tell_turn(turn, TurnState.FAILED, now)
            yield from deliveries.add(tell(turn))
            yield ring(Topic.FEED)
            yield ring(Topic.DELIVERIES)
        else:  # nobody can be told: who it was is in its row
            yield from announce(FeedKind.TURN, now, turn_id=turn_id, state=str(TurnState.FAILED))
        yield from _write_down(AuditKind.TURN_GIVEN_UP, turn_id, turn, by, now)
        return True


def _forgotten(turn: Turn | None) -> Work[NotAgain | None]:
    if turn is None or turn.session_id is None:
        return None
    session = yield from SESSIONS.one("session", session_id=turn.session_id)
    return NotAgain.FORGOTTEN if session and session.is_forgotten else None


def _take_up(turn: Turn) -> Work[None]:
    """Its conversation goes on where it was set aside with the turn, and no other has taken its place."""
    yield "lock_key", {"key": turn.session_key}
    session = yield from SESSIONS.one("current_session_locked", key=turn.session_key)
    if session and session.id == turn.session_id and session.entry.suspended:
        yield "update_session", session_row(session.changed(suspended=False))


def _write_down(kind: AuditKind, turn_id: str, turn: Turn | None, by: str, now: datetime) -> Work[None]:
    facts = {"turn": turn_id} | ({"session": turn.session_id} if turn and turn.session_id else {})
    yield from audit.append(AuditEntry(kind=kind, at=now, actor=by, facts=facts))
