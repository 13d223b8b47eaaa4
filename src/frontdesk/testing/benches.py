"""The platform of a test: what people do there, what they see, and what goes wrong."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

from frontdesk import errors
from frontdesk.contracts import channels
from frontdesk.model import deliveries

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.01
FORGED = {
    "platform": "local",
    "account": "another",
    "is_bot": True,
    "role_authorized": True,
    "delivered_via_upstream_relay": True,
    "profile": "another",
}
REFUSALS = (
    errors.NotAllowed(who="x", rule="x"),
    errors.InvalidInput(what="x", why="x"),
    errors.Unroutable(key="x"),
)
"""For good: the platform need not bring the message again."""


class Act(StrEnum):
    """What people do on some platforms besides writing."""

    EDIT = "edit"
    DELETE = "delete"
    QUOTE = "quote"
    ALBUM = "album"
    FILE = "file"
    PRESS = "press"
    REACT = "react"
    MENTION = "mention"
    """They write to us by name, where many talk."""
    EXPEL = "expel"
    """They throw us out of the chat, or it is no more."""


class PlatformFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as somebody on the platform sends or sees it."""

    name: str
    data: bytes
    kind: str = "application/octet-stream"


class PlatformEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody on the platform does: a message, unless an act is named."""

    id: str
    chat_id: str
    user_id: str
    text: str = "Hello"
    forged: Mapping[str, Any] = {}
    """Fields that the sender adds to the payload, wherever the platform lets it."""
    act: Act | None = None
    in_group: bool = False
    """Whether it happens where many talk, of whom not all mean us."""
    about: str | None = None
    """The event whose message is changed, deleted or quoted; the id of our message that is reacted to, or
    under which a button is pressed."""
    token: str | None = None
    """The token of the button."""
    emoji: str | None = None
    album: str | None = None
    files: tuple[PlatformFile, ...] = ()


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as somebody on the platform sees it."""

    text: str
    chat_id: str
    id: str | None = None
    """What the platform knows a repeated answer by."""
    about: str | None = None
    """The message that it is shown to answer, by the platform's id, or the handle that it came by."""
    buttons: tuple[tuple[str, str], ...] = ()
    """Each with its label and its token."""
    files: tuple[PlatformFile, ...] = ()


class Trouble(StrEnum):
    REFUSES = "refuses"
    """Nobody listens."""
    FAILS = "fails"
    """It says that something went wrong with it."""
    HANGS = "hangs"
    """It takes the message and says nothing."""
    CUTS = "cuts"
    """It takes the message and hangs up."""


TROUBLED = {
    Trouble.REFUSES: deliveries.NotSent,
    Trouble.FAILS: deliveries.NotSent | deliveries.Unknown,
    Trouble.HANGS: deliveries.Unknown,
    Trouble.CUTS: deliveries.Unknown,
}
"""What is known of an answer after each trouble."""


class Bench(Protocol):
    """A channel tied to a platform that the test plays; the channel receives already."""

    @property
    def channel(self) -> channels.Channel: ...

    async def inject(self, event: PlatformEvent) -> bool:
        """Bring an event. Whether the platform was told that we have it, and need not bring it again."""

    async def arrived(self) -> Sequence[Arrival]:
        """The answers that the platform has, oldest first; of one that was changed, the last form."""


class SendingBench(Bench, Protocol):
    async def trouble(self, trouble: Trouble | None) -> None:
        """What the platform does from now on; None: it works."""


@runtime_checkable
class LastingBench(Protocol):
    """What a bench has besides whose channel can be started anew."""

    async def restart(self, *meanwhile: PlatformEvent) -> None:
        """The channel ends, this happens, and another channel begins with the same desk. What the platform
        has for it may still be on its way."""


class VisibleSign(msgspec.Struct, frozen=True, kw_only=True):
    """What people see of us besides messages."""

    chat_id: str
    message_id: str | None = None
    """The message that we have put a sign to; None: it is shown that we write."""


@runtime_checkable
class SignedBench(Protocol):
    """What a bench has besides whose platform shows signs."""

    async def signs(self) -> Sequence[VisibleSign]:
        """What is shown now; that we write, also when it is over."""


async def until(holds: Callable[[], object]) -> None:
    """Wait for what has to happen."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
