"""What chats have besides text: buttons, files, quotes, signs; and how far a platform was read."""

from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b

import msgspec

from frontdesk import errors
from frontdesk.model.sources import SessionSource

TOKEN_CHARACTERS = 32
"""The most that a button's token has, all ASCII: the smallest room that a platform gives."""
MAX_CURSOR_CHARACTERS = 10_000
MAX_CHAT_CHARACTERS = 500
DIGEST_BYTES = 16


class ChatBound(msgspec.Struct, frozen=True, kw_only=True):
    """How many chats somebody may begin on a platform within a time, counted at some moment."""

    owner: str
    platform: str
    most: int
    within: timedelta
    now: datetime


class TextUnit(StrEnum):
    """How a platform counts the length of a text."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"

    def length(self, text: str) -> int:
        match self:
            case TextUnit.UTF16:
                return len(text) + sum(character > "\uffff" for character in text)
            case TextUnit.BYTES:
                return len(text.encode("utf-8", "surrogatepass"))
            case _:
                return len(text)

    def fits(self, text: str, limit: int) -> bool:
        return len(text) <= limit and self.length(text) <= limit


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """Something to press under a message."""

    label: str
    token: str
    """Opaque and for one use: what it does is known to the store alone."""
    sign: str | None = None
    """The reaction that stands for it in a chat without buttons: put under the message, it can be tapped."""


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file in a message, as the platform has it: its bytes are fetched when they are wanted."""

    id: str
    name: str | None = None
    kind: str = "application/octet-stream"
    """Its media type, as the platform says."""
    size: int | None = None
    is_voice: bool = False
    digest: str | None = None
    """Of one whose bytes we have: its author brought it before the message, and it is called by that id."""

    @property
    def stored(self) -> "StoredFile | None":
        if self.digest is None:
            return None
        return StoredFile(digest=self.digest, name=self.name or "", kind=self.kind, size=self.size or 0)


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that we have, kept once for all who have the same bytes."""

    digest: str
    name: str
    kind: str
    size: int
    path: str | None = None
    """Where its bytes lie on this machine; known while it is sent."""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The message that another one answers."""

    message_id: str
    text: str | None = None
    is_ours: bool = False


class ReplyHandle(msgspec.Struct, frozen=True, kw_only=True):
    """What came with a message and is needed to answer it: opaque, and good for a while."""

    value: str
    expires_at: datetime | None = None


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far we have read what a platform keeps for us."""

    value: str
    chat: str = ""
    """The chat whose history it is about; empty for the account's one stream."""

    def __post_init__(self) -> None:
        for name, text, most in (
            ("value", self.value, MAX_CURSOR_CHARACTERS),
            ("chat", self.chat, MAX_CHAT_CHARACTERS),
        ):
            if len(text) > most or "\0" in text:
                why = f"use at most {most} characters, and no NUL"
                raise errors.InvalidInput(what=f"a cursor's {name}", why=why)


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be answered in one chat within a time, which is a day at most."""

    most: int
    seconds: float


class Allowance(StrEnum):
    """Whether something may be answered, as its quotas say."""

    WITHIN = "within"
    FULL = "full"
    """No more is: whoever wrote is to be told, once."""
    OVER = "over"


class ChatSign(StrEnum):
    """What a chat is shown besides messages."""

    TYPING = "typing"
    SEEN = "seen"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


def message_digest(source: SessionSource, message_id: str | None) -> str | None:
    """What a message of a chat is found by, whatever the platform's ids look like; None without an id."""
    if not message_id:
        return None
    chat = source.chat_id or source.user_id
    named = repr((str(source.platform), source.account, chat, message_id))
    return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
