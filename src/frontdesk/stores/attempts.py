"""Attempts: what becomes of a turn inside a transaction, from the moment it is taken until it ends."""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile

import msgspec

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Row, TellTurn, Work, ring
from frontdesk.logs import get_logger
from frontdesk.model import lanes, turns
from frontdesk.model.deliveries import Delivery, DeliveryClaim
from frontdesk.model.feed import FeedKind
from frontdesk.model.lanes import Lease, Taker
from frontdesk.model.messages import Message
from frontdesk.model.resolution import Opening
from frontdesk.model.sessions import RESTART_INTERRUPTED, Session
from frontdesk.model.sources import short_name
from frontdesk.model.turns import Begun, Blame, Ending, Turn, TurnClaim, TurnKind, TurnState
from frontdesk.stores import appending, deliveries, gathering, transcripts
from frontdesk.stores.columns import clean, read_body, to_micros
from frontdesk.stores.feed import announce, tell_turn
from frontdesk.stores.lanes import hold, unlined
from frontdesk.stores.rows import SESSIONS, TURN, TURNS, UNREADABLE_ROW, session_row
from frontdesk.stores.work import EVER, value

STOPPED = "it was stopped while it waited to be run again"
LOOKED_BACK = 10
"""How many rows too many are looked for at once."""

log = get_logger(__name__)


def take_first(lane: str, now: datetime, set_aside: TellTurn) -> Work[Turn | None]:
    """The first turn of a lane; those that were begun too often are set aside on the way."""
    while found := (yield "claim_first", {"lane": lane, "now": to_micros(now)}):
        turn = TURNS.read(found[0])
        if turn is None:
            yield from _set_aside_unread(found[0][0], now)
        elif turn.tries <= turns.MAX_ATTEMPTS:
            return (yield from gathering.whole(turn)) if turn.parts else turn
        else:
            yield from _set_aside(turn, set_aside(turn), now)
    return None


def _set_aside_unread(turn_id: str, now: datetime) -> Work[None]:
    """A damaged row: nobody can be told, since who it was is in it."""
    values = {"state": str(TurnState.SET_ASIDE), "session_id": None, "finished_at": to_micros(now)}
    yield "settle_turn", {"turn_id": turn_id, "error": UNREADABLE_ROW, "tally": None, **values}
    yield "settle_parts", {"turn_id": turn_id, **values}
    yield from announce(FeedKind.TURN, now, turn_id=turn_id, state=str(TurnState.SET_ASIDE))


def stop_turn(
    session_key: str, now: datetime, notices: TellTurn | None = None, by: str = "", owner: str | None = None
) -> Work[Turn | None]:
    """The running turn of a conversation is to stop, one that waits to be run again ends; which one. Where an
    ``owner`` is given, only if it was begun in a session of theirs."""
    lane = lanes.turn_lane(session_key)
    # The lane is locked first: whoever claims a turn of it has done so, or finds the retry ended.
    yield "lock_lane", {"lane": lane}
    yield ring(Topic.SIGNALS)
    running = yield from TURNS.one("running_turn", lane=lane)
    retry = None if running else (yield from TURNS.one("retry_in", lane=lane))
    found = running or retry
    if found is None or (owner is not None and (yield from _owner_of(found)) != owner):
        return None
    stopping = yield from ask_to_stop(found, by)
    if retry is None:
        return stopping
    said = tuple(notices(retry)) if notices else ()
    stopped = Ending(state=TurnState.INTERRUPTED, session_id=retry.session_id, deliveries=said, error=STOPPED)
    yield from end(retry, stopped, now)
    yield from unlined(lane)
    yield ring(Topic.FEED)
    yield ring(Topic.DELIVERIES, far=False)
    return retry


def _owner_of(turn: Turn) -> Work[str | None]:
    """Whose the session is that a turn was begun in."""
    found = (yield from SESSIONS.one("session", session_id=turn.session_id)) if turn.session_id else None
    return found.owner if found else None


def defer(turn: Turn, due_at: datetime, now: datetime) -> Work[None]:
    """It was not begun after all."""
    if turn.error != turns.HELD_BACK:
        log.warning("turn_held_back", turn=turn.id, why=turns.HELD_BACK)
        yield from tell_turn(turn, TurnState.QUEUED, now)
        yield ring(Topic.FEED)
    yield "defer_turn", {"turn_id": turn.id, "due_at": to_micros(due_at), "why": turns.HELD_BACK}


