"""Turns: taken in once, run one after the other, ended with everything that belongs to them."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Admit, Decide, NewId, TellReset, TellTurn
from frontdesk.logs import get_logger
from frontdesk.model import feed, lanes
from frontdesk.model.deliveries import Delivery
from frontdesk.model.messages import Message
from frontdesk.model.moves import Settled, Start
from frontdesk.model.sessions import Session
from frontdesk.model.turns import (
    HELD_BACK,
    MAX_ATTEMPTS,
    Accepted,
    Again,
    Begun,
    Blame,
    Ending,
    Signals,
    Turn,
    TurnClaim,
    TurnKind,
    TurnState,
    judge,
)
from frontdesk.stores import deliveries, sessions, transcripts
from frontdesk.stores.arrivals import arrival, lane_of
from frontdesk.stores.bells import Bells
from frontdesk.stores.lanes import claim, fence, free, hold, renew, tell, tell_turn, unlined
from frontdesk.stores.mail import UNREADABLE_ROW, find_turn, read_turn
from frontdesk.stores.rows import changed_row, clean, maybe_time, read_session, to_micros
from frontdesk.stores.work import Engine, Row, Work, first, row, rows

STOPPED = "it was stopped while it waited to be run again"
INTERRUPTED_REASON = "restart_interrupted"
SUSPECT_PAUSE = timedelta(seconds=0.5)
"""After which a turn is looked at again that is held back."""

log = get_logger(__name__)


class Turns:
    def __init__(self, engine: Engine, bells: Bells) -> None:
        self._engine = engine
        self._bells = bells

    async def accept(self, turn: Turn, admit: Admit) -> Accepted:
        accepted = await self._engine.write(arrival(turn, admit))
        if not accepted.repeated:
            self._bells.ring(Topic.CONTROL if turn.kind is TurnKind.CONTROL else Topic.TURNS, far=False)
            self._bells.ring(Topic.FEED)
        if accepted.waiting:
            self._bells.ring(Topic.SIGNALS)
        if accepted.told:
            self._bells.ring(Topic.DELIVERIES, far=False)
        return accepted

    async def claim(
        self,
        node: int,
        kind: lanes.LaneKind,
        limit: int,
        now: datetime,
        set_aside: TellTurn,
        *,
        beside: Sequence[Turn] = (),
        lease_seconds: float = lanes.LEASE_SECONDS,
    ) -> list[TurnClaim]:
        # Never lazily: a claim that a server lost would have its token given out a second time.
        start = partial(_claim, node, kind, limit, now, set_aside, beside, lease_seconds)
        return await self._engine.write(start)

    async def begin(
        self,
        claim: TurnClaim,
        session_id: str,
        messages: Sequence[Message],
        now: datetime,
        *,
        starts: bool = False,
        notices: Sequence[Delivery] = (),
    ) -> Begun:
        start = partial(_begin, claim, session_id, messages, starts, notices, now)
        begun = await self._engine.write(start, supersedes=session_id)
        self._bells.ring(Topic.FEED)
        if notices:
            self._bells.ring(Topic.DELIVERIES, far=False)
        return begun

    async def record(
        self,
        claim: TurnClaim,
        session_id: str,
        messages: Sequence[Message],
        now: datetime,
        absorbed: Sequence[Turn] = (),
    ) -> None:
        await self._engine.write(partial(_record, claim, session_id, messages, absorbed, now))
        self._bells.ring(Topic.FEED)

    async def mark(self, claim: TurnClaim, state: TurnState, now: datetime) -> None:
        await self._engine.write(partial(_mark_turn, claim, state, now), lazy=True)
        self._bells.ring(Topic.FEED)

    async def acquit(self, claim: TurnClaim) -> None:
        await self._engine.write(partial(_acquit, claim), lazy=True)

    async def keep_draft(self, claim: TurnClaim, message_id: str) -> None:
        await self._engine.write(partial(_keep_draft, claim, message_id))

    async def finish(self, claim: TurnClaim, ending: Ending, now: datetime) -> None:
        claim.turn.check_move(ending.state)
        more = await self._engine.write(partial(_finish, claim, ending, now))
        self._bells.ring(Topic.FEED)
        if ending.deliveries:
            self._bells.ring(Topic.DELIVERIES, far=False)
        if more:
            self._ring_for(claim)

    async def release(self, claim: TurnClaim) -> None:
        if await self._engine.write(partial(_release, claim.lease)):
            self._ring_for(claim)

    async def rotate(
        self, claim: TurnClaim, decide: Decide, new_id: NewId, notices: TellReset, now: datetime
    ) -> Settled:
        settled = await self._engine.write(partial(_rotate, claim, decide, new_id, notices, now))
        self._bells.ring(Topic.FEED)
        self._bells.ring(Topic.DELIVERIES, far=False)
        self._ring_for(claim)
        return settled

    async def requeue(self, claim: TurnClaim, again: Again, now: datetime) -> None:
        await self._engine.write(partial(_requeue, claim, again, now))
        self._ring_for(claim)

    async def request_stop(
        self, session_key: str, now: datetime, tell: TellTurn | None = None
    ) -> Turn | None:
        stopped = await self._engine.write(partial(_request_stop, lanes.turn_lane(session_key), now, tell))
        self._bells.ring(Topic.SIGNALS)
        if stopped and stopped.state is TurnState.QUEUED:
            self._bells.ring(Topic.FEED)
            self._bells.ring(Topic.DELIVERIES, far=False)
        return stopped

    async def break_off(self, turn: Turn, ending: Ending, now: datetime) -> Turn | None:
        """End the running turn of a conversation over its holder's head, whose writes are refused then."""
        broken = await self._engine.write(partial(_break_off, turn, ending, now))
        self._bells.ring(Topic.SIGNALS)
        self._bells.ring(Topic.TURNS)
        self._bells.ring(Topic.FEED)
        self._bells.ring(Topic.DELIVERIES, far=False)
        return broken

    async def signals(self, node: int) -> list[Signals]:
        return await self._engine.read(partial(_signals, node))

    async def recover(
        self,
        gone: int,
        repeatable: Callable[[Delivery], bool],
        now: datetime,
        *,
        overdue: bool = False,
        lease_seconds: float = lanes.LEASE_SECONDS,
    ) -> list[Turn]:
        query = "overdue_lanes" if overdue else "lanes_of"
        start = partial(_recover, query, gone, repeatable, now, lease_seconds)
        recovered = await self._engine.write(start)
        for topic in (Topic.TURNS, Topic.CONTROL, Topic.DELIVERIES):
            self._bells.ring(topic, far=False)
        return recovered

    async def hasten(self, now: datetime) -> None:
        await self._engine.write(partial(_hasten, now), lazy=True)
        for topic in (Topic.TURNS, Topic.CONTROL, Topic.DELIVERIES):
            self._bells.ring(topic, far=False)

    async def renew(
        self, leases: Sequence[lanes.Lease], lease_seconds: float = lanes.LEASE_SECONDS
    ) -> set[lanes.Lease]:
        return await self._engine.write(partial(renew, leases, lease_seconds), lazy=True)

    async def held(self, node: int) -> set[lanes.Lease]:
        found = await self._engine.read(partial(rows, "held_lanes", node=node))
        return {lanes.Lease(lane=name, node=node, token=token) for name, token in found}

    async def prune(self, before: datetime, limit: int) -> int:
        values = {"before": to_micros(before), "limit": limit}
        return len(await self._engine.write(partial(rows, "prune_turns", **values), lazy=True))

    async def find(self, turn_id: str) -> Turn | None:
        return await self._engine.read(partial(find_turn, "turn", turn_id=turn_id))

    async def open_turns(self, session_key: str, limit: int) -> list[Turn]:
        lane, control = lanes.turn_lane(session_key), lanes.control_lane(session_key)
        return await self._engine.read(partial(_many, "open_turns", lane=lane, control=control, limit=limit))

    async def counts(self) -> dict[str, int]:
        found = await self._engine.read(partial(rows, "count_turns"))
        return {state: int(number) for state, number in found}

    async def held_back(self) -> int:
        ((number,),) = await self._engine.read(partial(rows, "count_held_back", why=HELD_BACK))
        return int(number)

    async def next_due(self, kind: lanes.LaneKind) -> datetime | None:
        found = await self._engine.read(partial(row, "next_due", kind=str(kind)))
        return maybe_time(found[0]) if found else None

    def _ring_for(self, claim: TurnClaim) -> None:
        control = lanes.kind_of(claim.lease.lane) is lanes.LaneKind.CONTROL
        self._bells.ring(Topic.CONTROL if control else Topic.TURNS, far=False)


