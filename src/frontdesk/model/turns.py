"""Turns: a message that came in, and what became of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model.chats import Attachment, Quote, ReplyHandle
from frontdesk.model.deliveries import Delivery
from frontdesk.model.lanes import UNSHARED, Lease, Sharing
from frontdesk.model.messages import Message
from frontdesk.model.people import Author
from frontdesk.model.sessions import Session, Usage
from frontdesk.model.sources import SessionSource

MAX_ATTEMPTS = 3
TRIAL_SECONDS = 10.0
"""A turn that kills the process is expected to do so within this time."""
MOST_DOUBTS = 3
"""How often a suspect is excused because it may have been another one."""
MOST_GATHERED = 20
"""How many messages become one turn."""
MAX_GATHERED_CHARACTERS = 10_000
"""Longer messages are turns of their own."""
LONGEST_WINDOWS = 5
MOST_OVERHEARD = 50
"""How much of what was said in a group, and not to us, is kept between two turns."""
HELD_BACK = (
    f"it was running each time the gateway died, and begins when another such turn has ended or run for"
    f" {TRIAL_SECONDS:.0f} seconds"
)
"""Why a suspect waits."""


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """For a person's approval."""
    DONE = "done"
    SILENT = "silent"
    """Done, and there was nothing to say."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SET_ASIDE = "set_aside"
    JOINED = "joined"
    """It is part of another turn, and ends with that."""


MOVES = {
    TurnState.QUEUED: {TurnState.RUNNING, TurnState.DONE, TurnState.INTERRUPTED, TurnState.SET_ASIDE},
    TurnState.RUNNING: {
        TurnState.QUEUED,
        TurnState.WAITING,
        TurnState.DONE,
        TurnState.SILENT,
        TurnState.FAILED,
        TurnState.INTERRUPTED,
        TurnState.SET_ASIDE,
    },
    TurnState.WAITING: {
        TurnState.RUNNING,
        TurnState.QUEUED,
        TurnState.FAILED,
        TurnState.INTERRUPTED,
        TurnState.SET_ASIDE,
    },
    TurnState.JOINED: {TurnState.DONE, TurnState.FAILED, TurnState.INTERRUPTED, TurnState.SET_ASIDE},
    TurnState.SET_ASIDE: {TurnState.QUEUED, TurnState.FAILED},
}
"""The legal moves. Back to queued: the node died, the failure may be tried again, or somebody wants it."""

FINISHED = frozenset(set(TurnState) - set(MOVES) | {TurnState.SET_ASIDE})


class TurnKind(StrEnum):
    """Who deals with it."""

    MESSAGE = "message"
    COMMAND = "command"
    CONTROL = "control"
    """A command that a hanging turn does not hold up."""
    PRESS = "press"
    """A button that somebody pressed; no hanging turn holds it up either."""
    OBSERVED = "observed"
    """Overheard in a group: kept, not answered."""
    EXPIRY = "expiry"
    """Not a message: a session whose time is over is to be finalized."""
    HOOK = "hook"
    """Not a message: hooks that could not be started are to be told again."""


PROMPT = frozenset({TurnKind.CONTROL, TurnKind.PRESS})
"""What has a lane of its own in each conversation, where nothing holds it up."""


class Busy(StrEnum):
    """What becomes of a message that comes while a turn runs."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: TurnKind = TurnKind.MESSAGE
    state: TurnState = TurnState.QUEUED
    session_key: str
    session_id: str | None = None
    """Where its rows are; known once it has begun."""
    source: SessionSource
    party: str = ""
    """Whose it is when there are more turns than places: somebody's, a group's; nobody's when it is an order
    of the gateway's own."""
    text: str
    content: str | list[dict[str, Any]] | None = None
    """The message's parts, when it is more than its text."""
    history: list[dict[str, Any]] | None = None
    """Earlier messages that the other side brings along, for a session that begins with this turn."""
    role: str | None = None
    """What its sender may do, as it was decided when the message came in."""
    author: Author | None = None
    """Who wrote it from the page; its source is the chat that it was written into."""
    about: str | None = None
    """The session that an order of the gateway's own, or of the page's, is about."""
    token: str | None = None
    """Of the button that was pressed."""
    files: tuple[Attachment, ...] = ()
    quote: Quote | None = None
    handle: ReplyHandle | None = None
    """What the platform wants back with the answer."""
    album: str | None = None
    instructions: str | None = None
    """What its sender wants to be heeded in the answer to it alone."""
    follows: str | None = None
    """The turn that it goes on from."""
    noted: dict[str, Any] = {}
    """What its channel wants to know of it later."""
    sent_at: datetime | None = None
    """When it was written, as the platform says."""
    withdrawn: bool = False
    """Its message was deleted before anybody looked at it."""
    event_id: str | None = None
    received_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: int = 0
    """How often it was begun."""
    put_backs: int = 0
    """How often it was put back through no fault of its own."""
    on_trial: bool = False
    """It broke off before and was begun again a short while ago: if the process dies now, it may be why."""
    doubts: int = 0
    """How often it was excused because another suspect may have killed the process."""
    interrupted_at: datetime | None = None
    """When it was broken off, unless it is under way again."""
    steers: bool = False
    """To be steered into the turn that is running."""
    stop_requested: bool = False
    stopped_by: str | None = None
    """Who wanted it to stop first, by the name that they had."""
    error: str | None = None
    draft: str | None = None
    """The platform's id of the message that shows its answer while it is written, if there is one."""
    part_of: str | None = None
    """The turn that it was gathered into."""
    parts: int = 0
    """How many messages were gathered into it."""
    number: int = 0
    """The order of arrival."""

    @property
    def sender(self) -> str:
        """The name that people know its sender by; empty where it has none."""
        return (self.author and self.author.name) or self.source.user_name or self.source.user_id or ""

    @property
    def tries(self) -> int:
        """How many attempts count."""
        return self.attempts - self.put_backs

    @property
    def is_suspect(self) -> bool:
        """Whether it runs for the last time: all that it began before broke off."""
        return self.attempts - self.put_backs >= MAX_ATTEMPTS

    def may_begin_beside(self, others: Iterable["Turn"]) -> bool:
        """A suspect waits for other suspects that are on trial, once it is in doubt which of them it was.
        Nobody else waits, and nobody waits for anything else."""
        if not self.is_suspect:
            return True
        return not any(each.on_trial and each.is_suspect and (each.doubts or self.doubts) for each in others)

    @property
    def is_held_back(self) -> bool:
        return self.state is TurnState.QUEUED and self.error == HELD_BACK

    def joined(self, parts: Sequence["Turn"]) -> "Turn":
        """The turn with all that was gathered into it, without what was withdrawn since."""
        kept = [each for each in (self, *parts) if not each.withdrawn]
        handles = [each.handle for each in kept if each.handle]
        return msgspec.structs.replace(
            self,
            text="\n".join(each.text for each in kept if each.text.strip()),
            files=tuple(file for each in kept for file in each.files),
            handle=handles[-1] if handles else None,
        )

    def check_move(self, wanted: TurnState) -> None:
        if wanted not in MOVES.get(self.state, ()):
            raise errors.IllegalMove(state=str(self.state), wanted=str(wanted))


