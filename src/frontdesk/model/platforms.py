"""The chat platforms: an open set of names."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec.structs import force_setattr, replace

from frontdesk import errors, plugins
from frontdesk.model import inputs

if TYPE_CHECKING:
    from frontdesk.model.contexts import SessionContext

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class PlatformFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of a platform: the module ``facts`` in its folder has it as ``FACTS``."""

    pii_safe: bool = False
    """Its ids may be redacted: they are not needed to mention people."""
    mentions_by_id: bool = False
    """People are mentioned by id: these are never redacted, whatever else is said."""
    nameless_chats: bool = False
    """Somebody has many chats there, which have no names: each is called by its title or its first words."""
    distinct_ids: bool = False
    """An id of a thread, a person and a chat never coincide. Otherwise anything may be an id."""
    chat_id_form: str = "[^:]+"
    """How its chat ids look in an address, as a pattern without groups: where an id of a chat ends and one of
    a thread begins."""
    telling_rank: int = 100
    """Of several platforms with a home channel, the one with the lowest rank is told first."""
    notes: Callable[["SessionContext"], str] | None = None
    """What the agent must know about the platform it talks on."""


class Platform(str):
    """A registered platform's name. ``Platform("telegram") is Platform.TELEGRAM``."""

    __slots__ = ()
    _known: ClassVar[dict[str, "Platform"]] = {}
    _facts: ClassVar[dict[str, PlatformFacts]] = {}

    LOCAL: ClassVar["Platform"]
    TELEGRAM: ClassVar["Platform"]
    DISCORD: ClassVar["Platform"]
    SLACK: ClassVar["Platform"]
    WHATSAPP: ClassVar["Platform"]
    SIGNAL: ClassVar["Platform"]
    MATRIX: ClassVar["Platform"]
    EMAIL: ClassVar["Platform"]
    WEBHOOK: ClassVar["Platform"]
    API_SERVER: ClassVar["Platform"]
    BLUEBUBBLES: ClassVar["Platform"]
    FEISHU: ClassVar["Platform"]
    WEIXIN: ClassVar["Platform"]
    YUANBAO: ClassVar["Platform"]
    WEB: ClassVar["Platform"]

    def __new__(cls, name: str) -> "Platform":
        known = cls._known.get(name) if isinstance(name, str) else None
        if known is None:
            raise errors.UnknownPlatform(name=name, known=", ".join(cls._known))
        return known

    @classmethod
    def register(cls, name: str, *, pii_safe: bool = False, distinct_ids: bool = False) -> "Platform":
        """Add a plug-in's platform. ``pii_safe`` says that its ids may be redacted, ``distinct_ids`` that an
        id of a thread, a person and a chat never coincide."""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise errors.InvalidInput(
                what=f"Platform name {name!r}", why="use a-z, 0-9, '_' and '-', at most 64 characters"
            )
        if name not in cls._known:
            cls._known[name] = str.__new__(cls, name)
        platform = cls._known[name]
        if pii_safe:
            cls._facts[name] = replace(platform.facts, pii_safe=True)
        if distinct_ids:
            cls._facts[name] = replace(platform.facts, distinct_ids=True)
        return platform

    @classmethod
    def parse(cls, name: object) -> "Platform | None":
        """The platform of that name, or None for one that nobody registered."""
        return cls._known.get(name) if isinstance(name, str) else None

    @classmethod
    def known(cls) -> tuple["Platform", ...]:
        """Every registered platform, the built-in ones first."""
        return tuple(cls._known.values())

    @property
    def facts(self) -> PlatformFacts:
        """What its folder says of it, read when somebody asks for the first time."""
        if self not in self._facts:
            self._facts[self] = plugins.load_facts(self) or PlatformFacts()
        return self._facts[self]

    @property
    def pii_safe(self) -> bool:
        """Whether ids of this platform may be redacted: they are not needed to mention people."""
        return self.facts.pii_safe and not self.facts.mentions_by_id

    @property
    def value(self) -> str:
        return str(self)


for _name in Platform.__annotations__:
    if _name.isupper():
        setattr(Platform, _name, Platform.register(_name.lower()))
TERMINAL = Platform.LOCAL
"""Where the owner of this machine talks."""
PROGRAMS = Platform.API_SERVER
"""Where programs talk over HTTP."""
PAGE = Platform.WEB
"""Where people talk on the gateway's own page."""
READ_BY_PROGRAMS = (str(Platform.API_SERVER), str(Platform.WEBHOOK))
"""Nobody reads there that a session was reset."""
ASKED_ONCE = (str(Platform.API_SERVER),)
"""Whoever asks there waits for one answer, and comes back for no other."""


class HomeChannel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The chat of a platform to which unprompted output goes."""

    platform: Platform
    chat_id: str
    name: str
    thread_id: str | None = None

    def __post_init__(self) -> None:
        platform = Platform.parse(self.platform)
        if platform is None:
            known = ", ".join(Platform.known())
            raise errors.InvalidSetting(key="home_channel.platform", value=self.platform, allowed=known)
        force_setattr(self, "platform", platform)
        if not isinstance(self.chat_id, str) or not self.chat_id.strip():
            raise errors.InvalidSetting(key="home_channel.chat_id", value=self.chat_id, allowed="a chat id")
        if not isinstance(self.name, str):
            raise errors.InvalidSetting(key="home_channel.name", value=self.name, allowed="a text")
        thread = self.thread_id
        if thread is not None and (not isinstance(thread, str) or not thread.strip()):
            raise errors.InvalidSetting(key="home_channel.thread_id", value=thread, allowed="a thread id")

    def to_dict(self) -> dict[str, str]:
        told = {"platform": str(self.platform), "chat_id": self.chat_id, "name": self.name}
        return told | ({"thread_id": self.thread_id} if self.thread_id else {})

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> "HomeChannel":
        chat_id = data.get("chat_id")
        return cls(
            platform=Platform(str(data.get("platform"))),
            chat_id="" if chat_id is None else str(chat_id),
            name=str(data.get("name") or "Home"),
            thread_id=str(data["thread_id"]) if data.get("thread_id") is not None else None,
        )


class PlatformConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How one platform is set up."""

    enabled: bool = False
    home_channel: HomeChannel | None = None
    tools: bool = False
    """Whether the agent has this platform's own tools (a bot token and its toolset are enabled)."""

    def __post_init__(self) -> None:
        inputs.check_flags(self, "enabled", "tools")
        if not isinstance(self.home_channel, HomeChannel | None):
            raise errors.InvalidSetting(key="home_channel", value=self.home_channel, allowed="a HomeChannel")
