"""Turns: a message that came in, and what became of it."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import Lease
from frontdesk.model.messages import Message
from frontdesk.model.sessions import Usage
from frontdesk.model.sources import SessionSource

MAX_ATTEMPTS = 3


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """For a person's approval."""
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SET_ASIDE = "set_aside"


MOVES = {
    State.QUEUED: {State.RUNNING, State.DONE, State.INTERRUPTED, State.SET_ASIDE},
    State.RUNNING: {
        State.QUEUED,
        State.WAITING,
        State.DONE,
        State.FAILED,
        State.INTERRUPTED,
        State.SET_ASIDE,
    },
    State.WAITING: {State.RUNNING, State.QUEUED, State.FAILED, State.INTERRUPTED, State.SET_ASIDE},
}
"""The legal moves. Back to queued: the node died, or the failure may be tried again."""

FINISHED = frozenset(set(State) - set(MOVES))


class Kind(StrEnum):
    """Who deals with it."""

    MESSAGE = "message"
    COMMAND = "command"
    CONTROL = "control"
    """A command that a hanging turn does not hold up."""
    OBSERVED = "observed"
    """Overheard in a group: kept, not answered."""
    EXPIRY = "expiry"
    """Not a message: a session whose time is over is to be finalized."""


class Busy(StrEnum):
    """What becomes of a message that comes while a turn runs."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: Kind = Kind.MESSAGE
    state: State = State.QUEUED
    session_key: str
    session_id: str | None = None
    """Where its rows are; known once it has begun."""
    source: SessionSource
    text: str
    content: str | list[dict[str, Any]] | None = None
    """The message's parts, when it is more than its text."""
    history: list[dict[str, Any]] | None = None
    """Earlier messages that the other side brings along, for a session that begins with this turn."""
    role: str | None = None
    """What its sender may do, as it was decided when the message came in."""
    event_id: str | None = None
    received_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    """How often it was begun."""
    put_backs: int = 0
    """How often it was put back through no fault of its own."""
    steers: bool = False
    """To be steered into the turn that is running."""
    stop_requested: bool = False
    error: str | None = None
    draft: str | None = None
    """The platform's id of the message that shows its answer while it is written, if there is one."""
    number: int = 0
    """The order of arrival."""

    @property
    def tries(self) -> int:
        """How many attempts count."""
        return self.attempts - self.put_backs

    def may_run_beside(self, others: Iterable["Turn"]) -> bool:
        """What is tried for the last time and what broke off before do not run beside each other: if the
        process dies of one of them, the other is not to be blamed."""
        if self.tries == 1:
            return True
        tried = [other.tries for other in others if other.tries > 1]
        return not tried or MAX_ATTEMPTS not in (self.tries, *tried)

    def check_move(self, wanted: State) -> None:
        if wanted not in MOVES.get(self.state, ()):
            raise errors.IllegalMove(state=str(self.state), wanted=str(wanted))


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A turn to be run now, by whom holds the lease."""

    turn: Turn
    lease: Lease


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn goes on once its message is written."""

    position: int
    """The place of its next row."""
    message_count: int
    """The session's, with the message counted."""


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn is to be run again, and what is written with that."""

    due_at: datetime
    counts: bool = True
    """Whether the attempt counts; one that was cut short by us does not."""
    error: str | None = None
    session_id: str | None = None
    usage: Usage | None = None
    """What the attempt has used."""
    resume_reason: str | None = None
    """Why the session is to be resumed; None when it need not be."""


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What a running turn is to be told."""

    turn_id: str
    stop: bool = False
    steering: tuple[Turn, ...] = ()


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a message that has just come in."""

    steers: bool = False
    """To be steered into the running turn."""
    interrupts: bool = False
    """The running turn is to stop."""
    notices: tuple[Delivery, ...] = ()


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that a message became; when it was there before, the earlier one."""

    turn: Turn
    repeated: bool = False
    waiting: int = 0
    """How many are before it."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ends, and everything that is written with it."""

    state: State
    session_id: str | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage | None = None
    deliveries: tuple[Delivery, ...] = ()
    error: str | None = None
    clears_mark: bool = False
    """The session was to be resumed, and that has been done."""
    consumes_reset: bool = False
    """The session's reset flags were for this turn."""
    holds_lane: bool = False
    """The lane is kept for what comes after the turn, and let go of by hand."""
