"""The store: what must be kept, and which changes happen together.

Every method is one intention and one transaction. A decision that belongs inside the transaction is passed in
as a pure function. What a method has returned is on disk.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from frontdesk.contracts.bells import Bells
from frontdesk.contracts.confirmations import Confirmations
from frontdesk.model import access, codes, lanes
from frontdesk.model.background import BackgroundTask
from frontdesk.model.deliveries import Delivery, DeliveryClaim, Settlement
from frontdesk.model.feed import FeedEvent, FeedPosition
from frontdesk.model.messages import Message
from frontdesk.model.moves import Move, Settled, Situation
from frontdesk.model.people import Viewer
from frontdesk.model.policies import EndReason
from frontdesk.model.searches import Hit, Search
from frontdesk.model.sessions import Session, SessionEntry, Usage
from frontdesk.model.sources import SessionSource
from frontdesk.model.transcripts import Revision, Rewound
from frontdesk.model.turns import (
    Accepted,
    Admission,
    Again,
    Begun,
    Ending,
    Signals,
    Turn,
    TurnClaim,
    TurnState,
)

Decide = Callable[[Situation], Move]
NewId = Callable[[], str]
Rename = Callable[[Session, Mapping[str, str]], tuple[str, str, str]]
"""The key, owner and peer of a session under another table of aliases."""
Readdress = Callable[[SessionSource, Mapping[str, str]], str | None]
"""The key of a message's conversation under a table of aliases; None when none of its names is in there."""
Admit = Callable[[Turn | None, int], Admission]
"""What becomes of a message, given the turn that runs in its conversation and how many wait."""
TellTurn = Callable[[Turn], Sequence[Delivery]]
"""What people are told of a turn that ends without an answer."""
TellReset = Callable[[Session], Sequence[Delivery]]
"""What people are told of the new session."""
Repeatable = Callable[[Delivery], bool]
"""Whether sending it a second time does no harm."""


class Sessions(Protocol):
    async def settle(
        self,
        key: str,
        decide: Decide,
        *,
        now: datetime,
        new_id: NewId,
        peer: Callable[[], str] | None = None,
        target: str | None = None,
    ) -> Settled:
        """Decide about a key's current session and carry the decision out.

        ``decide`` may be called more than once. The other session of the situation is ``target``, else, when
        the key has none, the newest one of ``peer`` that is open or merely closed.
        """
        ...

    async def current(self, key: str) -> Session | None: ...

    async def find(self, session_id: str) -> Session | None: ...

    async def route_of(self, session_id: str) -> str | None:
        """The key that the session is current for."""
        ...

    async def tip(self, session_id: str) -> Session | None:
        """The newest session that continues this one after compressions."""
        ...

    async def end(self, session_id: str, reason: EndReason, now: datetime) -> bool: ...

    async def add_usage(self, key: str, usage: Usage, now: datetime) -> bool: ...

    async def list_current(
        self, *, since: datetime | None = None, limit: int | None = None, after: SessionEntry | None = None
    ) -> list[Session]:
        """The keys' current sessions, latest activity first; ``after`` an entry of an earlier list."""
        ...

    async def list_owned(self, viewer: Viewer, *, limit: int, titled: bool = False) -> list[Session]:
        """Sessions that the viewer may see, ended ones included, latest activity first."""
        ...

    async def count(self, at_most: int) -> int:
        """How many sessions were ever created, counting no further than ``at_most``."""
        ...

    async def unfinalized(self, after: Session | None, limit: int) -> list[Session]:
        """Current open sessions whose end has not been dealt with, the longest inactive first."""
        ...

    async def finalize(self, session_id: str) -> bool:
        """Record that the end of a session was dealt with; False when it already was."""
        ...

    async def mark_recent(self, since: datetime, reason: str, now: datetime) -> int: ...

    async def stale_keys(self, before: datetime) -> list[str]:
        """Keys whose session was last active before that time and is not suspended."""
        ...

    async def prune(self, key: str, before: datetime, now: datetime) -> bool:
        """End the key's session as pruned and forget the key, if it still is stale."""
        ...

    async def set_title(self, session_id: str, title: str | None) -> bool:
        """Give the title to the session; TitleTaken when another conversation of its owner has it."""
        ...

    async def find_title(self, viewer: Viewer, title: str) -> Session | None: ...