def _set_aside(turn: Turn, notices: Sequence[Delivery], now: datetime) -> Work[None]:
    error = f"it was begun {turns.MAX_ATTEMPTS} times and never ended"
    yield from settle(turn, Ending(state=TurnState.SET_ASIDE, error=error), now)
    yield from deliveries.add(notices)
    yield ring(Topic.FEED)
    yield ring(Topic.DELIVERIES)
    session = yield from _locked(turn.session_id)
    if session:
        yield "update_session", session_row(session.unmarked().changed(suspended=True))
        yield from appending.close_calls(session.id, now)


def begin(
    claim: TurnClaim,
    session_id: str,
    messages: Sequence[Message],
    starts: bool,
    notices: Sequence[Delivery],
    now: datetime,
) -> Work[Begun]:
    yield from hold(claim.lease)
    turn = claim.turn
    session = (yield from _locked(session_id)) if starts else None
    if session:
        told = msgspec.structs.replace(session, started=True, reset_told=True)
        yield "update_session", session_row(told)
    yield from transcripts.append(session_id, messages, now)
    yield "place_turn", {"turn_id": turn.id, "session_id": session_id}
    yield from deliveries.add(notices)
    yield from tell_rows(turn, session_id, now)
    if notices:
        yield ring(Topic.DELIVERIES, far=False)
    ((last, count),) = yield "turn_standing", {"session_id": session_id, "turn_id": turn.id}
    return Begun(position=0 if last is None else last + 1, message_count=count)


def begin_fitting(claim: TurnClaim, opening: Opening, now: datetime) -> Work[TurnClaim]:
    """Begin a turn right where it is claimed, if its opening fits the session as it is by now."""
    session = yield from fitting(claim.turn, opening)
    if session is None:
        return claim
    yield "place_turn", {"turn_id": claim.turn.id, "session_id": session.id}
    return (yield from begin_in(claim, session, opening.message, now))


def fitting(turn: Turn, opening: Opening) -> Work[Session | None]:
    """The session of a turn as it is by now, if its opening fits that."""
    # The lane is locked, then the key, then the session, as by whoever rotates. But a claim may begin several
    # turns, and somebody who takes one of their sessions to another's key asks for the same locks in another
    # order. So a claim waits for neither: whatever others have is begun later, by itself.
    if (yield "busy_key", {"key": turn.session_key}):
        return None
    session = yield from SESSIONS.one("current_session_free", key=turn.session_key)
    if session is None or session.entry.session_key != turn.session_key or not opening.fits(turn, session):
        return None
    return session


def begin_in(claim: TurnClaim, session: Session, message: Message, now: datetime) -> Work[TurnClaim]:
    """Write the message of a turn into the session that its opening fits."""
    session_id, count = session.entry.session_id, session.entry.message_count + message.counts
    added = len((yield "append_message", transcripts.append_values(session_id, message, now)))
    if not added:
        added = yield from appending.append_any(session_id, [message], now, is_first_attempt=True)
        ((_, count),) = yield "turn_standing", {"session_id": session_id, "turn_id": claim.turn.id}
    begun = Begun(position=added, message_count=count)
    yield ring(Topic.FEED)  # for the claim's own row, which says that the turn runs
    return msgspec.structs.replace(
        claim, session=session.changed(updated_at=now, message_count=count), begun=begun
    )


def end(
    turn: Turn, ending: Ending, now: datetime, taker: Taker | None = None, lease: Lease | None = None
) -> Work[DeliveryClaim | None]:
    """End a turn; one that has ended stays as it is. What is taken to be sent at once."""
    if not (yield from settle(turn, ending, now, lease)):
        return None
    if ending.session_id:
        yield from _write_rows(turn, ending.session_id, ending, now)
    if taker and ending.deliveries:
        return (yield from deliveries.add_and_take(ending.deliveries, taker))
    yield from deliveries.add(ending.deliveries)
    return None


def _write_rows(turn: Turn, session_id: str, ending: Ending, now: datetime) -> Work[None]:
    yield from transcripts.append(
        session_id, ending.messages, now, ending.usage, ends=True, is_first_attempt=turn.attempts == 1
    )
    if turn.kind is TurnKind.OBSERVED:
        yield from _drop_overheard(session_id)
    if not ending.clears_mark and not ending.consumes_reset:
        return
    session = yield from _locked(session_id)
    if session:
        session = session.unmarked() if ending.clears_mark else session
        session = session.consumed() if ending.consumes_reset else session
        yield "update_session", session_row(session)


