"""Deliveries: what is to be said to a chat, and whether it arrived."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk.model.chats import Button, ReplyHandle, StoredFile
from frontdesk.model.lanes import Lease
from frontdesk.model.sources import SessionSource


class DeliveryState(StrEnum):
    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    """It may have arrived; it is not sent again by itself, since the platform could not tell it apart."""
    DEAD = "dead"
    """Given up; a person can send it again."""
    DISCARDED = "discarded"
    """A person wants it no more."""


MOVES = {
    DeliveryState.PENDING: {DeliveryState.SENDING, DeliveryState.SENT, DeliveryState.DEAD},
    DeliveryState.SENDING: {
        DeliveryState.PENDING,
        DeliveryState.SENT,
        DeliveryState.UNKNOWN,
        DeliveryState.DEAD,
    },
    DeliveryState.UNKNOWN: {DeliveryState.PENDING, DeliveryState.SENT, DeliveryState.DISCARDED},
    DeliveryState.DEAD: {DeliveryState.PENDING, DeliveryState.DISCARDED},
}
"""The legal moves. A person moves UNKNOWN and DEAD back to PENDING, or to DISCARDED."""


class DeliveryKind(StrEnum):
    REPLY = "reply"
    """The agent's answer, or a command's."""
    NOTICE = "notice"
    """Something that the gateway says itself: a queue, a rotation, a failure."""
    DRAFT = "draft"
    """An answer as far as it is written. It is shown, never stored: the answer comes in its place."""


DRAFT = "draft"
REPLACES = "replaces"
CONFIRMATION = "confirmation"
ERASED = "(What was said here has been erased.)"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: DeliveryKind = DeliveryKind.REPLY
    state: DeliveryState = DeliveryState.PENDING
    lane: str
    to: SessionSource
    """The message that is answered: where the answer goes belongs to it, not to the session."""
    text: str
    is_markdown: bool = False
    """The text is to be shown in the platform's own form. Any other is shown as it is written: what people
    decide about must not look different from what it is."""
    final: bool = True
    """Whether nothing more comes for this message."""
    turn_id: str | None = None
    session_id: str | None = None
    session_key: str | None = None
    event_id: str | None = None
    """The platform's id of the message that is answered."""
    extra: dict[str, Any] = {}
    """What some channels need to know. ``draft`` is the platform's id of the message whose place it takes,
    ``replaces`` the id of the delivery that brought that message, as long as the platform's is not known,
    ``confirmation`` the id of what people are asked about."""
    buttons: tuple[Button, ...] = ()
    files: tuple[StoredFile, ...] = ()
    handle: ReplyHandle | None = None
    """What came with the message that is answered, where its platform wants it back."""
    unsure_since: datetime | None = None
    """From then on a send may have arrived of which nobody knows."""
    created_at: datetime
    due_at: datetime | None = None
    """Not before then, while it waits."""
    sent_at: datetime | None = None
    attempts: int = 0
    error: str | None = None
    platform_message_id: str | None = None
    number: int = 0

    @property
    def draft(self) -> str | None:
        """The message that is to be changed into this one; None when it is one of its own."""
        return self.extra.get(DRAFT)

    @property
    def brought_by(self) -> str:
        """The delivery that brought its message: itself, unless it changes an earlier one."""
        return str(self.extra.get(REPLACES, self.id))

    @property
    def confirmation_id(self) -> str | None:
        """The confirmation that people are asked about."""
        return self.extra.get(CONFIRMATION)


class Hindrance(msgspec.Struct, frozen=True, kw_only=True):
    """Why something has not arrived."""

    platform: str
    why: str | None
    next_try_at: datetime | None
    """When it is tried again by itself; what waits behind another one goes when that has arrived."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """It arrived."""

    message_id: str | None = None


class NotSent(msgspec.Struct, frozen=True, kw_only=True):
    """It certainly did not arrive; later it may, unless that is hopeless."""

    why: str
    retry_after_seconds: float | None = None
    """So long nothing is to be sent to that chat."""
    whole_account: bool = False
    """Nor to any other chat of the account."""
    gone: bool = False
    """The message that it was to change is not there any more: it becomes one of its own."""
    hopeless: bool = False


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """It may have arrived."""

    why: str
    retry_after_seconds: float | None = None
    whole_account: bool = False
    hopeless: bool = False
    """Nobody will ever know."""


Outcome = Sent | NotSent | Unknown


class DeliveryClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery to be sent now, by whom holds the lease."""

    delivery: Delivery
    lease: Lease


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an attempt to send."""

    state: DeliveryState
    retry_at: datetime | None = None
    error: str | None = None
    platform_message_id: str | None = None
    counts: bool = True
    """False when it was claimed and nothing of it was sent."""
    unsure_since: datetime | None = None
    """When the attempt began, if it may have arrived and is to be tried again."""
    drops_draft: bool = False
    """The message that it was to change is gone."""
