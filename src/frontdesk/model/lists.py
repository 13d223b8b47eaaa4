"""Lists of sessions as people see them: each with its last words and what becomes of it just now."""

from datetime import datetime
from enum import StrEnum

import msgspec

from frontdesk.model.audit import AuditEntry
from frontdesk.model.people import Viewer
from frontdesk.model.searches import Hit
from frontdesk.model.sessions import Session, SessionEntry
from frontdesk.model.turns import Turn

PREVIEW_CHARACTERS = 200
LISTED_CHARACTERS = 1_200
"""Of a text in a row of a list: by its beginning it is chosen."""


class SessionState(StrEnum):
    """What becomes of a session just now."""

    WORKING = "working"
    """A turn runs."""
    WAITING = "waiting"
    """A turn waits for a person's approval."""
    QUEUED = "queued"
    """Turns wait to be run."""
    TROUBLE = "trouble"
    IDLE = "idle"
    ENDED = "ended"


class TroubleKind(StrEnum):
    SET_ASIDE = "set_aside"
    """A turn of it was begun too often; the next message starts afresh."""
    UNDELIVERED = "undelivered"
    """Something that was said in it did not arrive, or may not have."""


class ListedStates(StrEnum):
    """Which sessions of a list are wanted, by what becomes of them."""

    ALL = "all"
    WORKING = "working"
    """Those that wait to be run included."""
    WAITING = "waiting"
    TROUBLE = "trouble"
    ENDED = "ended"


def chat_name_of(entry: SessionEntry) -> str | None:
    """What people call the chat that a session belongs to."""
    return entry.display_name or (entry.origin.chat_name if entry.origin else None)


def is_nameless(entry: SessionEntry) -> bool:
    """Whether nobody has named its chat, nor can it be called after who writes in it: they have others."""
    platform = entry.platform
    return not chat_name_of(entry) and platform is not None and platform.facts.nameless_chats


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the sessions that somebody may see are wanted."""

    platform: str | None = None
    owner: str | None = None
    """The person, or the shared conversation, that they belong to."""
    states: ListedStates = ListedStates.ALL

    def owners(self, viewer: Viewer) -> list[str] | None:
        """Whose sessions are looked at; None for everybody's."""
        if self.owner is None:
            return None if viewer.administrator else sorted(viewer.owners)
        return [self.owner] if viewer.sees(self.owner) else []


class LastWords(msgspec.Struct, frozen=True, kw_only=True):
    """What was said last in a session."""

    role: str
    text: str
    """Its beginning, in one line; of one that only calls tools, their names."""
    at: datetime
    calls_tools: bool = False


class SessionTrouble(msgspec.Struct, frozen=True, kw_only=True):
    kind: TroubleKind
    why: str | None = None
    count: int = 1


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session with all that a list shows of it."""

    session: Session
    root: str
    """The first of its lineage."""
    state: SessionState
    since: datetime | None = None
    """When the turn that runs began, or the first that waits came in."""
    queued: int = 0
    trouble: SessionTrouble | None = None
    last: LastWords | None = None
    called: str | None = None
    """Where nobody has named its chat: its title or its first words, or those of the one it goes on from."""
    message_limit: int = 0
    """How many messages it may have, by the settings; 0 where there is no limit."""
    profile: str | None = None


class FoundSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was looked for by words."""

    listed: ListedSession
    hit: Hit | None = None
    """The message that has the words; None when the title has them, or the name of the chat."""


class StateCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many sessions a filter would show, counting no further than ``at_most``."""

    all: int
    working: int
    waiting: int
    trouble: int
    ended: int
    at_most: int


class ListedTurns(StrEnum):
    """Which turns are wanted."""

    WAITING = "waiting"
    """To be run."""
    RUNNING = "running"
    """Those that wait for a person included."""
    SET_ASIDE = "set_aside"
    RECENT = "recent"
    """All, whatever became of them."""


class ListedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, and the lane that it is in."""

    id: str
    number: int
    lane: str
    due_at: datetime
    """While it waits: not before then."""
    turn: Turn | None
    """None when its row cannot be read. Of a text that is cut there is one character more than is shown."""


class TurnNumbers(msgspec.Struct, frozen=True):
    """How many turns there are in each list, as far as they are counted."""

    queued: int
    running: int
    waiting: int
    set_aside: int
    oldest_at: datetime | None
    """Since when the one has waited to be run that has waited longest."""


class ListedDeliveries(StrEnum):
    """Which deliveries are wanted."""

    DEAD = "dead"
    UNSURE = "unsure"
    """They may have arrived."""
    LATE = "late"
    """Tried in vain and tried again, or waiting behind such a one."""
    WAITING = "waiting"
    """To be sent for the first time, or being sent."""
    DISCARDED = "discarded"


class DeliveryNumbers(msgspec.Struct, frozen=True):
    """How many deliveries there are in each list of what has not arrived, as far as they are counted."""

    dead: int
    unsure: int
    late: int
    waiting: int


class ListedAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of the audit log are wanted."""

    kind: str | None = None
    actor: str | None = None
    confirmation_id: str | None = None

    def fits(self, entry: AuditEntry) -> bool:
        return (
            self.kind in (None, entry.kind)
            and self.actor in (None, entry.actor)
            and self.confirmation_id in (None, entry.confirmation_id)
        )