def _many(query: str, **values: Any) -> Work[list[Turn]]:
    turns = map(read_turn, (yield query, values))
    return [turn for turn in turns if turn is not None]


def _claim(
    node: int,
    kind: lanes.LaneKind,
    limit: int,
    now: datetime,
    set_aside: TellTurn,
    beside: Sequence[Turn],
    lease_seconds: float,
) -> Work[list[TurnClaim]]:
    claims: list[TurnClaim] = []
    for lease in (yield from claim(kind, node, limit, now, lease_seconds)):
        turn = yield from _take_first(lease.lane, now, set_aside)
        if turn and not turn.may_begin_beside([*beside, *(each.turn for each in claims)]):
            yield from _defer(turn, now + SUSPECT_PAUSE)
            turn = None
        if turn is None:
            yield from free(lease.lane)
            continue
        claims.append(TurnClaim(turn=turn, lease=lease))
        yield from tell_turn(turn, TurnState.RUNNING, now)
    return claims


def _take_first(lane: str, now: datetime, set_aside: TellTurn) -> Work[Turn | None]:
    """The first turn of a lane; those that were begun too often are set aside on the way."""
    while found := (first((yield "claim_first", {"lane": lane, "now": to_micros(now)}))):
        turn = read_turn(found)
        if turn is None:
            yield from _set_aside_unread(found[1], now)
        elif turn.tries <= MAX_ATTEMPTS:
            return turn
        else:
            yield from _set_aside(turn, set_aside(turn), now)
    return None