class Transcripts(Protocol):
    async def append(
        self, session_id: str, messages: Sequence[Message], now: datetime, usage: Usage | None = None
    ) -> int:
        """Store messages, and what the turn used; how many were new."""
        ...

    async def load(
        self, session_id: str, *, ancestors: bool = False, revision: int | None = None
    ) -> list[dict[str, Any]]: ...

    async def load_timed(
        self, session_id: str, *, ancestors: bool = False
    ) -> list[tuple[dict[str, Any], datetime]]:
        """The messages, each with when it was stored."""
        ...

    async def count(self, session_id: str) -> int:
        """How many messages there are, whether they count against the limit or not."""
        ...

    async def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool: ...

    async def rewrite(self, session_id: str, messages: Sequence[Message], now: datetime) -> bool: ...

    async def rewind(self, session_id: str, turns: int, now: datetime) -> Rewound | None: ...

    async def redo(self, session_id: str, now: datetime) -> Rewound | None: ...

    async def close_calls(self, session_id: str, now: datetime) -> int: ...

    async def revisions(self, session_id: str) -> list[Revision]: ...


class Index(Protocol):
    async def search(self, viewer: Viewer, search: Search) -> list[Hit]:
        """The best matches among everything committed before the call."""
        ...

    async def catch_up(self, limit: int) -> int:
        """Index messages not yet indexed; how many there were."""
        ...

    async def rebuild(self) -> None: ...


class Aliases(Protocol):
    async def canonical(self, identifiers: Sequence[str]) -> dict[str, str]:
        """The canonical identifier of each one that has another."""
        ...

    async def names_of(self, person: str) -> list[str]:
        """The other identifiers of a person, who is given by the canonical one."""
        ...

    async def learn(
        self, identifier: str, person: str, rename: Rename, readdress: Readdress, now: datetime
    ) -> bool:
        """From now on ``identifier`` is another name of ``person``; False when that was known.

        What the person had under the old name, and all its other names, is found under the new one, in the
        same transaction. Messages that wait are moved; a turn that runs is taken from its holder and goes on.
        """
        ...


class People(Protocol):
    """Who was let in, which codes wait, whom we answered, and who is the same person."""

    async def grant_of(self, principal: str) -> access.Grant | None: ...

    async def grant(self, grant: access.Grant) -> None:
        """Let somebody in, or change what they may do; codes that they were shown count no more."""
        ...

    async def revoke(self, principal: str) -> bool:
        """Take back what somebody was granted, with their links and codes; False when there was no grant."""
        ...

    async def list_grants(self, limit: int) -> list[access.Grant]:
        """Everybody who was let in, the latest first."""
        ...

    async def answer_stranger(
        self,
        principal: str,
        platform: str,
        now: datetime,
        offer: tuple[codes.Pairing, codes.Seal] | None = None,
    ) -> codes.Meeting:
        """Note that a stranger is answered, at most once a day, and keep the offered code.

        Silent when they were answered lately or too many others were; answered without the code when too
        many people of the platform wait to be let in.
        """
        ...

    async def begin_pairing(self, pairing: codes.Pairing, seal: codes.Seal, now: datetime) -> bool:
        """Keep a code in place of the person's last one; False when too many wait to be let in."""
        ...

    async def pending_pairings(self, now: datetime) -> list[codes.Pairing]:
        """Who waits to be let in, the longest waiting first."""
        ...

    async def approve_pairing(
        self, code: str, role: access.Role, *, place: str, by: str, now: datetime
    ) -> codes.Trial:
        """Let in whom the code was shown to; of several who type it, one does.

        Wrong codes are counted for the place where they are typed; after too many it is locked.
        """
        ...

    async def link(self, code: str, principal: str, *, person: str, now: datetime) -> codes.Trial:
        """Whoever types the code and whom it was shown to are the same person: a known one, else a new one.

        Wrong codes are counted for whoever types them.
        """
        ...

    async def unlink(self, principal: str) -> bool: ...

    async def linked(self, principal: str) -> frozenset[str]:
        """Everybody who is the same person, the one asked about included."""
        ...


