"""Turns: taken in once, run one after the other, ended with everything that belongs to them."""

from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from frontdesk.contracts import store
from frontdesk.contracts.bells import Topic
from frontdesk.contracts.store import Mergeable, Row, Statement, Work, ring
from frontdesk.model import lanes, turns
from frontdesk.model.chats import Cursor
from frontdesk.model.deliveries import Delivery, DeliveryClaim
from frontdesk.model.messages import Message
from frontdesk.model.moves import Settled, Start
from frontdesk.model.resolution import Opening
from frontdesk.model.turns import (
    Accepted,
    Again,
    Begun,
    Beside,
    Ending,
    Gathering,
    Signals,
    Turn,
    TurnClaim,
    TurnState,
)
from frontdesk.stores import attempts, changes, deliveries, sessions, transcripts
from frontdesk.stores.arrivals import accept, accept_together, lane_of
from frontdesk.stores.asides import AsideIntentions
from frontdesk.stores.columns import MICROS_A_SECOND, clean, maybe_time, to_micros
from frontdesk.stores.feed import tell_turn
from frontdesk.stores.lanes import claim_lanes, fence, free, hold
from frontdesk.stores.rows import TURNS
from frontdesk.stores.work import glances, reads, value, writes, writes_lazily

SUSPECT_PAUSE = timedelta(seconds=0.5)
"""After which a turn is looked at again that is held back."""
CREWS = (Topic.TURNS, Topic.CONTROL, Topic.DELIVERIES)


