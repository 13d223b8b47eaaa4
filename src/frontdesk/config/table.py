"""The settings that exist: one row each. Checks, names and the reference page come from here alone."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from frontdesk import errors
from frontdesk.config import settings
from frontdesk.config.settings import Setting, SettingKind
from frontdesk.contracts.hooks import Commands
from frontdesk.model import confirmations
from frontdesk.model.access import Access, Strangers
from frontdesk.model.gateway import GatewayConfig
from frontdesk.model.platforms import Platform, PlatformConfig
from frontdesk.model.policies import LIMITS, SessionResetPolicy
from frontdesk.model.running import Running
from frontdesk.model.turns import Busy

MAX_FRESHNESS_SECONDS = 10 * 366 * 24 * 60 * 60
MAX_HOOK_SECONDS = 3600

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


def _number(low: float, most: float, *, fractions: bool = False) -> Callable[[Any], Any]:
    """What takes a number from one to another; one with fractions is more than the lowest."""

    def check(value: Any) -> Any:
        kinds = int | float if fractions else int
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= most:
            raise ValueError
        if fractions and value == low:
            raise ValueError
        return float(value) if fractions else value

    return check


def _command(value: Any) -> tuple[str, ...]:
    words = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
    if not words or any("\0" in word for word in value) or (value and not value[0].strip()):
        raise ValueError
    return tuple(value)


FLAG = SettingKind("true or false", _flag, settings.parse_flag)
TEXT = SettingKind("a text that is not empty", _text)
CHAT_ID = SettingKind("a chat id", _chat_id)
FOLDER = SettingKind("an absolute path, or one that begins with ~/", _folder)
STORE_URL = SettingKind("sqlite:///path/state.db or postgresql://user@host/database", _store_url)
COMMAND = SettingKind(
    "a list of texts: a program and its arguments; [] for none", _command, settings.parse_words
)
HOOK_SECONDS = SettingKind(
    f"a whole number from 1 to {MAX_HOOK_SECONDS}", _number(1, MAX_HOOK_SECONDS), settings.parse_whole
)
FRESHNESS = SettingKind(
    f"a whole number up to {MAX_FRESHNESS_SECONDS}; 0 or less means for ever",
    _number(-math.inf, MAX_FRESHNESS_SECONDS),
    settings.parse_whole,
)


def _of(
    record: Callable[..., Any], field: str, parse: Callable[[str], Any], allowed: str = ""
) -> SettingKind:
    """What the record itself takes for a field: it alone knows, and mostly says, what is allowed."""

    def check(value: Any) -> Any:
        return getattr(record(**{field: value}), field)

    try:
        check(object())
    except errors.InvalidSetting as refused:
        return SettingKind(allowed or str(vars(refused)["allowed"]), check, parse)
    raise AssertionError(f"the record takes anything for {field}")


def _of_policy(field: str, parse: Callable[[str], Any] = str) -> SettingKind:
    return _of(SessionResetPolicy, field, parse)


def _known_platforms(value: Any) -> Any:
    """What the policy takes, all of them known: a misspelt one would silently exclude nothing."""
    names = SessionResetPolicy(notify_exclude_platforms=value).notify_exclude_platforms
    for name in names:
        Platform(name)
    return names


_EXCLUDED = SettingKind("a list of platform names", _known_platforms, settings.parse_names)
POLICY_FIELDS: dict[str, tuple[SettingKind, str]] = {
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
    **{
        limit.setting: (
            _of_policy(limit.setting, settings.parse_number if limit.fractions else settings.parse_whole),
            limit.help,
        )
        for limit in LIMITS
    },
    "spiral_repeats": (
        _of_policy("spiral_repeats", settings.parse_whole),
        "So many equal tool calls in a row within a turn are a spiral: the agent is warned, then the session"
        " ends. 0 means that they are not counted.",
    ),
    "spiral_errors": (
        _of_policy("spiral_errors", settings.parse_number),
        "This share of errors among the last `spiral_window` tool results is a spiral, too. 0 means that they"
        " are not counted.",
    ),
    "spiral_window": (
        _of_policy("spiral_window", settings.parse_whole),
        "How many tool results `spiral_errors` looks at.",
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


def _fields_of(record: Any, prefix: str, rows: Mapping[str, tuple[SettingKind, str]]) -> tuple[Setting, ...]:
    """The settings of a record's fields, which have its defaults."""
    return tuple(
        Setting(name=f"{prefix}.{field}", kind=kind, default=getattr(record, field), help=text)
        for field, (kind, text) in rows.items()
    )


