"""The settings that exist: one row each. Checks, names and the reference page come from here alone."""

import re
from collections.abc import Callable
from typing import Any

from frontdesk import errors
from frontdesk.config import settings
from frontdesk.config.settings import Kind, Setting
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import Platform, PlatformConfig
from frontdesk.model.policies import SessionResetPolicy

MAX_FRESHNESS_SECONDS = 10 * 366 * 24 * 60 * 60

_STORE_URL = re.compile(r"[a-z][a-z0-9+.-]*://.+", re.DOTALL)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _chat_id(value: Any) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _folder(value: Any) -> str:
    if not _text(value).startswith(("/", "~/")) or "\0" in value:
        raise ValueError
    return str(value)


def _store_url(value: Any) -> str:
    if not _STORE_URL.fullmatch(_text(value)):
        raise ValueError
    return str(value)


def _freshness(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value > MAX_FRESHNESS_SECONDS:
        raise ValueError
    return value


FLAG = Kind("true or false", _flag, settings.parse_flag)
TEXT = Kind("a text that is not empty", _text)
CHAT_ID = Kind("a chat id", _chat_id)
FOLDER = Kind("an absolute path, or one that begins with ~/", _folder)
STORE_URL = Kind("sqlite:///path/state.db or postgresql://user@host/database", _store_url)
FRESHNESS = Kind(
    f"a whole number up to {MAX_FRESHNESS_SECONDS}; 0 or less means for ever",
    _freshness,
    settings.parse_whole,
)


def _of_policy(field: str, parse: Callable[[str], Any] = str) -> Kind:
    """What the policy itself takes for a field: the record alone knows the ranges."""

    def check(value: Any) -> Any:
        return getattr(SessionResetPolicy(**{field: value}), field)

    try:
        check(object())
    except errors.InvalidSetting as refused:
        return Kind(str(vars(refused)["allowed"]), check, parse)
    raise AssertionError(f"the policy takes anything for {field}")


def _known_platforms(value: Any) -> Any:
    """What the policy takes, all of them known: a misspelt one would silently exclude nothing."""
    names = SessionResetPolicy(notify_exclude_platforms=value).notify_exclude_platforms
    for name in names:
        Platform(name)
    return names


_EXCLUDED = Kind("a list of platform names", _known_platforms, settings.parse_names)
POLICY_FIELDS: dict[str, tuple[Kind, str]] = {
    "mode": (
        _of_policy("mode"),
        "When a conversation starts afresh: `daily` at an hour, when `idle` for long, `both`, or `none`.",
    ),
    "at_hour": (
        _of_policy("at_hour", settings.parse_whole),
        "The hour of the daily reset, by the clock of `timezone`.",
    ),
    "idle_minutes": (
        _of_policy("idle_minutes", settings.parse_whole),
        "How long nothing must have been said for an idle reset.",
    ),
    "max_messages": (
        _of_policy("max_messages", settings.parse_whole),
        "How many messages a session holds before the next one starts, in every mode. 0 means no limit.",
    ),
    "notify": (
        _of_policy("notify", settings.parse_flag),
        "Whether people are told that their conversation was started afresh, and why.",
    ),
    "notify_exclude_platforms": (_EXCLUDED, "Platforms on which nobody is told."),
    "timezone": (
        _of_policy("timezone"),
        "The IANA time zone of `at_hour`. Not set, it is the machine's; several nodes need one.",
    ),
}


def _policy_settings(prefix: str) -> tuple[Setting, ...]:
    defaults = SessionResetPolicy()
    return tuple(
        Setting(name=f"{prefix}.{field}", kind=kind, default=getattr(defaults, field), help=text)
        for field, (kind, text) in POLICY_FIELDS.items()
    )


def _gateway_setting(name: str, kind: Kind, text: str) -> Setting:
    return Setting(name=name, kind=kind, default=getattr(GatewayConfig(), name), help=text)


def _platform_setting(name: str, kind: Kind, text: str) -> Setting:
    default = getattr(PlatformConfig(), name, None)
    return Setting(name=f"platforms.<platform>.{name}", kind=kind, default=default, help=text)


HOME = _gateway_setting("home", FOLDER, "The folder that frontdesk keeps its files in.")
STORE = Setting(
    name="store.url",
    kind=STORE_URL,
    default="sqlite:///<home>/state.db",
    help="The database: a file of this machine, or a PostgreSQL server for several nodes.",
    secret=True,
)
SETTINGS: tuple[Setting, ...] = (
    HOME,
    _gateway_setting(
        "group_sessions_per_user", FLAG, "Whether each person of a group has a conversation of their own."
    ),
    _gateway_setting(
        "thread_sessions_per_user",
        FLAG,
        "Whether that holds in threads too, which are shared otherwise. Needs `group_sessions_per_user`.",
    ),
    _gateway_setting(
        "multiplex_profiles", FLAG, "Whether conversations are kept apart by the profile they are routed to."
    ),
    _gateway_setting(
        "active_profile",
        TEXT,
        "With `multiplex_profiles`, the profile of messages that name none; not set, it is the default one.",
    ),
    _gateway_setting(
        "auto_continue_freshness_seconds",
        FRESHNESS,
        "How long an interrupted session waits to be continued where it was.",
    ),
    STORE,
    *_policy_settings("session_reset"),
    *_policy_settings("session_reset.by_type.<type>"),
    *_policy_settings("session_reset.by_platform.<platform>"),
    *_policy_settings("session_reset.by_chat.<chat>"),
    _platform_setting("enabled", FLAG, "Whether the platform is connected."),
    _platform_setting("tools", FLAG, "Whether the agent has the platform's own tools."),
    _platform_setting("home_channel.chat_id", CHAT_ID, "The chat to which unprompted output goes."),
    _platform_setting("home_channel.name", TEXT, "What that chat is called; not set, it is Home."),
)
