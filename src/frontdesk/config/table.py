"""The settings that exist: one row each. Checks, names and the reference page come from here alone."""

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from frontdesk import errors
from frontdesk.config import settings
from frontdesk.config.confirm import Confirm
from frontdesk.config.settings import Setting, SettingKind
from frontdesk.contracts.hooks import Commands
from frontdesk.model.access import OF_PEOPLE, Access, Strangers
from frontdesk.model.confirmations import Mode
from frontdesk.model.files import FileSettings
from frontdesk.model.gateway import MAX_FRESHNESS_SECONDS, GatewayConfig
from frontdesk.model.listening import MOST_GATHER_SECONDS, Answering, Listening, check_gathering
from frontdesk.model.platforms import Platform, PlatformConfig
from frontdesk.model.policies import LIMITS, SessionResetPolicy
from frontdesk.model.routing import Profile
from frontdesk.model.running import Running
from frontdesk.model.turns import Busy

MAX_HOOK_SECONDS = 3600
LAST_PORT = 65_535
MOST_SECONDS = 30 * 24 * 3600
MOST_DAYS = 36_600

_PREFIX = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
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


def _address(value: Any) -> str:
    parts = urlsplit(_text(value))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError
    return str(value)


def _public_url(value: Any) -> str:
    parts = urlsplit(_address(value))
    plain = not parts.query and not parts.fragment and _PREFIX.fullmatch(parts.path.rstrip("/"))
    if not plain or parts.port == 0:
        raise ValueError
    return str(value).rstrip("/")


def _addresses(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(urlsplit(_address(each)).path for each in value):
        raise ValueError
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
        raise ValueError
    return tuple(value)


def _networks(value: Any) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(each, strict=False)) for each in _names(value))


def _known_platforms(value: Any) -> tuple[str, ...]:
    """All of them known: a misspelt one would silently mean nothing."""
    return tuple(str(Platform(name)) for name in _names(value))