class Beside(msgspec.Struct, frozen=True):
    """What turns that are claimed would run beside."""

    suspects: Sequence[Turn] = ()
    places: Sharing = UNSHARED


ALONE = Beside()


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn goes on once its message is written."""

    position: int
    """The place of its next row."""
    message_count: int
    """The session's, with the message counted."""


class TurnClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A turn to be run now, by whom holds the lease."""

    turn: Turn
    lease: Lease
    session: Session | None = None
    """The one that its message was written to when it was claimed; None when that is still to be done."""
    begun: Begun | None = None


class Blame(msgspec.Struct, frozen=True, kw_only=True):
    """What the death of a process says about the turns that ran in it, by their ids."""

    excused: frozenset[str] = frozenset()
    """Their attempts do not count."""
    doubted: frozenset[str] = frozenset()
    """Those among them which may have done it."""


def judge(ran: Sequence[Turn]) -> Blame:
    """Whoever was on trial may have done it; when nobody was, whoever broke off before.

    When that is one turn, it is to blame. When there are several, the suspects among them are excused, as are
    all other suspects.
    """
    broke_off = [turn for turn in ran if turn.state is TurnState.RUNNING and turn.tries > 1]
    possible = [turn for turn in broke_off if turn.on_trial] or broke_off
    doubted = [
        turn for turn in possible if turn.is_suspect and len(possible) > 1 and turn.doubts < MOST_DOUBTS
    ]
    excused = [turn for turn in ran if turn.state is TurnState.WAITING]
    excused += [turn for turn in broke_off if turn.is_suspect and turn not in possible]
    return Blame(excused=_ids([*excused, *doubted]), doubted=_ids(doubted))


def _ids(turns: Iterable[Turn]) -> frozenset[str]:
    return frozenset(turn.id for turn in turns)


class TurnTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt at a turn came to, to be added up with others."""

    number: int
    """How many messages its session had with the one that it answers."""
    messages: int = 0
    """How many it added, that one included."""
    tools: int = 0
    """How many results of tools there were."""
    failures: int = 0
    """How many of them were errors."""
    model: str = ""
    """The one that was chosen for the place or the session; empty for the agent's own."""
    profile: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn is to be run again, and what is written with that."""

    due_at: datetime
    counts: bool = True
    """Whether the attempt counts; one that was cut short by us does not."""
    error: str | None = None
    session_id: str | None = None
    usage: Usage | None = None
    """What the attempt has used."""
    tally: TurnTally | None = None
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


class Gathering(msgspec.Struct, frozen=True, kw_only=True):
    """How a message waits for others that belong to it."""

    seconds: float
    """How long after each one, at most `LONGEST_WINDOWS` times as long in all."""
    is_burst: bool = True
    """Whether all that the person writes belongs together; otherwise only what is of one album."""
    begins: bool = False
    """Whether it belongs to nothing before it, only what follows to it."""

    @property
    def window(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    @property
    def longest(self) -> timedelta:
        return LONGEST_WINDOWS * self.window

    def joins(self, first: Turn, turn: Turn) -> bool:
        """Whether a message is part of a turn that waits: of the same sender, chat and thread."""
        same_album = turn.album is not None and turn.album == first.album
        if self.begins and not same_album:
            return False
        if not same_album and not (self.is_burst and turn.kind is first.kind is TurnKind.MESSAGE):
            return False
        sources = (turn.source, first.source)
        mine, theirs = [(each.participant, each.chat_id, each.thread_id) for each in sources]
        return mine == theirs and first.content is None and first.parts + 1 < MOST_GATHERED


class Alteration(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of something that people did to a message that was there."""

    amended: Turn | None = None
    """The message as it is from now on, where it still waits."""
    kept: Turn | None = None
    """The turn that is kept of it otherwise."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that a message became; when it was there before, the earlier one."""

    turn: Turn
    repeated: bool = False
    waiting: int = 0
    """How many are before it."""
    running: str | None = None
    """The one of them that was under way."""
    claim: TurnClaim | None = None
    """It runs already, by whoever took it in."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ends, and everything that is written with it."""

    state: TurnState
    session_id: str | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage | None = None
    tally: TurnTally | None = None
    deliveries: tuple[Delivery, ...] = ()
    error: str | None = None
    clears_mark: bool = False
    """The session was to be resumed, and that has been done."""
    consumes_reset: bool = False
    """The session's reset flags were for this turn."""
    holds_lane: bool = False
    """The lane is kept for what comes after the turn, and let go of by hand."""
