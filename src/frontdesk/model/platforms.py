"""The chat platforms: an open set of names."""

import re
from typing import ClassVar

import msgspec
from msgspec.structs import force_setattr

from frontdesk import errors

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Platform(str):
    """A registered platform's name. ``Platform("telegram") is Platform.TELEGRAM``."""

    __slots__ = ()
    _known: ClassVar[dict[str, "Platform"]] = {}
    _redactable: ClassVar[set[str]] = set()
    _distinct: ClassVar[set[str]] = set()

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
        if pii_safe:
            cls._redactable.add(name)
        if distinct_ids:
            cls._distinct.add(name)
        return cls._known[name]

    @classmethod
    def parse(cls, name: object) -> "Platform | None":
        """The platform of that name, or None for one that nobody registered."""
        return cls._known.get(name) if isinstance(name, str) else None

    @classmethod
    def known(cls) -> tuple["Platform", ...]:
        """Every registered platform, the built-in ones first."""
        return tuple(cls._known.values())

    @property
    def pii_safe(self) -> bool:
        """Whether ids of this platform may be redacted: they are not needed to mention people."""
        return str(self) in self._redactable

    @property
    def free_text_ids(self) -> bool:
        """Whether anything may be an id here, so that one of a thread can be the same as one of a person."""
        return str(self) not in self._distinct

    @property
    def value(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str.__str__(self)


_BUILT_IN = (
    "local",
    "telegram",
    "discord",
    "slack",
    "whatsapp",
    "signal",
    "matrix",
    "email",
    "webhook",
    "api_server",
    "bluebubbles",
    "feishu",
    "weixin",
    "yuanbao",
    "web",
)
_PII_SAFE = {"telegram", "whatsapp", "signal", "bluebubbles"}
_FREE_TEXT_IDS = {"webhook", "api_server", "web"}
for _name in _BUILT_IN:
    _platform = Platform.register(
        _name, pii_safe=_name in _PII_SAFE, distinct_ids=_name not in _FREE_TEXT_IDS
    )
    setattr(Platform, _name.upper(), _platform)


class HomeChannel(msgspec.Struct, frozen=True, kw_only=True):
    """The chat of a platform to which unprompted output goes."""

    platform: Platform
    chat_id: str
    name: str

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

    def to_dict(self) -> dict[str, str]:
        return {"platform": str(self.platform), "chat_id": self.chat_id, "name": self.name}

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> "HomeChannel":
        chat_id = data.get("chat_id")
        if chat_id is None or chat_id == "":
            raise errors.InvalidSetting(key="home_channel.chat_id", value=None, allowed="a chat id")
        return cls(
            platform=Platform(str(data.get("platform"))),
            chat_id=str(chat_id),
            name=str(data.get("name") or "Home"),
        )


class PlatformConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How one platform is set up."""

    enabled: bool = False
    home_channel: HomeChannel | None = None
    tools: bool = False
    """Whether the agent has this platform's own tools (Discord: bot token and toolset enabled)."""

    def __post_init__(self) -> None:
        for name in ("enabled", "tools"):
            if not isinstance(getattr(self, name), bool):
                raise errors.InvalidSetting(key=name, value=getattr(self, name), allowed="true or false")
        if not isinstance(self.home_channel, HomeChannel | None):
            raise errors.InvalidSetting(key="home_channel", value=self.home_channel, allowed="a HomeChannel")