def _tables(value: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError
    return tuple(dict(each) for each in value)


def _command(value: Any) -> tuple[str, ...]:
    words = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
    if not words or any("\0" in word for word in value) or (value and not value[0].strip()):
        raise ValueError
    return tuple(value)


def _whole(allowed: str, low: float, most: float) -> SettingKind:
    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= most:
            raise ValueError
        return value

    return SettingKind(allowed, check, settings.parse_whole)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
        raise ValueError
    return float(value)


FLAG = SettingKind("true or false", _flag, settings.parse_flag)
TEXT = SettingKind("a text that is not empty", _text)
CHAT_ID = SettingKind("a chat id", _chat_id)
WHOLE = _whole("a whole number from 1", 1, math.inf)
PORT = _whole(f"a whole number up to {LAST_PORT}; 0 takes any free one", 0, LAST_PORT)
SECONDS = SettingKind(f"a number over 0, up to {MOST_SECONDS}", _seconds, settings.parse_number)
NAMES = SettingKind("a list of platform names", _known_platforms, settings.parse_names)
COMMAND = SettingKind(
    "a list of texts: a program and its arguments; [] for none", _command, settings.parse_words
)
KINDS = {bool: FLAG, int: WHOLE, float: SECONDS, str: TEXT, type(None): TEXT, tuple: NAMES}
"""What a setting takes, by its default, unless something else is said of it."""
PARSERS = {
    bool: settings.parse_flag,
    int: settings.parse_whole,
    float: settings.parse_number,
    tuple: settings.parse_names,
}


def _of(record: Any, field: str, allowed: str = "") -> SettingKind:
    """What the record itself takes for a field: it alone knows, and mostly says, what is allowed."""

    def check(value: Any) -> Any:
        return getattr(type(record)(**{field: value}), field)

    try:
        check(object())
    except errors.InvalidSetting as refused:
        parse: Callable[[str], Any] = PARSERS.get(type(getattr(record, field)), str)
        return SettingKind(allowed or str(vars(refused)["allowed"]), check, parse)
    raise AssertionError(f"the record takes anything for {field}")


ALIASES = {
    "confirm.host": "CONFIRMATION_HOST",
    "confirm.port": "CONFIRMATION_PORT",
    "confirm.rate_limit": "CONFIRMATION_RATE_LIMIT",
}
"""What these settings are called in the environment, besides their usual names."""


def _rows(
    table: str, record: Any, texts: Mapping[str, str], kinds: Mapping[str, SettingKind] | None = None
) -> tuple[Setting, ...]:
    """The settings of a record's fields, which have its defaults; with what is said of each."""
    rows = [(field, f"{table}.{field}" if table else field, getattr(record, field)) for field in texts]
    return tuple(
        Setting(
            name=name,
            kind=(kinds or {}).get(field) or KINDS[type(default)],
            default=default,
            help=texts[field],
            alias=ALIASES.get(name),
        )
        for field, name, default in rows
    )


GENERAL = {
    "home": "The folder that frontdesk keeps its files in.",
    "group_sessions_per_user": "Whether each person of a group has a conversation of their own.",
    "thread_sessions_per_user": (
        "Whether that holds in threads too, which are shared otherwise. Needs `group_sessions_per_user`."
    ),
    "multiplex_profiles": (
        "Whether conversations are kept apart by the profile they are routed to. Where there are"
        " [profiles](profiles.md) they are."
    ),
    "active_profile": (
        "With `multiplex_profiles`, the profile of messages that name none; not set, it is the default one."
    ),
    "auto_continue_freshness_seconds": (
        "How long an interrupted session waits to be continued where it was. A turn that was cut off"
        " earlier does not go on by itself at the next start, and its sender is told."
    ),
}
GENERAL_KINDS = {
    "home": SettingKind("an absolute path, or one that begins with ~/", _folder),
    "auto_continue_freshness_seconds": _whole(
        f"a whole number up to {MAX_FRESHNESS_SECONDS}; 0 or less means for ever",
        -math.inf,
        MAX_FRESHNESS_SECONDS,
    ),
}
RUNNING = {
    "busy_mode": (
        "What becomes of a message that comes while a turn runs: it waits (`queue`), is passed on to the"
        " agent at once if that can take it (`steer`), or stops the turn (`interrupt`)."
    ),
    "busy_notice": "Whether its sender is told so.",
    "progress": (
        "Whether the tools that an agent uses are named in the message that shows its answer while it is"
        " written, where messages can be changed."
    ),
    "status_reactions": (
        "Whether a reaction to a message shows that it was seen, is worked on, is done or has failed, where"
        " there are reactions."
    ),
    "most_waiting": "How many messages may wait in a conversation; further ones are refused.",
    "most_waiting_per_person": (
        "How many messages of one person may wait in all their chats together, or of one group in all its"
        " threads; further ones are refused."
    ),
    "turns_at_once": (
        "How many turns run on a node at once; those that wait for a person do not count. When more wait"
        " than there are places, [everybody gets an even part](concepts.md#who-comes-next)."
    ),
    "commands_at_once": (
        "How many commands, such as `/stop`, are dealt with at once; turns do not take their places."
    ),
    "deliveries_at_once": "How many answers are sent at once.",
    "turn_seconds": "The longest that a turn may take.",
    "turn_idle_seconds": "The longest that an agent may be silent in a turn.",
    "stop_seconds": "How long an agent may take to stop by itself; then it is stopped.",
    "drain_seconds": (
        "How long running turns may go on after the order to shut down; not those that wait for a person."
    ),
    "send_seconds": "The longest that sending an answer may take.",
    "delivery_max_age_seconds": "After so long, what could not be delivered is given up.",
    "keep_days": (
        "How long finished turns and deliveries are kept. So long an event that comes again is known;"
        " transcripts are kept in any case."
    ),
    "prune_days": (
        "After so many days without a word a conversation is pruned: its next message starts a new one, as"
        " the first did. The old session is kept, to be found and resumed. 0 means never."
    ),
    "lease_seconds": (
        "After so long without a sign of life, others take over what a node was working on; 3 or more. A"
        " node that ended is noticed within seconds: this is for nodes that stand still, and for machines"
        " that are cut off."
    ),
    "expiry_check_seconds": "How often sessions are looked for whose time is over.",
    "extra_prompt": "Instructions for the agent in every turn, after the context.",
    "tell_times": (
        "Whether the agent is told [when each message was written](context.md#times), where the platform says"
        " so."
    ),
    "redact_pii": "Whether ids of people and chats are hidden from the agent where the platform allows it.",
    "close_after_answer": "Platforms whose session rests, resumably, once its answer is delivered.",
    "send_to": (
        "Chats that agents may [send](sending.md) to, besides the one that they answer in and the home"
        " channels."
    ),
}
RUNNING_KINDS = {
    "delivery_max_age_seconds": SECONDS,
    "busy_mode": SettingKind(", ".join(Busy), Busy),
    "prune_days": _whole(f"a whole number up to {MOST_DAYS}", 0, MOST_DAYS),
    "send_to": _of(Running(), "send_to"),
}
CONFIRM = {
    "enabled": "Whether `frontdesk run` takes requests for confirmation on a port of their own.",
    "host": "The address to listen on. Others than this machine reach it only when it is another one.",
    "port": "The port to listen on.",
    "mode": (
        "How much is asked of everybody. `solo`: whoever is on this machine may ask. `team`: agents need a"
        " token. `strict`: besides, the most dangerous actions need two approvers, nobody decides about"
        " what was asked on their behalf, and nothing is remembered."
    ),
    "rate_limit": "How often each action may be asked for within an hour.",
    "prompts_per_hour": "How often people may be asked for one token, or for all without; whatever about.",
    "keep_days": (
        "How long decided requests are kept, with what they were about. The audit log is kept in any case."
    ),
    "callbacks": (
        "What an address must begin with to which an agent may have the decision sent. It takes a secret"
        " that signs what is sent: `callback_secret_env` names its variable, or `callback_secret_file` its"
        " file."
    ),
    "page_url": (
        "Where people see the page of what waits; told with each request. Not set, it is `server.url`."
    ),
    "link_for": (
        "The approver who alone reads the home channels; `approver` is the owner. Requests that are told"
        " there come with a link for them, with which they decide without signing in."
    ),
    "token_env": "The environment variable in which the commands that talk to the service find their token.",
}
CONFIRM_KINDS = {
    "port": PORT,
    "mode": SettingKind(", ".join(Mode), Mode),
    "callbacks": SettingKind(
        "a list of http or https addresses, each with at least a / behind the host",
        _addresses,
        settings.parse_names,
    ),
    "page_url": SettingKind("an http or https address", _address),
}
HOOKS = {
    "on_session_start": "The command to run when a session has begun.",
    "on_session_end": "The command to run when a session has ended.",
    "on_session_finalize": "The command to run before a session is replaced; it gets the transcript.",
    "has_active_processes": (
        "The command that is asked whether work goes on for a conversation in the background: 0 says yes,"
        " 1 no. It holds back resets by policy, and pruning."
    ),
    "timeout_seconds": "How long a hook may take; a command is killed after that.",
}
HOOKS_KINDS = dict.fromkeys(HOOKS, COMMAND) | {
    "timeout_seconds": _whole(f"a whole number from 1 to {MAX_HOOK_SECONDS}", 1, MAX_HOOK_SECONDS)
}
FILES = {
    "most_bytes": "The largest file that is taken from a message, or from the agent.",
    "most_files": "How many files are taken from one message, and from the agent in one turn.",
    "fetch_seconds": "How long the files of a message may take to come from the platform, all together.",
    "keep_days": (
        "How long a file is kept. With a conversation that is forgotten its files are, too, at once."
    ),
    "transcribe": (
        "The command that writes down what is said in a voice message; it gets the file's path as its last"
        " argument and writes the text to its standard output."
    ),
    "transcribe_seconds": "How long that may take; the command is killed after that.",
    "spoken_names": (
        "What people call the agent. A voice message in a group in which one of these is heard is meant for"
        " it."
    ),
}
FILES_KINDS = {
    "transcribe": COMMAND,
    "spoken_names": SettingKind("a list of names", _names, settings.parse_names),
}
POLICY = {
    "mode": "When a conversation starts afresh: `daily` at an hour, when `idle` for long, `both`, or `none`.",
    "at_hour": "The hour of the daily reset, by the clock of `timezone`.",
    "idle_minutes": "How long nothing must have been said for an idle reset.",
    **{limit.setting: limit.help for limit in LIMITS},
    "spiral_repeats": (
        "So many equal tool calls in a row within a turn are a spiral: the agent is warned, then the session"
        " ends. 0 means that they are not counted."
    ),
    "spiral_errors": (
        "This share of errors among the last `spiral_window` tool results is a spiral, too. 0 means that they"
        " are not counted."
    ),
    "spiral_window": "How many tool results `spiral_errors` looks at.",
    "notify": "Whether people are told that their conversation was started afresh, and why.",
    "notify_exclude_platforms": "Platforms on which nobody is told.",
    "timezone": "The IANA time zone of `at_hour`. Not set, it is the machine's; several nodes need one.",
}
POLICY_KINDS = {field: _of(SessionResetPolicy(), field) for field in POLICY} | {
    "notify_exclude_platforms": NAMES
}
PLATFORM = {
    "enabled": (
        "Whether the platform counts as connected for programs that use the session layer alone. What the"
        " gateway is connected to are its channels."
    ),
    "tools": "Whether the agent has the platform's own tools.",
}
ACCESS = {
    "allow": "Who may use the platform, besides those whom an administrator let in. Empty: nobody.",
    "approvers": "Who may also decide about dangerous actions.",
    "administrators": "Who may also decide, let others in and see every conversation.",
    "block": "Who may not use the platform, whatever else lets them in.",
    "strangers": (
        "What others hear when they write in private, at most once a day: nothing, that this is not for"
        " everybody, or a code by which an administrator lets them in."
    ),
    "allow_bots": (
        "Whether bots are heard as people are. Otherwise only those whom `allow` names are. None is answered."
    ),
}
PROFILE = {
    "prompt": "Instructions for the agent in every turn, in the place of `gateway.extra_prompt`.",
    "working_dir": (
        "Where its agent works, and what is checkpointed, in the place of `checkpoints.working_dir`."
        " `agent.cwd` in the profile is another name for it."
    ),
}
_IDS = (
    'a list of user ids; "chat:<id>" or "role:<id>" for everybody in a chat or with a role, "*" for everybody'
)
ACCESS_KINDS = {
    "allow": _of(Access(), "allow", _IDS),
    **{name: _of(Access(), name, "a list of user ids") for name in OF_PEOPLE},
    "block": _of(Access(), "block", _IDS),
    "strangers": SettingKind(", ".join(Strangers), Strangers),
}
LISTENING = {
    "answer": (
        "Which messages of a group are answered: those that are `addressed` to the agent (it is mentioned,"
        " one of its messages is answered, or it has spoken in that thread before), or `always` all. The rest"
        " is overheard. In private all are answered."
    ),
    "answer_always_in": "Groups in which all messages are answered; a topic is `chat_id:thread_id`.",
    "gather_seconds": "The same as [`turns.gather_seconds`](#turnsgather_seconds), for this platform.",
}
LISTENING_KINDS = {
    "answer": SettingKind(", ".join(Answering), Answering),
    "answer_always_in": _of(Listening(), "answer_always_in"),
    "gather_seconds": SettingKind(
        f"a number up to {MOST_GATHER_SECONDS:g}; 0 turns it off", check_gathering, settings.parse_number
    ),
}
TURNS = {
    "gather_seconds": (
        "How long a message waits for others that follow it: what somebody writes in a burst is answered as"
        " one. It is waited on while more come, five times as long at most. Commands never wait, and pictures"
        " of one album are always gathered. 0 turns it off."
    )
}
SETTINGS: tuple[Setting, ...] = (
    *_rows("", GatewayConfig(), GENERAL, GENERAL_KINDS),
    Setting(
        name="store.url",
        kind=SettingKind("sqlite:///path/state.db or postgresql://user@host/database", _store_url),
        default="sqlite:///<home>/state.db",
        help="The database: a file of this machine, or a PostgreSQL server for several nodes.",
        secret=True,
    ),
    Setting(
        name="server.host",
        kind=TEXT,
        default="127.0.0.1",
        help="The address to listen on. Others than this machine reach it only when it is another one.",
    ),
    Setting(name="server.port", kind=PORT, default=8642, help="The port to listen on."),
    Setting(
        name="server.names",
        kind=SettingKind("a list of host names", _names, settings.parse_names),
        default=(),
        help="Host names under which the server is reached, besides `localhost` and, where it listens to"
        " other machines, addresses and the machine's own name. A request for any other gets 421.",
    ),
    Setting(
        name="server.url",
        kind=SettingKind("an http or https address without anything behind its path", _public_url),
        default=None,
        help="Where browsers reach the server, when that is not its own address: through a proxy, like"
        " `https://desk.example.org/frontdesk`. Its path is the prefix of all pages; see"
        " [behind a proxy](access.md#behind-a-proxy).",
    ),
    Setting(
        name="server.connections",
        kind=WHOLE,
        default=1000,
        help="How many connections each port takes at once, and no more than a fourth of the files that the"
        " process may have open. An address gets a fourth of them before it shows a valid credential, and a"
        " credential half of them. The oldest gives way.",
    ),
    Setting(
        name="server.proxies",
        kind=SettingKind("a list of addresses and networks", _networks, settings.parse_names),
        default=(),
        help="Proxies before the server, like `10.0.0.7` or `10.1.0.0/16`. They connect for many people, so"
        " the bound on the connections of one address is not theirs.",
    ),
    Setting(
        name="agent.driver",
        kind=TEXT,
        default="local",
        help="The kind of agent. Its own options stand in the same table: see [agents](agents.md).",
    ),
    *_rows("gateway", Running(), RUNNING, RUNNING_KINDS),
    *_rows("turns", Running(), TURNS, LISTENING_KINDS),
    *_rows("confirm", Confirm(), CONFIRM, CONFIRM_KINDS),
    Setting(
        name="checkpoints.enabled",
        kind=FLAG,
        default=False,
        help="Whether the working directory is checkpointed when a session is rotated, and by command.",
    ),
    Setting(
        name="checkpoints.working_dir",
        kind=TEXT,
        default=None,
        help="The working directory: where the agent works, and what is checkpointed. `agent.cwd` is another"
        " name for it; two different folders are an error. Not set, it is the one that frontdesk is started"
        " in.",
    ),
    Setting(
        name="checkpoints.max_checkpoints",
        kind=WHOLE,
        default=20,
        help="How many are kept; the oldest ones are dropped.",
    ),
    *_rows("hooks", Commands(), HOOKS, HOOKS_KINDS),
    *_rows("files", FileSettings(), FILES, FILES_KINDS),
    *_rows("session_reset", SessionResetPolicy(), POLICY, POLICY_KINDS),
    *_rows("session_reset.by_type.<type>", SessionResetPolicy(), POLICY, POLICY_KINDS),
    *_rows("session_reset.by_platform.<platform>", SessionResetPolicy(), POLICY, POLICY_KINDS),
    *_rows("session_reset.by_chat.<chat>", SessionResetPolicy(), POLICY, POLICY_KINDS),
    Setting(
        name="chats.<chat>.instructions",
        kind=TEXT,
        default=None,
        help="What the agent is told in this chat, in the prompt of each turn, after the context. A topic is"
        ' written `"platform:chat_id:thread_id"`; what its chat is told holds there, too.',
    ),
    *_rows("platforms.<platform>", PlatformConfig(), PLATFORM),
    Setting(
        name="platforms.<platform>.home_channel.chat_id",
        kind=CHAT_ID,
        default=None,
        help="The chat to which unprompted output goes.",
    ),
    Setting(
        name="platforms.<platform>.home_channel.thread_id",
        kind=CHAT_ID,
        default=None,
        help="The thread or topic of that chat to which it goes; not set, to the chat itself.",
    ),
    Setting(
        name="platforms.<platform>.home_channel.name",
        kind=TEXT,
        default=None,
        help="What that chat is called; not set, it is Home.",
    ),
    *_rows("channels.<platform>", Access(), ACCESS, ACCESS_KINDS),
    *_rows("channels.<platform>", Listening(), LISTENING, LISTENING_KINDS),
    Setting(
        name="routes",
        kind=SettingKind("a list of tables: [[routes]]", _tables),
        default=(),
        is_table=True,
        help="What some places of one account have of their own: see [profiles](profiles.md#routes).",
    ),
    *_rows("profiles.<profile>", Profile(), PROFILE),
    Setting(
        name="profiles.<profile>.agent.driver",
        kind=TEXT,
        default=None,
        help="The kind of agent of the profile. Its own options stand in the same table, as in `[agent]`. Not"
        " set, and nothing else in the table: the default profile's agent.",
    ),
    *_rows("profiles.<profile>.session_reset", SessionResetPolicy(), POLICY, POLICY_KINDS),
    *_rows("profiles.<profile>.channels.<platform>", Access(), ACCESS, ACCESS_KINDS),
    *_rows("profiles.<profile>.channels.<platform>", Listening(), LISTENING, LISTENING_KINDS),
)