class Turns(Protocol):
    """The turns of all conversations. What is written under a claim is refused once its lease is lost."""

    async def accept(self, turn: Turn, admit: Admit) -> Accepted:
        """Take a message in, once for each event of a platform's account."""
        ...

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
        """Take the first turns of free lanes, the longest waiting first, and count the attempt.

        A turn that was begun too often is set aside with its session. A suspect that may not begin beside
        those that run is left for later, and says why.
        """
        ...

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
        """Write the message into its session's transcript; ``starts`` when it is the session's first, so that
        hooks and people have been told of its beginning."""
        ...

    async def record(
        self,
        claim: TurnClaim,
        session_id: str,
        messages: Sequence[Message],
        now: datetime,
        absorbed: Sequence[Turn] = (),
    ) -> None:
        """Write rows of a running turn; turns whose messages are among them are done with it."""
        ...

    async def mark(self, claim: TurnClaim, state: TurnState, now: datetime) -> None:
        """A running turn waits for a person, or runs on."""
        ...

    async def acquit(self, claim: TurnClaim) -> None:
        """It has run for so long that the process will not die of it, as far as anybody can tell."""
        ...

    async def keep_draft(self, claim: TurnClaim, message_id: str) -> None:
        """The platform's id of the message that shows the answer while it is written: a turn that runs again
        goes on in it."""
        ...

    async def finish(self, claim: TurnClaim, ending: Ending, now: datetime) -> None: ...

    async def release(self, claim: TurnClaim) -> None:
        """Let go of a lane that was kept at the turn's end."""
        ...

    async def rotate(
        self, claim: TurnClaim, decide: Decide, new_id: NewId, notices: TellReset, now: datetime
    ) -> Settled:
        """Decide about the conversation's session after its turn, tell people, and let go of the lane."""
        ...

    async def requeue(self, claim: TurnClaim, again: Again, now: datetime) -> None:
        """Run it again. One that has ended has: then only the lane is let go of."""
        ...

    async def request_stop(
        self, session_key: str, now: datetime, tell: TellTurn | None = None
    ) -> Turn | None:
        """The running turn of a conversation is to stop, one that waits to be run again ends; which one.
        ``tell`` is asked about the one that ends here."""
        ...

    async def break_off(self, turn: Turn, ending: Ending, now: datetime) -> Turn | None:
        """End a running turn over its holder's head; None when it runs no more."""
        ...

    async def signals(self, node: int) -> list[Signals]:
        """What the turns that run on a node are to be told."""
        ...

    async def recover(
        self,
        gone: int,
        repeatable: Repeatable,
        now: datetime,
        *,
        overdue: bool = False,
        lease_seconds: float = lanes.LEASE_SECONDS,
    ) -> list[Turn]:
        """Take back what a node held that is gone; the turns that are to be run again.

        Attempts count, and blame falls, as `turns.judge` says; none when the node had been told to stop.
        """
        ...

    async def hasten(self, now: datetime) -> None:
        """Turns and deliveries that wait for a later moment are due now: by the clock that it was taken from,
        it may be hours away."""
        ...

    async def renew(
        self, leases: Sequence[lanes.Lease], lease_seconds: float = lanes.LEASE_SECONDS
    ) -> set[lanes.Lease]:
        """Somebody is at it; those of the leases that nobody else has. What was claimed and never known to be
        is not renewed, and runs out."""
        ...

    async def held(self, node: int) -> set[lanes.Lease]:
        """What a node holds. What it works on and does not hold was taken from it."""
        ...

    async def prune(self, before: datetime, limit: int) -> int:
        """Forget turns that ended before that time, no more than so many; how many."""
        ...

    async def find(self, turn_id: str) -> Turn | None: ...

    async def open_turns(self, session_key: str, limit: int) -> list[Turn]:
        """What is under way or waits in a conversation, oldest first."""
        ...

    async def counts(self) -> dict[str, int]:
        """How many turns are in each state that is not final."""
        ...

    async def held_back(self) -> int:
        """How many suspects wait for others."""
        ...

    async def next_due(self, kind: lanes.LaneKind) -> datetime | None: ...


