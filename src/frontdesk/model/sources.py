"""Where a message came from."""

from collections.abc import Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from frontdesk import errors
from frontdesk.model.platforms import TERMINAL, Platform

MAX_NAME_CHARACTERS = 80


class ChatType(StrEnum):
    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"


CHAT_TYPES = {str(kind): kind for kind in ChatType} | {"forum": ChatType.GROUP, "webhook": ChatType.DM}
"""By their names, those that entries of older forms have included."""

WRITTEN = ("platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")
WRITTEN_WHEN_SET = (
    "user_id_alt",
    "chat_id_alt",
    "scope_id",
    "guild_id",
    "parent_chat_id",
    "message_id",
    "profile",
    "account",
)
NAMES = ("chat_name", "user_name", "chat_topic")
TEXTS = (*NAMES, "user_id", "thread_id", *WRITTEN_WHEN_SET)
CHECKED = ("chat_id", *TEXTS)
TEXTS_OF = attrgetter(*CHECKED)
WRITTEN_OF = attrgetter(*WRITTEN)
MANY_CHARACTERS = 4_000
OPTIONAL_OF = attrgetter(*WRITTEN_WHEN_SET)


class SessionSource(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of one message.

    ``is_bot``, ``roles``, ``role_authorized`` and ``delivered_via_upstream_relay`` are set by the receiving
    adapter alone: they are neither written nor read, so that no peer can forge them.
    """

    platform: Platform
    chat_id: str = ""
    chat_name: str | None = None
    chat_type: ChatType = ChatType.DM
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    chat_id_alt: str | None = None
    is_bot: bool = False
    scope_id: str | None = None
    guild_id: str | None = None
    parent_chat_id: str | None = None
    message_id: str | None = None
    roles: tuple[str, ...] = ()
    """The roles that the platform gives the sender where they write, by their ids."""
    role_authorized: bool = False
    profile: str | None = None
    delivered_via_upstream_relay: bool = False
    account: str | None = None
    """Which of our own accounts or endpoints on the platform received it; None for the only one."""

    def __post_init__(self) -> None:
        if type(self.platform) is not Platform:
            force_setattr(self, "platform", Platform(self.platform))
        if type(self.chat_type) is not ChatType:
            force_setattr(self, "chat_type", _chat_type(self.chat_type))
        if type(self.chat_id) is not str:
            force_setattr(self, "chat_id", "" if self.chat_id is None else str(self.chat_id))
        if type(self.roles) is not tuple or self.roles:
            force_setattr(self, "roles", tuple(map(str, self.roles)))
        for value in TEXTS_OF(self):
            if value is not None and not (type(value) is str and value.isascii()):
                self._clean()
                break
        if self.scope_id != self.guild_id:
            scope = self.scope_id or self.guild_id
            force_setattr(self, "scope_id", scope)
            force_setattr(self, "guild_id", scope)

    def _clean(self) -> None:
        for name, value in zip(CHECKED, TEXTS_OF(self), strict=True):
            if value is not None:
                force_setattr(self, name, _text(name, value))

    @property
    def is_long(self) -> bool:
        """Whether its texts are much longer than names and ids are."""
        return sum(map(len, filter(None, TEXTS_OF(self)))) > MANY_CHARACTERS

    @classmethod
    def local_cli(cls) -> "SessionSource":
        return cls(platform=TERMINAL, chat_id="cli", chat_name="CLI terminal")

    @property
    def participant(self) -> str | None:
        """The person's most stable id."""
        return self.user_id_alt or self.user_id

    @property
    def others_read(self) -> bool:
        """Whether more people than the sender read what is said in the chat."""
        return self.chat_type is not ChatType.DM

    @property
    def description(self) -> str:
        """A short text for people: where this is."""
        if self.platform is TERMINAL:
            return "CLI terminal"
        place = self.chat_name or self.chat_id
        if self.chat_type is ChatType.DM:
            place = f"DM with {self.user_name or self.user_id or 'user'}"
        elif self.chat_type in (ChatType.GROUP, ChatType.CHANNEL):
            place = f"{self.chat_type}: {place}"
        return f"{place}, thread: {self.thread_id}" if self.thread_id else place

    def to_dict(self) -> dict[str, Any]:
        written = dict(zip(WRITTEN, WRITTEN_OF(self), strict=True))
        written |= {"platform": str(self.platform), "chat_type": str(self.chat_type)}
        values = OPTIONAL_OF(self)
        if any(values):
            written |= {name: value for name, value in zip(WRITTEN_WHEN_SET, values, strict=True) if value}
        return written

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SessionSource":
        if not isinstance(data, Mapping):
            raise errors.InvalidSource(why=f"expected an object, got {type(data).__name__}")
        if not data.get("platform"):
            raise errors.InvalidSource(why="platform is missing")
        named = data.get("chat_type") or ChatType.DM
        known = {name: data[name] for name in TEXTS if data.get(name) is not None}
        return cls(
            platform=data["platform"],
            chat_id=data.get("chat_id", ""),
            chat_type=CHAT_TYPES.get(str(named), named),
            **known,
        )


def read_chat_type(value: object) -> ChatType:
    """A chat type as it was written, older names included."""
    return CHAT_TYPES.get(str(value)) or _chat_type(value)


def _chat_type(value: object) -> ChatType:
    try:
        return ChatType(str(value))
    except ValueError:
        allowed = ", ".join(ChatType)
        raise errors.InvalidSource(why=f"chat_type is {value!r}; allowed: {allowed}") from None


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise errors.InvalidSource(why=f"{name} must be text, got {type(value).__name__}")
    text = str(value)
    if name in NAMES:
        return readable(text)
    if text != readable(text):
        raise errors.InvalidSource(why=f"{name} is not valid Unicode")
    return text


def short_name(name: str | None) -> str | None:
    """What somebody is called, as it is kept beside what they did."""
    return readable(name)[:MAX_NAME_CHARACTERS] if name else None


def readable(text: str) -> str:
    """The text with what is not valid Unicode (lone surrogates) shown as U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
