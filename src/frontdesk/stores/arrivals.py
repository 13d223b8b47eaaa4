"""Arrivals: messages become turns, each event of a platform's account once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Admit, Work, ring
from frontdesk.model import feed, lanes, turns
from frontdesk.model.chats import Cursor, message_digest
from frontdesk.model.lanes import Lease, Taker
from frontdesk.model.resolution import Opening
from frontdesk.model.sessions import Relation, Session
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import PROMPT, Accepted, Admission, Gathering, Turn, TurnClaim, TurnKind, TurnState
from frontdesk.stores import attempts, cursors, deliveries, gathering
from frontdesk.stores.columns import to_micros
from frontdesk.stores.feed import tell_turn
from frontdesk.stores.lanes import free, line_up, take_turn_lane, unlined
from frontdesk.stores.rows import SESSIONS, TURN, TURNS

SHORT_CHARACTERS = 4_096
"""Longer messages are taken in one by one: together they would want much memory."""

CROWD = 50
"""Of a party with more that wait, messages are taken in one by one, too: there may be too many."""

Arrival = tuple[Turn, str, Admit, Cursor | None, Gathering | None, Taker | None, Opening | None]
AT_REST = Admission()
UNTOUCHED = {
    "session_id": None,
    "started_at": None,
    "finished_at": None,
    "attempts": 0,
    "steers": 0,
    "part_of": None,
}
NOT_BROUGHT = "it is not here, or was sent with another message; attach it again"
OVERHEARD_TOO_MUCH = "too much was overheard after it"


def lane_of(turn: Turn) -> str:
    prompt = turn.kind in PROMPT
    return lanes.control_lane(turn.session_key) if prompt else lanes.turn_lane(turn.session_key)


def accept(
    turn: Turn,
    lane: str,
    admit: Admit,
    cursor: Cursor | None = None,
    gather: Gathering | None = None,
    taker: Taker | None = None,
    opening: Opening | None = None,
) -> Work[Accepted]:
    """Take one message in, and note how far its platform was read. GoneOn when it goes on from a certain
    turn, and something was said since."""
    if turn.follows is not None:
        yield from _check_follows(turn, lane)
    if cursor:
        yield from move(turn, cursor)
    row = _row(turn, lane)
    if taker and (lease := (yield from take_turn_lane(lane, turn.party, taker, row["received_at"]))):
        return (yield from _accept_and_claim(turn, row, lease, admit, opening))
    return (yield from _accept(turn, row, admit, gather))


def _accept(turn: Turn, row: dict[str, Any], admit: Admit, gather: Gathering | None) -> Work[Accepted]:
    lane, due_at = row["lane"], turn.received_at + gather.window if gather else turn.received_at
    values = row | {"due_at": to_micros(due_at)}
    # The lane's row is locked before anything is counted: messages of one conversation come in one after the
    # other, and whoever lets go of the lane has either seen this one or waits until it is there.
    yield from line_up(lane, due_at, turn.party)
    ((holder, queued, crowd, known),) = yield "before_turn", values
    if known:
        return (yield from _repeated(turn, lane))
    if gather and (first := (yield from gathering.join(turn, lane, values, gather))):
        yield ring(Topic.FEED)
        part = msgspec.structs.replace(turn, state=TurnState.JOINED, part_of=first.id)
        return Accepted(turn=part, waiting=max(queued - 1, 0))
    running = (yield from TURNS.one("running_turn", lane=lane)) if holder is not None else None
    admission = admit(running, queued, crowd)
    inserted = yield "insert_turn", {**values, "steers": int(admission.steers)}
    if not inserted:  # it came in twice at once, for two lanes, and the other one was first
        return (yield from _repeated(turn, lane))
    yield from _take_brought(turn)
    if queued and turn.kind is TurnKind.COMMAND:
        yield from gathering.close(turn, lane)
    if running and turn.kind is TurnKind.OBSERVED:
        yield from _drop_overheard(turn, lane)
    if admission.interrupts and running:
        yield from attempts.ask_to_stop(running, turn.sender)
    yield from deliveries.add(admission.notices)
    yield from tell_turn(turn, TurnState.QUEUED, turn.received_at)
    waiting = queued + (running is not None)
    yield ring(Topic.CONTROL if turn.kind in PROMPT else Topic.TURNS, far=False)
    yield ring(Topic.FEED)
    if waiting:
        yield ring(Topic.SIGNALS)
    if admission.notices:
        yield ring(Topic.DELIVERIES, far=False)
    return Accepted(
        turn=msgspec.structs.replace(turn, number=inserted[0][0]),
        waiting=waiting,
        running=running.id if running else None,
    )


def _accept_and_claim(
    turn: Turn, row: dict[str, Any], lease: Lease, admit: Admit, opening: Opening | None
) -> Work[Accepted]:
    """Take a message in whose lane was taken for it; after a crash it came in and was claimed, or neither."""
    now = turn.received_at
    ((_, _, crowd, is_known),) = yield "before_turn", row
    begun = msgspec.structs.replace(turn, state=TurnState.RUNNING, started_at=now, attempts=1)
    admission = Admission() if is_known else admit(None, 0, crowd)
    session = (yield from attempts.fitting(begun, opening)) if opening and not is_known else None
    session_id = session.entry.session_id if session else None
    state = {"state": str(begun.state), "session_id": session_id, "attempts": 1}
    state |= {"started_at": row["received_at"]}
    inserted = [] if is_known else (yield "insert_turn", row | state)
    if not inserted:
        yield from free(lease.lane)
        return Accepted(turn=(yield from known(turn)) or turn, repeated=True)
    if turn.files:
        yield from _take_brought(turn)
    claim = TurnClaim(turn=msgspec.structs.replace(begun, number=inserted[0][0]), lease=lease)
    if session and opening:
        claim = yield from attempts.begin_in(claim, session, opening.message, now)
    if admission.notices:
        yield from deliveries.add(admission.notices)
        yield ring(Topic.DELIVERIES, far=False)
    yield from tell_turn(turn, TurnState.RUNNING, now, session_id)
    yield ring(Topic.FEED)
    return Accepted(turn=claim.turn, claim=claim)


def _check_follows(turn: Turn, lane: str) -> Work[None]:
    """GoneOn when something was said in the conversation after the turn that a message goes on from, that was
    taken back, or people have left or forgotten the session that it was in."""
    # Of two that follow the same turn at once, one goes on from it: whoever has the lane's row.
    yield "lock_lane", {"lane": lane}
    if turn.kind is TurnKind.MESSAGE and (yield from known(turn)) is None:
        followed = yield from TURNS.one("turn", turn_id=turn.follows)
        current = yield from SESSIONS.one("current_session", key=turn.session_key)
        was_in = followed.session_id if followed else None
        left = current is not None and was_in not in (None, current.id) and not _continues(current)
        if was_in and not left:
            before = yield from SESSIONS.one("session", session_id=was_in)
            left = before is None or before.is_forgotten
        values = {"turn_id": turn.follows, "lane": lane, "session_key": turn.session_key}
        if left or (yield "gone_on_since", values):
            raise errors.GoneOn(turn_id=turn.follows)


def _take_brought(turn: Turn) -> Work[None]:
    """The files that its author brought before are part of it now. FileUnavailable when one is gone."""
    for place, each in enumerate(turn.files):
        if each.digest is None:
            continue
        values = {"file_id": each.id, "brought_by": turn.author.id if turn.author else ""}
        now = to_micros(turn.received_at)
        if not (yield "take_brought", {"turn_id": turn.id, "place": place, "now": now, **values}):
            raise errors.FileUnavailable(why=NOT_BROUGHT)


def _continues(session: Session) -> bool:
    """Whether a session follows another one without anybody having wanted to begin anew."""
    return session.entry.was_auto_reset or session.relation in (Relation.BRANCH, Relation.COMPRESSED)


def _drop_overheard(turn: Turn, lane: str) -> Work[None]:
    """Of what is overheard while a turn runs, the oldest is dropped."""
    now = turn.received_at
    values = {"most": turns.MOST_OVERHEARD, "why": OVERHEARD_TOO_MUCH, "now": to_micros(now)}
    for (turn_id,) in (yield "drop_overheard", {"lane": lane, **values}):
        yield from tell_turn(msgspec.structs.replace(turn, id=turn_id), TurnState.DONE, now)


def _repeated(turn: Turn, lane: str) -> Work[Accepted]:
    yield from unlined(lane)
    return Accepted(turn=(yield from known(turn)) or turn, repeated=True)


def known(turn: Turn) -> Work[Turn | None]:
    """What the same event became before."""
    if turn.event_id is None:
        return None
    return (yield from TURNS.one("turn_of_event", **event_of(turn.source, turn.event_id)))


def insert(turn: Turn, finished_at: datetime) -> Work[bool]:
    """Keep an event of which nothing more becomes; False when it came in twice at once."""
    at = to_micros(finished_at)
    return bool((yield "insert_turn", _row(turn, lane_of(turn)) | {"finished_at": at, "due_at": at}))


def accept_together(arrivals: Sequence[Arrival]) -> Work[list[Accepted | None]]:
    """Take in new messages of conversations that are at rest, which most are when many come at once.

    The database does this in few long steps. While it does, the event loop has the interpreter.
    """
    fitting, bodies = _rows_of(arrivals)
    ((last, others),) = yield "not_at_rest", {"turns": _json(fitting.values()), "crowd": CROWD}
    places = list(fitting)
    for index in msgspec.json.decode(others):
        del fitting[places[index]]
    yield "add_turns", {"turns": _json(fitting.values()), "bodies": bodies, "last": last}
    yield "line_up_turns", {"last": last, "kind": str(lanes.LaneKind.TURN)}
    yield "tell_turns", {"last": last, "kind": str(feed.FeedKind.TURN)}
    yield ring(Topic.TURNS, far=False)
    yield ring(Topic.FEED)
    accepted: list[Accepted | None] = [None] * len(arrivals)
    for number, place in enumerate(fitting, last + 1):
        turn, _, _, cursor, *_ = arrivals[place]
        if cursor:
            yield from move(turn, cursor)
        accepted[place] = Accepted(turn=msgspec.structs.replace(turn, number=number))
    return accepted


def move(turn: Turn, cursor: Cursor) -> Work[None]:
    return cursors.move(str(turn.source.platform), turn.source.account, cursor)


def _rows_of(arrivals: Sequence[Arrival]) -> tuple[dict[int, dict[str, Any]], bytearray]:
    """What fits, by its place, and the bodies end to end: JSON would have them written and read once more."""
    fitting: dict[int, dict[str, Any]] = {}
    bodies = bytearray()
    for place in _short_ones(arrivals):
        turn, lane, *_ = arrivals[place]
        values = _row(turn, lane)
        body = values.pop("body")
        fitting[place] = {**values, "start": len(bodies) + 1, "size": len(body)}
        bodies += body
    return fitting, bodies


def _short_ones(arrivals: Sequence[Arrival]) -> Iterable[int]:
    """The places of short messages, each the only one of its conversation and its event."""
    in_lane = Counter([lane for _, lane, *_ in arrivals])
    with_event = Counter([turn.event_id for turn, *_ in arrivals])
    for place, (turn, lane, admit, _, gather, *_) in enumerate(arrivals):
        single = in_lane[lane] == 1 and (turn.event_id is None or with_event[turn.event_id] == 1)
        if gather is None and single and _is_short(turn) and _is_at_rest(admit):
            yield place


def _is_at_rest(admit: Admit) -> bool:
    try:
        return admit(None, 0, CROWD) == AT_REST
    except errors.TooManyWaiting:  # it is counted how many really wait, and decided once more
        return False


def _is_short(turn: Turn) -> bool:
    text_alone = turn.content is None and turn.history is None and turn.kind not in PROMPT
    text_alone = text_alone and turn.instructions is None and turn.follows is None
    text_alone = text_alone and not any(each.digest for each in turn.files)
    return text_alone and len(turn.text) <= SHORT_CHARACTERS


def _json(rows: Iterable[dict[str, Any]]) -> str:
    return msgspec.json.encode(list(rows)).decode()


def event_of(source: SessionSource, event_id: str | None) -> dict[str, Any]:
    """By what a platform's event is known again."""
    return {"platform": str(source.platform), "account": source.account or "", "event_id": event_id}


def _row(turn: Turn, lane: str) -> dict[str, Any]:
    named = turn.source.message_id if turn.kind is not TurnKind.PRESS else None
    digest = message_digest(turn.source, named) if named else None
    values = TURN.values(msgspec.structs.asdict(turn))
    return {
        **UNTOUCHED,
        **values,
        "platform": str(turn.source.platform),
        "account": turn.source.account or "",
        "due_at": values["received_at"],
        "state": str(turn.state),
        "lane": lane,
        "message_digest": digest,
    }