class Deliveries(Protocol):
    async def add(self, deliveries: Sequence[Delivery]) -> None: ...

    async def claim(
        self, node: int, limit: int, now: datetime, lease_seconds: float = lanes.LEASE_SECONDS
    ) -> list[DeliveryClaim]:
        """Take the first deliveries of free chats that are due, and count the attempt."""
        ...

    async def settle(self, claim: DeliveryClaim, settlement: Settlement, now: datetime) -> None: ...

    async def prune(self, before: datetime, limit: int) -> int:
        """Forget what arrived before that time, no more than so many; how many."""
        ...

    async def expire_boxes(self, before: datetime, limit: int) -> int:
        """Give up what was laid ready before that time and nobody collected; how many."""
        ...

    async def find(self, delivery_id: str) -> Delivery | None: ...

    async def of_turn(self, turn_id: str) -> list[Delivery]: ...

    async def waiting(self, lane: str, limit: int) -> list[Delivery]: ...

    async def troubled(self, limit: int) -> list[Delivery]:
        """What did not arrive or may not have, newest first."""
        ...

    async def late(self, limit: int) -> list[Delivery]:
        """What was tried in vain and is tried again, and what waits behind it, newest first."""
        ...

    async def bring_forward(self, late: Sequence[Delivery], now: datetime) -> None:
        """What is to be tried later is due now, as far as it still waits."""
        ...

    async def collect(self, delivery_ids: Sequence[str], now: datetime) -> int: ...

    async def revive(self, delivery_id: str, now: datetime) -> bool:
        """Send it again, because a person wants it; False when it is not in trouble."""
        ...

    async def counts(self) -> dict[str, int]: ...

    async def next_due(self) -> datetime | None: ...


class BackgroundWork(Protocol):
    """What goes on for conversations when no turn runs, for as long as somebody says so."""

    async def begin(self, work: BackgroundTask) -> None:
        """It runs, or still runs."""
        ...

    async def end(self, session_key: str, name: str) -> bool:
        """Whether it ran as far as anybody knew."""
        ...

    async def runs(self, session_key: str, now: datetime) -> bool: ...

    async def list(self, now: datetime, limit: int) -> list[BackgroundTask]:
        """All that runs, the latest first."""
        ...

    async def prune(self, now: datetime) -> None:
        """Forget what was not said again in time."""
        ...


class Feed(Protocol):
    async def end(self) -> FeedPosition: ...

    async def since(self, place: FeedPosition, limit: int) -> list[FeedEvent]: ...

    async def prune(self, before: datetime) -> None:
        """Forget what happened before that time."""
        ...


class Nodes(Protocol):
    async def join(self, name: str, now: datetime) -> int:
        """Take part; the node's number, under which it holds lanes."""
        ...

    @property
    def standing(self) -> int | None:
        """Another number each time that the others may have taken this node for gone; None while they may."""
        ...

    async def announce_stop(self, node: int, now: datetime) -> None:
        """It was told to stop: what it may leave behind is no turn's fault, and no attempt of its counts."""
        ...

    async def gone(self, node: int) -> list[int]:
        """The other nodes that hold lanes and are certainly gone."""
        ...

    async def overdue(self) -> list[int]:
        """The nodes that hold lanes and have not renewed all their leases in time."""
        ...


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """A database of an older version was brought up to date when it was opened."""

    found: int
    known: int
    copy: str | None = None
    """The file that holds it as it was, where the store can make one."""


class Store(Protocol):
    """What the entry points of ``frontdesk.stores`` open, by URL. Called with ``upgrade=False`` they refuse a
    database of an older version, and leave it as it is."""

    @property
    def upgraded(self) -> Upgrade | None:
        """What opening it has changed."""
        ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def transcripts(self) -> Transcripts: ...

    @property
    def index(self) -> Index: ...

    @property
    def aliases(self) -> Aliases: ...

    @property
    def people(self) -> People: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def deliveries(self) -> Deliveries: ...

    @property
    def background(self) -> BackgroundWork: ...

    @property
    def feed(self) -> Feed: ...

    @property
    def nodes(self) -> Nodes: ...

    @property
    def confirmations(self) -> Confirmations: ...

    @property
    def bells(self) -> Bells: ...

    async def check(self) -> None:
        """Raise the StoreError that a message would meet now: by what was written in the last second, else
        by writing something that is taken back."""
        ...

    async def inspect(self, seconds: float) -> bool:
        """Look for damage, for so long at most; whether all was looked at. CorruptDatabase names it."""
        ...

    async def close(self) -> None: ...
