"""What may happen to a conversation: the answers a decision can give to the store."""

import msgspec

from frontdesk.model.messages import Message
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import Session


class Situation(msgspec.Struct, frozen=True):
    """What the store knows of a key: its current session, and another one that may take its place."""

    current: Session | None
    other: Session | None = None


class Stay(msgspec.Struct, frozen=True):
    """Change nothing."""


class Ask(msgspec.Struct, frozen=True):
    """Change nothing yet: whether background work holds the session back must be asked first."""


class Touch(msgspec.Struct, frozen=True):
    """The current session goes on; it was active just now."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The current session goes on with other facts."""

    session: Session
    fresh_allowance: bool = False
    """Count its messages from here on only."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A new session becomes current; the one before it, if open, ends with ``ends``."""

    session: Session
    ends: EndReason
    copies_parent: bool = False
    messages: tuple[Message, ...] = ()


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier session, re-opened, becomes current; the one before it, if open, ends with ``ends``."""

    session: Session
    ends: EndReason = EndReason.SWITCH
    fresh_allowance: bool = True


Move = Stay | Ask | Touch | Change | Start | Switch


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision came to."""

    session: Session | None
    """The current session after the move."""
    before: Session | None
    """The current session before it."""
    move: Move