def _gateway_setting(name: str, kind: SettingKind, text: str) -> Setting:
    return Setting(name=name, kind=kind, default=getattr(GatewayConfig(), name), help=text)


def _platform_setting(name: str, kind: SettingKind, text: str) -> Setting:
    default = getattr(PlatformConfig(), name, None)
    return Setting(name=f"platforms.<platform>.{name}", kind=kind, default=default, help=text)


_IDS = 'a list of user ids; "chat:<id>" for everybody in a chat, "*" for everybody'
ACCESS_FIELDS: dict[str, tuple[SettingKind, str]] = {
    "allow": (
        _of(Access, "allow", settings.parse_names, _IDS),
        "Who may use the platform, besides those whom an administrator let in. Empty: nobody.",
    ),
    "administrators": (
        _of(Access, "administrators", settings.parse_names, "a list of user ids"),
        "Who may also let others in and see every conversation.",
    ),
    "block": (
        _of(Access, "block", settings.parse_names, _IDS),
        "Who may not use the platform, whatever else lets them in.",
    ),
    "strangers": (
        _of(Access, "strangers", str, ", ".join(Strangers)),
        "What others hear when they write in private, at most once a day: nothing, that this is not for"
        " everybody, or a code by which an administrator lets them in.",
    ),
    "allow_bots": (
        _of(Access, "allow_bots", settings.parse_flag, "true or false"),
        "Whether bots are treated as people. Otherwise only those whom `allow` names are heard.",
    ),
}


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
        raise ValueError
    return tuple(value)


def _address(value: Any) -> str:
    parts = urlsplit(_text(value))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError
    return str(value)


