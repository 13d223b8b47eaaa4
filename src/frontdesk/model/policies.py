"""When a conversation starts afresh: reset policies and the reasons a session ends."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec.structs import force_setattr

from frontdesk import errors
from frontdesk.model import amounts, inputs
from frontdesk.model.platforms import READ_BY_PROGRAMS

if TYPE_CHECKING:
    from frontdesk.model.sessions import SessionEntry

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
PRECISION = timedelta(seconds=1)
NEAR_PERCENT = 85


class ResetMode(StrEnum):
    BOTH = "both"
    DAILY = "daily"
    IDLE = "idle"
    NONE = "none"


class EndReason(StrEnum):
    """Why a session ended. One text for each: what people are told is what happened."""

    IDLE = "idle"
    DAILY = "daily"
    MESSAGE_LIMIT = "message_limit"
    TOKEN_LIMIT = "token_limit"
    COST_LIMIT = "cost_limit"
    TIME_LIMIT = "time_limit"
    SPIRAL = "spiral"
    SUSPENDED = "suspended"
    RESUME_PENDING_EXPIRED = "resume_pending_expired"
    NEW = "new"
    SWITCH = "switch"
    BRANCH = "branch"
    COMPRESSED = "compressed"
    PRUNED = "pruned"
    UNLINKED = "unlinked"
    CLOSED = "closed"
    FORGOTTEN = "forgotten"


MAX_IDLE_MINUTES = 10 * 366 * 24 * 60
TURN_MESSAGES = 2
"""The message and its answer."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of limit on what a session may use, with everything that is said of it."""

    reason: EndReason
    setting: str
    """The field of the policy; 0 there means that there is no such limit."""
    counter: str
    """The field of a session's entry that counts against it. Of a time, the minutes since then count."""
    most: int
    """The highest limit that can be set."""
    fractions: bool = False
    """Whether it is more than a whole number."""
    turn: Callable[["SessionEntry"], float]
    """How much a turn is taken to use."""
    stops_turn: bool = True
    """Whether a turn is stopped when it is reached; otherwise the session is over with the answer."""
    name: str
    shown: Callable[[Any], str]
    """An amount of it for people."""
    used: str
    """What the agent and people are told of it."""
    help: str
    """What the settings say of it."""

    def measure(self, entry: Any, now: datetime) -> float:
        """How much of it an entry has used."""
        counted = getattr(entry, self.counter, None) or 0
        return max(0, (now - counted) // MINUTE) if isinstance(counted, datetime) else counted


def _turn_cost(entry: "SessionEntry") -> float:
    """A turn is taken to read once more what the last call to the model read, at the average price."""
    price = entry.estimated_cost_usd / entry.total_tokens if entry.total_tokens else 0.0
    return entry.last_prompt_tokens * price


MESSAGES = Limit(
    reason=EndReason.MESSAGE_LIMIT,
    setting="max_messages",
    counter="message_count",
    most=1_000_000_000,
    turn=lambda _: TURN_MESSAGES,
    stops_turn=False,
    name="message",
    shown=str,
    used="{used} of at most {limit} messages of this session are used, {left} left.",
    help="How many messages a session holds before the next one starts, in every mode. 0 means no limit.",
)
LIMITS = (
    MESSAGES,
    Limit(
        reason=EndReason.TOKEN_LIMIT,
        setting="max_tokens",
        counter="total_tokens",
        most=1_000_000_000_000,
        turn=lambda entry: entry.last_prompt_tokens,
        name="token",
        shown="{:,}".format,
        used="{used} of at most {limit} tokens of this session are used, {left} left.",
        help="How many tokens, read and written, a session may use. 0 means no limit.",
    ),
    Limit(
        reason=EndReason.COST_LIMIT,
        setting="max_cost_usd",
        counter="estimated_cost_usd",
        most=1_000_000_000,
        fractions=True,
        turn=_turn_cost,
        name="cost",
        shown=amounts.dollars,
        used="An estimated {used} of at most {limit} is spent in this session, {left} left.",
        help="How many US dollars a session may cost, as far as its agent tells the cost. 0 means no limit.",
    ),
    Limit(
        reason=EndReason.TIME_LIMIT,
        setting="max_session_minutes",
        counter="created_at",
        most=MAX_IDLE_MINUTES,
        turn=lambda _: 1,
        name="time",
        shown=amounts.duration,
        used="{used} of at most {limit} of this session have passed, {left} left.",
        help="How long a session may last from its beginning, whatever happens in it. 0 means no limit.",
    ),
)
"""In the order in which they are checked."""

AUTOMATIC = frozenset(
    {
        EndReason.IDLE,
        EndReason.DAILY,
        EndReason.SPIRAL,
        EndReason.SUSPENDED,
        EndReason.RESUME_PENDING_EXPIRED,
        *(limit.reason for limit in LIMITS),
    }
)
"""Reasons that the gateway decides; only these set the flags of an automatic reset."""

MIN_SPIRAL, MAX_SPIRAL = 2, 1000
"""How many tool calls or results a spiral is made of: one alone is none."""


class SessionResetPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a session is stale. A limit of 0 is none."""

    mode: ResetMode = ResetMode.BOTH
    at_hour: int = 4
    idle_minutes: int = 1440
    max_messages: int = 200
    max_tokens: int = 0
    max_cost_usd: float = 0.0
    max_session_minutes: int = 0
    spiral_repeats: int = 5
    """So many equal tool calls in a row are a spiral."""
    spiral_errors: float = 0.8
    """This share of errors among the last ``spiral_window`` tool results is a spiral."""
    spiral_window: int = 10
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = READ_BY_PROGRAMS
    timezone: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "mode", inputs.read_choice("mode", self.mode, ResetMode))
        _check_range("at_hour", self.at_hour, 0, 23)
        _check_range("idle_minutes", self.idle_minutes, 1, MAX_IDLE_MINUTES)
        for limit in LIMITS:
            value = getattr(self, limit.setting)
            if limit.fractions:
                force_setattr(self, limit.setting, _number(limit.setting, value, limit.most))
            else:
                _check_range(limit.setting, value, 0, limit.most)
        if self.spiral_repeats or type(self.spiral_repeats) is not int:
            _check_range("spiral_repeats", self.spiral_repeats, MIN_SPIRAL, MAX_SPIRAL, or_else="0 or ")
        force_setattr(self, "spiral_errors", _number("spiral_errors", self.spiral_errors, 1))
        _check_range("spiral_window", self.spiral_window, MIN_SPIRAL, MAX_SPIRAL)
        inputs.check_flags(self, "notify")
        force_setattr(self, "notify_exclude_platforms", _names(self.notify_exclude_platforms))
        if self.timezone is not None:
            load_zone(self.timezone)

    def to_dict(self) -> dict[str, Any]:
        data = msgspec.structs.asdict(self)
        return data | {
            "mode": str(self.mode),
            "notify_exclude_platforms": list(self.notify_exclude_platforms),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SessionResetPolicy":
        if not isinstance(data, Mapping):
            raise errors.InvalidSetting(key="session_reset", value=data, allowed="a table of settings")
        known = {name: data[name] for name in cls.__struct_fields__ if data.get(name) is not None}
        return cls(**known)

    @property
    def expires(self) -> bool:
        """Whether time alone makes a session stale."""
        return self.mode is not ResetMode.NONE or self.max_session_minutes > 0

    def zone(self, machine: tzinfo) -> tzinfo:
        """The zone of the daily boundary; ``machine`` is the one to use when none is set."""
        return ZoneInfo(self.timezone) if self.timezone else machine

    def stale_reason(
        self,
        *,
        last_activity: datetime,
        message_count: int,
        now: datetime,
        machine_zone: tzinfo,
        served: tuple[datetime, ...] = (),
        tokens: int = 0,
        cost: float = 0.0,
        created_at: datetime | None = None,
    ) -> EndReason | None:
        """What `due_reason` says of a session with these counters."""
        entry: Any = SimpleNamespace(
            updated_at=last_activity,
            message_count=message_count,
            total_tokens=tokens,
            estimated_cost_usd=cost,
            created_at=created_at,
        )
        return self.due_reason(entry, now=now, machine_zone=machine_zone, served=served)

    def due_reason(
        self, entry: "SessionEntry", *, now: datetime, machine_zone: tzinfo, served: tuple[datetime, ...] = ()
    ) -> EndReason | None:
        """Why a session is stale, or None: idle, daily, then the first limit that it has reached.

        ``served`` holds daily boundaries already reset for. Asked before a turn spends anything, a budget is
        overshot by one turn at most.
        """
        last_activity = entry.updated_at
        mode = self.mode
        if (
            mode is ResetMode.BOTH or mode is ResetMode.IDLE
        ) and now - last_activity > self.idle_minutes * MINUTE:
            return EndReason.IDLE
        if mode is ResetMode.BOTH or mode is ResetMode.DAILY:
            boundary = latest_passing(now, self.at_hour, self.zone(machine_zone))
            if last_activity < boundary and boundary not in served:
                return EndReason.DAILY
        return self.limit_reason(entry, now)

    def limit_reason(
        self, entry: "SessionEntry", now: datetime, *, within_turn: bool = False
    ) -> EndReason | None:
        """The first limit that is reached; within a turn, of those that stop one."""
        for limit in LIMITS:
            most = getattr(self, limit.setting)
            if most and (limit.stops_turn or not within_turn) and limit.measure(entry, now) >= most:
                return limit.reason
        return None

    def gauges(self, entry: "SessionEntry", now: datetime) -> list["Gauge"]:
        """Where a session stands with each limit that there is, in the order in which they are checked."""
        return [
            Gauge(kind=limit, used=limit.measure(entry, now), limit=most, turn=limit.turn(entry))
            for limit in LIMITS
            if (most := getattr(self, limit.setting))
        ]


def _check_range(key: str, value: object, low: int, high: int, or_else: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        allowed = f"{or_else}a whole number from {low} to {high}"
        raise errors.InvalidSetting(key=key, value=value, allowed=allowed)


def _number(key: str, value: object, high: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        raise errors.InvalidSetting(key=key, value=value, allowed=f"a number from 0 to {high}")
    return float(value)


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return tuple(map(str, value))
    raise errors.InvalidSetting(
        key="notify_exclude_platforms", value=value, allowed="a list of platform names"
    )


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one limit is used, and how much a turn is taken to use."""

    kind: Limit
    used: float
    limit: float
    turn: float

    @property
    def near(self) -> bool:
        return self.used >= near(self.limit)

    @property
    def final(self) -> bool:
        """Whether a turn that begins now is taken to reach the limit."""
        return self.used + self.turn >= self.limit

    def __str__(self) -> str:
        shown, left = self.kind.shown, max(0, self.limit - self.used)
        return self.kind.used.format(used=shown(self.used), limit=shown(self.limit), left=shown(left))


def near(limit: float) -> float:
    return max(1, limit * NEAR_PERCENT // 100) if isinstance(limit, int) else limit * NEAR_PERCENT / 100


def load_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise errors.InvalidSetting(
            key="timezone", value=name, allowed="an IANA name such as Europe/Berlin"
        ) from None


def latest_passing(now: datetime, hour: int, zone: tzinfo) -> datetime:
    """The last moment, not after ``now``, at which the clock of ``zone`` passed ``hour``."""
    between = _latest.get((hour, zone))
    if between is None or not between[0] <= now < between[1]:
        _latest[hour, zone] = between = _passings_around(now, hour, zone)
    return between[0]


_latest: dict[tuple[int, tzinfo], tuple[datetime, datetime]] = {}
"""The passings around the last moment asked about: they hold for a day."""


def _passings_around(now: datetime, hour: int, zone: tzinfo) -> tuple[datetime, datetime]:
    """The passing before a moment and the one after it. Days enough for clocks set back over midnight."""
    today = now.astimezone(zone).date()
    passings = [passing_of(today + days * DAY, hour, zone) for days in range(-2, 4)]
    return max(each for each in passings if each <= now), min(each for each in passings if each > now)


@lru_cache(maxsize=1024)
def passing_of(day: date, hour: int, zone: tzinfo) -> datetime:
    """When the clock of ``zone`` passed ``hour`` on that day, in UTC: the first time, when it did twice;
    the moment of the jump, when a jump skipped the hour."""
    wanted = datetime.combine(day, time(hour), zone)
    moment = wanted.astimezone(UTC)
    shown = moment.astimezone(zone).replace(tzinfo=None)
    if shown == wanted.replace(tzinfo=None):
        return moment
    return _jump(wanted.replace(fold=1).astimezone(UTC), moment, zone)


def _jump(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first moment in (before, after] that has the offset of ``after``."""
    offset = after.astimezone(zone).utcoffset()
    while after - before > PRECISION:
        middle = before + (after - before) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after.replace(microsecond=0)