def _drop_overheard(session_id: str) -> Work[None]:
    """Of what is said in a group between two turns, only the newest stays: a lively one would fill the
    transcript, and the agent's prompt."""
    limit = turns.MOST_OVERHEARD + LOOKED_BACK
    tail = yield "live_tail", {"session_id": session_id, "before": EVER, "limit": limit}
    heard = takewhile(lambda row: (read_body(row[2]) or {}).get("observed") is True, tail)
    old = [position for position, _, _ in heard][turns.MOST_OVERHEARD :]
    if not old:
        return
    gone = yield "drop_overheard_rows", {"session_id": session_id, "first": old[-1], "last": old[0]}
    counted_from = yield from value("counted_from", session_id=session_id)
    dropped = sum(position >= counted_from for (position,) in gone)
    yield "count_dropped", {"session_id": session_id, "dropped": dropped}


def ask_to_stop(turn: Turn, by: str) -> Work[Turn | None]:
    """A turn that runs, or waits to be run again, is to stop; who wanted that first is written down."""
    if by and turn.stopped_by is None:
        stopped = msgspec.structs.replace(turn, stopped_by=short_name(by))
        body = TURN.values(msgspec.structs.asdict(stopped))["body"]
        yield "amend_turn", {"turn_id": turn.id, "body": body}
    return (yield from TURNS.one("request_stop", turn_id=turn.id))


def settle(turn: Turn, ending: Ending, now: datetime, lease: Lease | None = None) -> Work[bool]:
    """Whether it had not ended before; under the lease where its lane is not locked by now."""
    tally = msgspec.json.encode(ending.tally).decode() if ending.tally else None
    values = {
        "turn_id": turn.id,
        "state": str(ending.state),
        "session_id": ending.session_id,
        "finished_at": to_micros(now),
        "error": ending.error and clean(ending.error),
        "tally": tally,
    }
    if lease is None:
        settled = yield "settle_turn", values
    elif not (settled := (yield "settle_held_turn", values | msgspec.structs.asdict(lease))):
        yield from hold(lease)  # it is lost; else the turn had ended
    if settled:
        yield from tell_turn(turn, ending.state, now, ending.session_id)
    if settled and turn.parts:
        yield from _settle_parts(turn, ending, now)
    return bool(settled)


def _settle_parts(turn: Turn, ending: Ending, now: datetime) -> Work[None]:
    ended = {"state": str(ending.state), "session_id": ending.session_id, "finished_at": to_micros(now)}
    for (part_id,) in (yield "settle_parts", {"turn_id": turn.id, **ended}):
        part = msgspec.structs.replace(turn, id=part_id)
        yield from tell_turn(part, ending.state, now, ending.session_id)


def mark(session_id: str | None, reason: str, now: datetime) -> Work[None]:
    """To be resumed; one that is suspended or marked stays as it is."""
    session = yield from _locked(session_id)
    if session and not session.entry.suspended and not session.entry.resume_pending:
        yield "update_session", session_row(session.marked(reason, now))


def judge_node(gone: int, ran: Sequence[Row]) -> Work[Blame]:
    """What becomes of the attempts of a node that is gone. When it had been told to stop, none counts."""
    readable = [turn for turn in map(TURNS.read, ran) if turn]
    if (yield from value("stop_of", node=gone)) is not None:
        return Blame(excused=frozenset(turn.id for turn in readable))
    return turns.judge(readable)


def put_back(found: Row, blame: Blame, seen_at: datetime, now: datetime) -> Work[list[Turn]]:
    """It is to be run again; the turn, when its row can be read."""
    turn_id = found[0]
    values = {"uncounted": int(turn_id in blame.excused), "doubted": int(turn_id in blame.doubted)}
    times = {"due_at": to_micros(now), "interrupted_at": to_micros(seen_at)}
    yield "requeue_turn", {"turn_id": turn_id, "error": None, **values, **times}
    turn = TURNS.read(found)
    if turn is None:
        return []
    yield from tell_turn(turn, TurnState.QUEUED, now)
    yield from mark(turn.session_id, RESTART_INTERRUPTED, seen_at)
    return [msgspec.structs.replace(turn, state=TurnState.QUEUED)]


def tell_rows(turn: Turn, session_id: str, now: datetime) -> Work[None]:
    """The session has new rows of a turn."""
    key = turn.session_key
    yield from announce(FeedKind.TRANSCRIPT, now, session_key=key, session_id=session_id, turn_id=turn.id)


def _locked(session_id: str | None) -> Work[Session | None]:
    """A session, to be changed."""
    return (yield from SESSIONS.one("session_locked", session_id=session_id)) if session_id else None
