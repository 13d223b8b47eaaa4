"""Who and what there is on the platform that the stand-in plays: people, chats, messages, troubles."""

from typing import Any

import msgspec

from frontdesk.testing.wire import Upload

ASKED_BY_NAME = frozenset({"message_reaction", "message_reaction_count", "chat_member"})
"""Updates that come only when they are asked for by name."""
REACTIONS = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 😢 🎉 🤩 🙏 👌 🥱 💯 🤣 ⚡ 💔 👀 ✍ 🤝 🫡 😴 😭 🤓 👻 🆒"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    first_name: str = "Ada"
    last_name: str | None = None
    username: str | None = None
    is_bot: bool = False

    def told(self) -> dict[str, Any]:
        return {name: each for name, each in msgspec.to_builtins(self).items() if each is not None}


class Chat(msgspec.Struct, kw_only=True):
    id: int
    type: str = "private"
    title: str | None = None
    is_forum: bool = False
    topics: set[int] = msgspec.field(default_factory=set)
    blocked: bool = False
    """Whether the bot was blocked or thrown out."""
    migrated_to: int | None = None
    waits_until: float = 0.0
    """Until when the platform said that nothing is to come."""

    def told(self) -> dict[str, Any]:
        named: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.title is not None:
            named["title"] = self.title
        if self.is_forum:
            named["is_forum"] = True
        return named


class Post(msgspec.Struct, kw_only=True):
    """A message that the bot sent, as people see it now."""

    chat_id: int
    message_id: int
    text: str
    thread_id: int | None = None
    entities: list[dict[str, Any]] = []
    buttons: list[dict[str, str]] = []
    reply_to: int | None = None
    files: tuple[Upload, ...] = ()
    how: str = "sendMessage"
    """The method that it came by."""
    edits: int = 0


class ApiFault(msgspec.Struct, kw_only=True):
    """What goes wrong with a call."""

    method: str | None = None
    """Which call; any, when none is named."""
    taken: bool = False
    """Whether it is carried out before that."""
    status: int | None = None
    """What is said instead of the result."""
    description: str = "Internal Server Error"
    retry_after: int | None = None
    body: bytes | None = None
    """What is answered instead, as if all were well."""
    cut: bool = False
    hangs: bool = False
    times: int | None = 1
    """How often; None: from now on."""


class ApiCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call, as it came."""

    method: str
    fields: dict[str, str]
    uploads: dict[str, Upload]
    token: str