def _set_aside_unread(turn_id: str, now: datetime) -> Work[None]:
    """A damaged row: nobody can be told, since who it was is in it."""
    values = {"state": str(TurnState.SET_ASIDE), "session_id": None, "finished_at": to_micros(now)}
    yield "settle_turn", {"turn_id": turn_id, "error": UNREADABLE_ROW, **values}


def _defer(turn: Turn, due_at: datetime) -> Work[None]:
    """It was not begun after all."""
    if turn.error != HELD_BACK:
        log.warning("turn_held_back", turn=turn.id, why=HELD_BACK)
    yield "defer_turn", {"turn_id": turn.id, "due_at": to_micros(due_at), "why": HELD_BACK}


def _set_aside(turn: Turn, notices: Sequence[Delivery], now: datetime) -> Work[None]:
    error = f"it was begun {MAX_ATTEMPTS} times and never ended"
    yield from _settle(turn, Ending(state=TurnState.SET_ASIDE, error=error), now)
    yield from deliveries.add(notices)
    session = yield from _session(turn.session_id)
    if session:
        yield "update_session", changed_row(session.unmarked().changed(suspended=True))
        yield from transcripts.close_calls(session.id, now)


def _session(session_id: str | None) -> Work[Session | None]:
    """A session, to be changed."""
    found = (first((yield "session_locked", {"session_id": session_id}))) if session_id else None
    return read_session(found) if found else None


def _begin(
    claim: TurnClaim,
    session_id: str,
    messages: Sequence[Message],
    starts: bool,
    notices: Sequence[Delivery],
    now: datetime,
) -> Work[Begun]:
    yield from hold(claim.lease)
    turn = claim.turn
    session = (yield from _session(session_id)) if starts else None
    if session:
        told = msgspec.structs.replace(session, started=True, reset_told=True)
        yield "update_session", changed_row(told)
    yield from transcripts.append(session_id, messages, now)
    yield "place_turn", {"turn_id": turn.id, "session_id": session_id}
    yield from deliveries.add(notices)
    yield from tell(
        feed.FeedKind.TRANSCRIPT, now, session_key=turn.session_key, session_id=session_id, turn_id=turn.id
    )
    ((last, count),) = yield "turn_standing", {"session_id": session_id, "turn_id": turn.id}
    return Begun(position=0 if last is None else last + 1, message_count=count)