class Turns(AsideIntentions):
    """The turns of all conversations. What is written under a claim is refused once its lease is lost."""

    def accept(
        self,
        turn: Turn,
        admit: store.Admit,
        cursor: Cursor | None = None,
        gather: Gathering | None = None,
        taker: lanes.Taker | None = None,
        opening: Opening | None = None,
    ) -> Coroutine[Any, Any, Accepted]:
        """Take a message in, once for each event of a platform's account; with it, how far we have read. It
        may be part of a turn that waits, or wait for further ones. ``taker`` claims it in the same
        transaction where nothing waits to be begun, and begins it there if its opening fits."""
        start = Mergeable(accept, turn, lane_of(turn), admit, cursor, gather, taker, opening)
        start.together = accept_together
        return self._engine.write(start)

    @writes
    def change(self, event: Turn, decide: store.Alter, cursor: Cursor | None = None) -> Work[Accepted | None]:
        """Take in what somebody did to a message that is there; None where nothing is kept of it."""
        return changes.change(event, decide, cursor)

    @writes  # never lazily: a claim that a server lost would have its token given out a second time
    def claim(
        self,
        node: int,
        kind: lanes.LaneKind,
        limit: int,
        now: datetime,
        set_aside: store.TellTurn,
        *,
        beside: Beside = turns.ALONE,
        openings: Mapping[str, Opening] | None = None,
        lease_seconds: float = lanes.LEASE_SECONDS,
    ) -> Work[list[TurnClaim]]:
        """Take the first turns of free lanes, the longest waiting first, and count the attempt. Of the places
        nobody is given more than their share while others wait.

        A turn that was begun too often is set aside with its session. A suspect that may not begin beside
        those that run is left for later, and says why. One whose opening fits is begun in the same
        transaction: after a crash it was claimed and begun, or neither.
        """
        claims: list[TurnClaim] = []
        for lease in (yield from claim_lanes(kind, node, limit, now, lease_seconds, beside.places)):
            turn = yield from attempts.take_first(lease.lane, now, set_aside)
            if turn and not turn.may_begin_beside([*beside.suspects, *(each.turn for each in claims)]):
                yield from attempts.defer(turn, now + SUSPECT_PAUSE, now)
                turn = None
            if turn is None:
                yield from free(lease.lane)
                continue
            claimed = TurnClaim(turn=turn, lease=lease)
            if openings and (opening := openings.get(turn.id)):
                claimed = yield from attempts.begin_fitting(claimed, opening, now)
            claims.append(claimed)
            session_id = claimed.session.id if claimed.session else None
            yield from tell_turn(turn, TurnState.RUNNING, now, session_id)
        return claims

    def begin(
        self,
        claim: TurnClaim,
        session_id: str,
        messages: Sequence[Message],
        now: datetime,
        *,
        starts: bool = False,
        notices: Sequence[Delivery] = (),
    ) -> Coroutine[Any, Any, Begun]:
        """Write the message into its session's transcript; ``starts`` when it is the session's first, so that
        hooks and people have been told of its beginning."""
        start = partial(attempts.begin, claim, session_id, messages, starts, notices, now)
        return self._engine.write(start, supersedes=session_id)

    @writes
    def record(
        self,
        claim: TurnClaim,
        session_id: str,
        messages: Sequence[Message],
        now: datetime,
        absorbed: Sequence[Turn] = (),
    ) -> Work[None]:
        """Write rows of a running turn; turns whose messages are among them are done with it."""
        yield from hold(claim.lease)
        yield from transcripts.append(session_id, messages, now)
        for turn in absorbed:
            yield from attempts.settle(turn, Ending(state=TurnState.DONE, session_id=session_id), now)
        yield from attempts.tell_rows(claim.turn, session_id, now)

    @writes_lazily
    def mark(self, claim: TurnClaim, state: TurnState, now: datetime) -> Work[None]:
        """A running turn waits for a person, or runs on."""
        yield from hold(claim.lease)
        if (yield "mark_turn", {"turn_id": claim.turn.id, "state": str(state)}):
            yield from tell_turn(claim.turn, state, now)
        yield ring(Topic.FEED)

    @writes_lazily
    def acquit(self, claim: TurnClaim) -> Work[None]:
        """It has run for so long that the process will not die of it, as far as anybody can tell."""
        yield from hold(claim.lease)
        yield "acquit_turn", {"turn_id": claim.turn.id}

    @writes
    def keep_draft(self, claim: TurnClaim, message_id: str) -> Work[None]:
        """The platform's id of the message that shows the answer while it is written: a turn that runs again
        goes on in it."""
        yield from hold(claim.lease)
        yield "keep_draft", {"turn_id": claim.turn.id, "draft": message_id}

    @writes
    def finish(
        self, claim: TurnClaim, ending: Ending, now: datetime, taker: lanes.Taker | None = None
    ) -> Work[DeliveryClaim | None]:
        """End it. ``taker`` takes the first answer to send it at once, where nothing waits before it."""
        claim.turn.check_move(ending.state)
        taken = yield from attempts.end(claim.turn, ending, now, taker, claim.lease)
        if not ending.holds_lane and (yield from free(claim.lease.lane)):
            yield _ring_for(claim)
        if not taken and deliveries.are_sent(ending.deliveries):
            yield ring(Topic.DELIVERIES, far=False)
        yield ring(Topic.FEED)
        return taken

    @writes
    def release(self, claim: TurnClaim) -> Work[None]:
        """Let go of a lane that was kept at the turn's end."""
        yield from hold(claim.lease)
        if (yield from free(claim.lease.lane)):
            yield _ring_for(claim)

    @writes
    def rotate(
        self,
        claim: TurnClaim,
        decide: store.Decide,
        new_id: store.NewId,
        notices: store.TellReset,
        now: datetime,
    ) -> Work[Settled]:
        """Decide about the conversation's session after its turn, tell people, and let go of the lane."""
        yield from hold(claim.lease)
        settled = yield from sessions.settle(claim.turn.session_key, decide, now, new_id)
        if settled.session and isinstance(settled.move, Start):
            yield from deliveries.add(notices(settled.session))
        yield from free(claim.lease.lane)
        yield ring(Topic.DELIVERIES, far=False)
        yield _ring_for(claim)
        return settled

    @writes
    def requeue(self, claim: TurnClaim, again: Again, now: datetime) -> Work[None]:
        """Run it again. One that has ended has: then only the lane is let go of."""
        yield from hold(claim.lease)
        values = {
            "due_at": to_micros(again.due_at),
            "uncounted": int(not again.counts),
            "doubted": 0,
            "error": clean(again.error),
            "interrupted_at": to_micros(now),
        }
        if (yield "requeue_turn", {"turn_id": claim.turn.id, **values}):
            if again.tally:
                tally = msgspec.json.encode(again.tally).decode()
                yield "keep_tally", {"turn_id": claim.turn.id, "tally": tally}
            if again.session_id and again.usage:
                yield from transcripts.append(again.session_id, (), now, again.usage)
            if again.session_id and again.resume_reason:
                yield from attempts.mark(again.session_id, again.resume_reason, now)
            yield from tell_turn(claim.turn, TurnState.QUEUED, now)
            yield ring(Topic.FEED)
        yield from free(claim.lease.lane)
        yield _ring_for(claim)

    @writes
    def interrupt(self, turn_id: str, by: str = "") -> Work[None]:
        """A turn is to stop, if it still runs; ``by`` is the name of who wants it."""
        turn = yield from TURNS.one("turn", turn_id=turn_id)
        if turn and turn.state not in turns.FINISHED:
            yield from attempts.ask_to_stop(turn, by)
        yield ring(Topic.SIGNALS)

    @writes
    def request_stop(
        self, session_key: str, now: datetime, notices: store.TellTurn | None = None, by: str = ""
    ) -> Work[Turn | None]:
        """The running turn of a conversation is to stop, one that waits to be run again ends; which one.
        ``notices`` are asked for the one that ends here; ``by`` is the name of who wants it."""
        return attempts.stop_turn(session_key, now, notices, by)

    @writes
    def break_off(self, turn: Turn, ending: Ending, now: datetime) -> Work[Turn | None]:
        """End the running turn of a conversation over its holder's head, whose writes are refused then; None
        when it runs no more."""
        lane = lane_of(turn)
        # The lane's row decides between us and the holder, who holds it for each of its own writes.
        yield "lock_lane", {"lane": lane}
        running = yield from TURNS.one("running_turn", lane=lane)
        if running is None or running.id != turn.id:
            return None
        yield from attempts.end(running, msgspec.structs.replace(ending, session_id=running.session_id), now)
        yield from fence(lane)
        for topic in (Topic.SIGNALS, Topic.TURNS, Topic.FEED):
            yield ring(topic)
        yield ring(Topic.DELIVERIES, far=False)
        return running

    @reads
    def signals(self, node: int) -> Work[list[Signals]]:
        """What the turns that run on a node are to be told."""
        found = []
        for turn in (yield from TURNS.many("signalled", node=node)):
            steering = yield from TURNS.many("steering", lane=lane_of(turn))
            found.append(Signals(turn_id=turn.id, stop=turn.stop_requested, steering=tuple(steering)))
        return found

    @writes
    def recover(
        self,
        gone: int,
        try_again: store.TryAgain,
        now: datetime,
        *,
        overdue: bool = False,
        lease_seconds: float = lanes.LEASE_SECONDS,
    ) -> Work[list[Turn]]:
        """Take back what a node held that is gone; the turns that are to be run again.

        Attempts count, and blame falls, as `turns.judge` says; none when the node had been told to stop.
        """
        recovered: list[Turn] = []
        ran: list[tuple[Row, datetime]] = []
        held = yield "overdue_lanes" if overdue else "lanes_of", {"node": gone}
        for lane, kind, late in held:
            if kind == lanes.LaneKind.CHAT:
                yield from deliveries.recover(lane, try_again, now)
            else:
                seen_at = now - max(timedelta(microseconds=late, seconds=lease_seconds), timedelta(0))
                ran += [(found, seen_at) for found in (yield "running_in", {"lane": lane})]
        blame = yield from attempts.judge_node(gone, [found for found, _ in ran])
        for found, seen_at in ran:
            recovered += yield from attempts.put_back(found, blame, seen_at, now)
        # The tokens are raised last: until the commit the lanes are locked, and whoever held one waits here.
        for lane, _, _ in held:
            yield from fence(lane)
        for topic in CREWS:
            yield ring(topic, far=False)
        yield ring(Topic.FEED)
        return recovered

    @writes_lazily
    def hasten(self, now: datetime) -> Work[None]:
        """Turns and deliveries that wait for a later moment are due now: by the clock that it was taken from,
        it may be hours away."""
        for kind in (lanes.LaneKind.TURN, lanes.LaneKind.CONTROL, lanes.LaneKind.CHAT):
            yield "hasten_lanes", {"kind": str(kind), "now": to_micros(now)}
        yield "hasten_turns", {"now": to_micros(now)}
        yield "hasten_deliveries", {"now": to_micros(now)}
        for topic in CREWS:
            yield ring(topic, far=False)

    @writes_lazily
    def renew(
        self, leases: Sequence[lanes.Lease], lease_seconds: float = lanes.LEASE_SECONDS
    ) -> Work[set[lanes.Lease]]:
        """Somebody is at it; those of the leases that nobody else has. What was claimed and never known to be
        is not renewed, and runs out."""
        held = set()
        # In one order, so that two nodes that renew at once do not wait for each other in a circle.
        for lease in sorted(leases, key=lambda lease: lease.lane):
            micros = round(lease_seconds * MICROS_A_SECOND)
            if (yield "renew_lease", {"lease_micros": micros, **msgspec.structs.asdict(lease)}):
                held.add(lease)
        return held

    @reads
    def held(self, node: int) -> Work[set[lanes.Lease]]:
        """What a node holds. What it works on and does not hold was taken from it."""
        found = yield "held_lanes", {"node": node}
        return {lanes.Lease(lane=name, node=node, token=token) for name, token in found}

    @writes_lazily
    def prune(self, before: datetime, limit: int) -> Work[int]:
        """Forget turns that ended before that time, no more than so many; how many."""
        return len((yield "prune_turns", {"before": to_micros(before), "limit": limit}))

    @glances
    def find(self, turn_id: str) -> Work[Turn | None]:
        return TURNS.one("turn", turn_id=turn_id)

    @reads
    def last_of_session(self, session_id: str) -> Work[Turn | None]:
        """The turn that wrote the newest row of a session."""
        return TURNS.one("last_turn", session_id=session_id)

    @reads
    def open_turns(self, session_key: str, limit: int) -> Work[list[Turn]]:
        """What is under way or waits in a conversation, oldest first."""
        lane, control = lanes.turn_lane(session_key), lanes.control_lane(session_key)
        return TURNS.many("open_turns", lane=lane, control=control, limit=limit)

    @reads
    def counts(self) -> Work[dict[str, int]]:
        """How many turns are in each state that is not final."""
        return {state: int(number) for state, number in (yield "count_turns", {})}

    @reads
    def held_back(self) -> Work[int]:
        """How many suspects wait for others."""
        return value("count_held_back", why=turns.HELD_BACK)

    @glances
    def has_come(self, session_key: str) -> Work[bool]:
        """Whether anything ever came in for a conversation."""
        return bool((yield "lane_holder", {"lane": lanes.turn_lane(session_key)}))

    @glances
    def due(self, kind: lanes.LaneKind, now: datetime, limit: int) -> Work[list[Turn | None]]:
        """The first turns of free lanes that are due, the longest waiting first. None stands for one that
        cannot be read, which a claim sets aside, and for a lane without one, which a claim lets rest."""
        values = {"kind": str(kind), "now": to_micros(now), "limit": limit}
        found = yield "due_turns", values
        return [None if each[0] is None else TURNS.read(each) for each in found]

    @glances
    def next_due(self, kind: lanes.LaneKind) -> Work[datetime | None]:
        return maybe_time((yield from value("next_due", kind=str(kind))))


def _ring_for(claim: TurnClaim) -> Statement:
    """Something waits in the lane that was let go of."""
    control = lanes.kind_of(claim.lease.lane) is lanes.LaneKind.CONTROL
    return ring(Topic.CONTROL if control else Topic.TURNS, far=False)