def _addresses(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(urlsplit(_address(each)).path for each in value):
        raise ValueError
    return tuple(value)


LAST_PORT = 65_535
MOST_SECONDS = 30 * 24 * 3600
MOST_DAYS = 36_600
WHOLE = SettingKind("a whole number from 1", _number(1, math.inf), settings.parse_whole)
PORT = SettingKind(
    f"a whole number up to {LAST_PORT}; 0 takes any free one", _number(0, LAST_PORT), settings.parse_whole
)
DAYS = SettingKind(f"a whole number up to {MOST_DAYS}", _number(0, MOST_DAYS), settings.parse_whole)
SECONDS = SettingKind(
    f"a number over 0, up to {MOST_SECONDS}", _number(0, MOST_SECONDS, fractions=True), settings.parse_number
)
BUSY = SettingKind(", ".join(Busy), Busy)
NAMES = SettingKind("a list of platform names", _known_platforms, settings.parse_names)
RUNNING_FIELDS: dict[str, tuple[SettingKind, str]] = {
    "busy_mode": (
        BUSY,
        "What becomes of a message that comes while a turn runs: it waits (`queue`), is passed on to the"
        " agent at once if that can take it (`steer`), or stops the turn (`interrupt`).",
    ),
    "busy_notice": (FLAG, "Whether its sender is told so."),
    "most_waiting": (WHOLE, "How many messages may wait in a conversation; further ones are refused."),
    "turns_at_once": (
        WHOLE,
        "How many turns run on a node at once; those that wait for a person do not count.",
    ),
    "commands_at_once": (
        WHOLE,
        "How many commands, such as `/stop`, are dealt with at once; turns do not take their places.",
    ),
    "deliveries_at_once": (WHOLE, "How many answers are sent at once."),
    "turn_seconds": (SECONDS, "The longest that a turn may take."),
    "turn_idle_seconds": (SECONDS, "The longest that an agent may be silent in a turn."),
    "stop_seconds": (SECONDS, "How long an agent may take to stop by itself; then it is stopped."),
    "drain_seconds": (
        SECONDS,
        "How long running turns may go on after the order to shut down; not those that wait for a person.",
    ),
    "send_seconds": (SECONDS, "The longest that sending an answer may take."),
    "delivery_max_age_seconds": (SECONDS, "After so long, what could not be delivered is given up."),
    "keep_days": (
        WHOLE,
        "How long finished turns and deliveries are kept. So long an event that comes again is known;"
        " transcripts are kept in any case.",
    ),
    "prune_days": (
        DAYS,
        "After so many days without a word a conversation is pruned: its next message starts a new one, as"
        " the first did. The old session is kept, to be found and resumed. 0 means never.",
    ),
    "lease_seconds": (
        SECONDS,
        "After so long without a sign of life, others take over what a node was working on; 3 or more. A node"
        " that ended is noticed within seconds: this is for nodes that stand still, and for machines that are"
        " cut off.",
    ),
    "expiry_check_seconds": (SECONDS, "How often sessions are looked for whose time is over."),
    "extra_prompt": (TEXT, "Instructions for the agent in every turn, after the context."),
    "redact_pii": (
        FLAG,
        "Whether ids of people and chats are hidden from the agent where the platform allows it.",
    ),
    "close_after_answer": (NAMES, "Platforms whose session rests, resumably, once its answer is delivered."),
}


HOOK_FIELDS: dict[str, tuple[SettingKind, str]] = {
    "on_session_start": (COMMAND, "The command to run when a session has begun."),
    "on_session_end": (COMMAND, "The command to run when a session has ended."),
    "on_session_finalize": (
        COMMAND,
        "The command to run before a session is replaced; it gets the transcript.",
    ),
    "has_active_processes": (
        COMMAND,
        "The command that is asked whether work goes on for a conversation in the background: 0 says yes, 1"
        " no. It holds back resets by policy, and pruning.",
    ),
    "timeout_seconds": (HOOK_SECONDS, "How long a hook may take; a command is killed after that."),
}
CONFIRM_FIELDS: dict[str, tuple[SettingKind, Any, str]] = {
    "enabled": (
        FLAG,
        True,
        "Whether `frontdesk run` takes requests for confirmation on a port of their own.",
    ),
    "host": (
        TEXT,
        "127.0.0.1",
        "The address to listen on. Others than this machine reach it only when it is another one.",
    ),
    "port": (PORT, 6000, "The port to listen on."),
    "mode": (
        SettingKind(", ".join(confirmations.Mode), confirmations.Mode),
        confirmations.Settings().mode,
        "How much is asked of everybody. `solo`: whoever is on this machine may ask. `team`: agents need a"
        " token. `strict`: besides, the most dangerous actions need two approvers, nobody decides about what"
        " was asked on their behalf, and nothing is remembered.",
    ),
    "rate_limit": (
        WHOLE,
        confirmations.DEFAULT_RATE_LIMIT,
        "How often each action may be asked for within an hour.",
    ),
    "keep_days": (
        WHOLE,
        confirmations.KEEP_DAYS,
        "How long decided requests are kept, with what they were about. The audit log is kept in any case.",
    ),
    "callbacks": (
        SettingKind(
            "a list of http or https addresses, each with at least a / behind the host",
            _addresses,
            settings.parse_names,
        ),
        (),
        "What an address must begin with to which an agent may have the decision sent. It takes a secret that"
        " signs what is sent: `callback_secret_env` names its variable, or `callback_secret_file` its file.",
    ),
    "page_url": (
        SettingKind("an http or https address", _address),
        None,
        "Where people see the page of what waits; told with each request.",
    ),
    "link_for": (
        TEXT,
        None,
        "The approver who alone reads the home channels; `approver` is the owner. Requests that are told"
        " there come with a link for them, with which they decide without signing in.",
    ),
    "token_env": (
        TEXT,
        "CONFIRMATION_TOKEN",
        "The environment variable in which the commands that talk to the service find their token.",
    ),
}
CONFIRM_VARIABLES = {
    "host": "CONFIRMATION_HOST",
    "port": "CONFIRMATION_PORT",
    "rate_limit": "CONFIRMATION_RATE_LIMIT",
}
"""What these settings are called in the environment, besides their usual names."""


def _confirm_settings() -> tuple[Setting, ...]:
    return tuple(
        Setting(
            name=f"confirm.{field}", kind=kind, default=default, help=text, alias=CONFIRM_VARIABLES.get(field)
        )
        for field, (kind, default, text) in CONFIRM_FIELDS.items()
    )


HOME = _gateway_setting("home", FOLDER, "The folder that frontdesk keeps its files in.")
STORE = Setting(
    name="store.url",
    kind=STORE_URL,
    default="sqlite:///<home>/state.db",
    help="The database: a file of this machine, or a PostgreSQL server for several nodes.",
    secret=True,
)
SERVER_HOST = Setting(
    name="server.host",
    kind=TEXT,
    default="127.0.0.1",
    help="The address to listen on. Others than this machine reach it only when it is another one.",
)
SERVER_PORT = Setting(name="server.port", kind=PORT, default=8642, help="The port to listen on.")
SERVER_NAMES = Setting(
    name="server.names",
    kind=SettingKind("a list of host names", _names, settings.parse_names),
    default=(),
    help="Host names under which the server is reached, besides its address and `localhost`.",
)
AGENT_DRIVER = Setting(
    name="agent.driver",
    kind=TEXT,
    default="local",
    help="The kind of agent. Its own options stand in the same table: see [agents](agents.md).",
)
CHECKPOINTS = Setting(
    name="checkpoints.enabled",
    kind=FLAG,
    default=False,
    help="Whether the working directory is checkpointed when a session is rotated, and by command.",
)
WORKING_DIR = Setting(
    name="checkpoints.working_dir",
    kind=TEXT,
    default=None,
    help=(
        "The working directory: where the agent works, and what is checkpointed. `agent.cwd` is another name"
        " for it; two different folders are an error. Not set, it is the one that frontdesk is started in."
    ),
)
MAX_CHECKPOINTS = Setting(
    name="checkpoints.max_checkpoints",
    kind=WHOLE,
    default=20,
    help="How many are kept; the oldest ones are dropped.",
)
OPTION = Setting(
    name="option",
    kind=SettingKind("what the part that it belongs to takes", lambda value: value),
    default=None,
    help="An option of an agent or a channel.",
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
        "How long an interrupted session waits to be continued where it was. A turn that was cut off earlier"
        " does not go on by itself at the next start, and its sender is told.",
    ),
    STORE,
    SERVER_HOST,
    SERVER_PORT,
    SERVER_NAMES,
    AGENT_DRIVER,
    *_fields_of(Running(), "gateway", RUNNING_FIELDS),
    *_confirm_settings(),
    CHECKPOINTS,
    WORKING_DIR,
    MAX_CHECKPOINTS,
    *_fields_of(Commands(), "hooks", HOOK_FIELDS),
    *_fields_of(SessionResetPolicy(), "session_reset", POLICY_FIELDS),
    *_fields_of(SessionResetPolicy(), "session_reset.by_type.<type>", POLICY_FIELDS),
    *_fields_of(SessionResetPolicy(), "session_reset.by_platform.<platform>", POLICY_FIELDS),
    *_fields_of(SessionResetPolicy(), "session_reset.by_chat.<chat>", POLICY_FIELDS),
    Setting(
        name="chats.<chat>.instructions",
        kind=TEXT,
        default=None,
        help="What the agent is told in this chat, in the prompt of each turn, after the context. A topic is"
        ' written `"platform:chat_id:thread_id"`; what its chat is told holds there, too.',
    ),
    _platform_setting(
        "enabled",
        FLAG,
        "Whether the platform counts as connected for programs that use the session layer alone. What the"
        " gateway is connected to are its channels.",
    ),
    _platform_setting("tools", FLAG, "Whether the agent has the platform's own tools."),
    _platform_setting("home_channel.chat_id", CHAT_ID, "The chat to which unprompted output goes."),
    _platform_setting("home_channel.name", TEXT, "What that chat is called; not set, it is Home."),
    *_fields_of(Access(), "channels.<platform>", ACCESS_FIELDS),
)