def _record(
    claim: TurnClaim, session_id: str, messages: Sequence[Message], absorbed: Sequence[Turn], now: datetime
) -> Work[None]:
    yield from hold(claim.lease)
    yield from transcripts.append(session_id, messages, now)
    for turn in absorbed:
        yield from _settle(turn, Ending(state=TurnState.DONE, session_id=session_id), now)
    turn = claim.turn
    yield from tell(
        feed.FeedKind.TRANSCRIPT, now, session_key=turn.session_key, session_id=session_id, turn_id=turn.id
    )


def _mark_turn(claim: TurnClaim, state: TurnState, now: datetime) -> Work[None]:
    yield from hold(claim.lease)
    if (yield "mark_turn", {"turn_id": claim.turn.id, "state": str(state)}):
        yield from tell_turn(claim.turn, state, now)


def _acquit(claim: TurnClaim) -> Work[None]:
    yield from hold(claim.lease)
    yield "acquit_turn", {"turn_id": claim.turn.id}


def _keep_draft(claim: TurnClaim, message_id: str) -> Work[None]:
    yield from hold(claim.lease)
    yield "keep_draft", {"turn_id": claim.turn.id, "draft": message_id}


def _finish(claim: TurnClaim, ending: Ending, now: datetime) -> Work[bool]:
    yield from hold(claim.lease)
    yield from _end(claim.turn, ending, now)
    if ending.holds_lane:
        return False
    return (yield from free(claim.lease.lane))


def _end(turn: Turn, ending: Ending, now: datetime) -> Work[None]:
    """End a turn; one that has ended stays as it is."""
    if not (yield from _settle(turn, ending, now)):
        return
    if ending.session_id:
        yield from _write_rows(ending.session_id, ending, now)
    yield from deliveries.add(ending.deliveries)


def _write_rows(session_id: str, ending: Ending, now: datetime) -> Work[None]:
    yield from transcripts.append(session_id, ending.messages, now, ending.usage, ends=True)
    if not ending.clears_mark and not ending.consumes_reset:
        return
    session = yield from _session(session_id)
    if session:
        session = session.unmarked() if ending.clears_mark else session
        session = session.consumed() if ending.consumes_reset else session
        yield "update_session", changed_row(session)


def _settle(turn: Turn, ending: Ending, now: datetime) -> Work[bool]:
    """Whether it had not ended before."""
    settled = first(
        (
            yield (
                "settle_turn",
                {
                    "turn_id": turn.id,
                    "state": str(ending.state),
                    "session_id": ending.session_id,
                    "finished_at": to_micros(now),
                    "error": clean(ending.error),
                },
            )
        )
    )
    if settled:
        yield from tell_turn(turn, ending.state, now, ending.session_id)
    return settled is not None


def _release(lease: lanes.Lease) -> Work[bool]:
    yield from hold(lease)
    return (yield from free(lease.lane))


def _rotate(
    claim: TurnClaim, decide: Decide, new_id: NewId, notices: TellReset, now: datetime
) -> Work[Settled]:
    yield from hold(claim.lease)
    key = claim.turn.session_key
    settled = yield from sessions.settle(key, decide, now, new_id)
    if settled.session and isinstance(settled.move, Start):
        yield from deliveries.add(notices(settled.session))
        yield from tell(feed.FeedKind.SESSION, now, session_key=key, session_id=settled.session.id)
    yield from free(claim.lease.lane)
    return settled


def _requeue(claim: TurnClaim, again: Again, now: datetime) -> Work[None]:
    yield from hold(claim.lease)
    values = {
        "due_at": to_micros(again.due_at),
        "uncounted": int(not again.counts),
        "doubted": 0,
        "error": clean(again.error),
        "interrupted_at": to_micros(now),
    }
    if (yield "requeue_turn", {"turn_id": claim.turn.id, **values}):
        if again.session_id:
            yield from _leave_open(again.session_id, again, now)
        yield from tell_turn(claim.turn, TurnState.QUEUED, now)
    yield from free(claim.lease.lane)


def _leave_open(session_id: str, again: Again, now: datetime) -> Work[None]:
    """A session whose turn is to be run again."""
    if again.usage:
        yield from transcripts.append(session_id, (), now, again.usage)
    if again.resume_reason:
        yield from _mark(session_id, again.resume_reason, now)


