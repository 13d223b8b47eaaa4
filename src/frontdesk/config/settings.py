"""Settings: what one is called, which values it takes, and how it is shown."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import product
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.model import routing
from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType

VARIABLE_PREFIX = "FRONTDESK_"
HIDDEN = "…"
UNLISTED = frozenset({"<chat>", "<profile>"})
"""What may be called anything: names that cannot be listed."""

Path = tuple[str, ...]
"""A setting's name, part by part."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_USER_PASSWORD = re.compile(r"(://[^:/?@]*):.*@", re.DOTALL)
_QUERY_PASSWORD = re.compile(r"([?&][^=&]*password=)[^&]*", re.IGNORECASE)
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")


class Origin(StrEnum):
    """Where a value came from; a later one wins."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"
    """Of the command line."""


class SettingKind(msgspec.Struct, frozen=True):
    """The values that a setting takes."""

    allowed: str
    """For people: what may stand there."""
    check: Callable[[Any], Any]
    """The value as it is used; ValueError when it is not allowed."""
    parse: Callable[[str], Any] = str
    """The value that the text of an environment variable stands for."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. ``<type>``, ``<platform>``, ``<chat>`` and ``<profile>`` in its name stand for any one of
    those."""

    name: str
    kind: SettingKind
    default: Any
    help: str
    secret: bool = False
    is_table: bool = False
    alias: str | None = None
    """Another environment variable that sets it; the usual one wins."""

    @property
    def parts(self) -> Path:
        return tuple(self.name.split("."))

    @property
    def variable(self) -> str | None:
        """The environment variable's name; what belongs to a single chat or profile, or is a table, has
        none."""
        return None if self.is_table or not UNLISTED.isdisjoint(self.parts) else variable_name(self.parts)

    def begins_with(self, path: Path) -> bool:
        """Whether the setting is this one or lies under it."""
        pairs = zip(self.parts, path, strict=False)
        return len(path) <= len(self.parts) and all(stands_for(part, name) for part, name in pairs)

    def paths(self) -> Iterator[Path]:
        """Every name it can have in the environment."""
        if self.variable:
            yield from product(*(STAND_INS[part]() if part in STAND_INS else (part,) for part in self.parts))

    def read(self, path: Path, value: Any) -> Any:
        """The checked value; an error names the setting and what is allowed."""
        try:
            return self.kind.check(value)
        except (ValueError, TypeError):
            raise errors.InvalidSetting(
                key=dotted(path), value=self.shown(value), allowed=self.kind.allowed
            ) from None

    def shown(self, value: Any) -> Any:
        """The value without what is secret in it."""
        if not self.secret or value is None:
            return value
        return without_password(value) if isinstance(value, str) and "://" in value else HIDDEN


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What a setting is set to, and by what."""

    setting: Setting
    path: Path
    value: Any
    origin: Origin = Origin.DEFAULT
    where: str | None = None
    """The file or the environment variable."""

    @property
    def name(self) -> str:
        return dotted(self.path)

    @property
    def shown(self) -> Any:
        return self.setting.shown(self.value)


OPTION = Setting(
    name="option",
    kind=SettingKind("what the part that it belongs to takes", lambda value: value),
    default=None,
    help="An option of an agent or a channel.",
)
STAND_INS: dict[str, Callable[[], tuple[str, ...]]] = {
    "<type>": lambda: tuple(map(str, ChatType)),
    "<platform>": lambda: tuple(map(str, Platform.known())),
    "<chat>": lambda: ("<chat>",),
    "<profile>": lambda: ("<profile>",),
}
"""What can stand in the place of each part in angle brackets."""


def stands_for(part: str, name: str) -> bool:
    """Whether a part of a setting's name admits this one."""
    if part == "<chat>":
        platform, _, chat_id = name.partition(":")
        return bool(chat_id) and Platform.parse(platform) is not None
    if part == "<profile>":
        return name != routing.DEFAULT and routing.PROFILE_NAME.fullmatch(name) is not None
    return name in STAND_INS[part]() if part in STAND_INS else part == name


def variable_name(path: Path) -> str:
    return VARIABLE_PREFIX + "_".join(path).upper().replace("-", "_")


def dotted(path: Path) -> str:
    """The name as TOML writes it."""
    return ".".join(part if _BARE.fullmatch(part) else _quoted(part) for part in path)


def as_toml(value: Any) -> str:
    """The value as TOML writes it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{dotted((str(key),))} = {as_toml(each)}' for key, each in value.items())} }}"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def without_password(url: str) -> str:
    shown = _USER_PASSWORD.sub(rf"\1:{HIDDEN}@", url)
    return _QUERY_PASSWORD.sub(rf"\1{HIDDEN}", shown)


def parse_flag(text: str) -> Any:
    """True or False for the usual words, anything else as it is."""
    word = text.strip().lower()
    return word in _TRUE if word in _TRUE | _FALSE else text


def parse_whole(text: str) -> Any:
    """The number, or the text when it is none."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else text


def parse_number(text: str) -> Any:
    """The number, which may have a fraction, or the text when it is none."""
    return float(text) if _NUMBER.fullmatch(text.strip()) else text


def parse_words(text: str) -> Any:
    """The words as a shell splits them, ``[]`` for none; the text when a quote stays open."""
    if text.strip() == "[]":
        return []
    try:
        return shlex.split(text)
    except ValueError:
        return text


def parse_names(text: str) -> Any:
    """Names between commas; ``[]`` for none."""
    return [] if text.strip() == "[]" else [name.strip() for name in text.split(",")]