def _mark(session_id: str | None, reason: str, now: datetime) -> Work[None]:
    """To be resumed; one that is suspended or marked stays as it is."""
    session = yield from _session(session_id)
    if session and not session.entry.suspended and not session.entry.resume_pending:
        marked = session.changed(resume_pending=True, resume_reason=reason, last_resume_marked_at=now)
        yield "update_session", changed_row(marked)


def _request_stop(lane: str, now: datetime, tell: TellTurn | None) -> Work[Turn | None]:
    yield "lock_lane", {"lane": lane}
    running = yield from find_turn("running_turn", lane=lane)
    if running:
        return (yield from find_turn("request_stop", turn_id=running.id))
    retry = yield from find_turn("retry_in", lane=lane)
    if retry:
        said = tuple(tell(retry)) if tell else ()
        ending = Ending(
            state=TurnState.INTERRUPTED, session_id=retry.session_id, deliveries=said, error=STOPPED
        )
        yield from _end(retry, ending, now)
        yield from unlined(lane)
    return retry


def _break_off(turn: Turn, ending: Ending, now: datetime) -> Work[Turn | None]:
    lane = lane_of(turn)
    yield "lock_lane", {"lane": lane}
    running = yield from find_turn("running_turn", lane=lane)
    if running is None or running.id != turn.id:
        return None
    yield from _end(running, msgspec.structs.replace(ending, session_id=running.session_id), now)
    yield from fence(lane)
    return running


def _signals(node: int) -> Work[list[Signals]]:
    found = []
    for turn in (yield from _many("signalled", node=node)):
        steering = yield from _many("steering", lane=lane_of(turn))
        found.append(Signals(turn_id=turn.id, stop=turn.stop_requested, steering=tuple(steering)))
    return found


def _recover(
    query: str, gone: int, repeatable: Callable[[Delivery], bool], now: datetime, lease_seconds: float
) -> Work[list[Turn]]:
    recovered: list[Turn] = []
    ran: list[tuple[Row, datetime]] = []
    held = yield query, {"node": gone}
    for lane, kind, late in held:
        if kind == lanes.LaneKind.CHAT:
            yield from deliveries.recover(lane, repeatable, now)
        else:
            seen_at = now - max(timedelta(microseconds=late, seconds=lease_seconds), timedelta(0))
            ran += [(found, seen_at) for found in (yield "running_in", {"lane": lane})]
    verdict = yield from _judge(gone, [found for found, _ in ran])
    for found, seen_at in ran:
        recovered += yield from _put_back(found, verdict, seen_at, now)
    for lane, _, _ in held:
        yield from fence(lane)
    return recovered


def _judge(gone: int, ran: Sequence[Row]) -> Work[Blame]:
    """What becomes of the attempts of a node that is gone. When it had been told to stop, none counts."""
    turns = [turn for turn in map(read_turn, ran) if turn]
    told = first((yield "stop_of", {"node": gone}))
    if told and told[0] is not None:
        return Blame(excused=frozenset(turn.id for turn in turns))
    return judge(turns)


def _put_back(found: Row, verdict: Blame, seen_at: datetime, now: datetime) -> Work[list[Turn]]:
    """It is to be run again; the turn, when its row can be read."""
    turn_id = found[1]
    values = {"uncounted": int(turn_id in verdict.excused), "doubted": int(turn_id in verdict.doubted)}
    times = {"due_at": to_micros(now), "interrupted_at": to_micros(seen_at)}
    yield "requeue_turn", {"turn_id": turn_id, "error": None, **values, **times}
    turn = read_turn(found)
    if turn is None:
        return []
    yield from tell_turn(turn, TurnState.QUEUED, now)
    yield from _mark(turn.session_id, INTERRUPTED_REASON, seen_at)
    return [msgspec.structs.replace(turn, state=TurnState.QUEUED)]


def _hasten(now: datetime) -> Work[None]:
    for kind in (lanes.LaneKind.TURN, lanes.LaneKind.CONTROL, lanes.LaneKind.CHAT):
        yield "hasten_lanes", {"kind": str(kind), "now": to_micros(now)}
    yield "hasten_turns", {"now": to_micros(now)}
    yield "hasten_deliveries", {"now": to_micros(now)}
