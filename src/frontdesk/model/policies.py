"""When a conversation starts afresh: reset policies and the reasons a session ends."""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import force_setattr

from frontdesk import errors
from frontdesk.model import boundaries
from frontdesk.model.platforms import READ_BY_PROGRAMS


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
    CLOSED = "closed"
    FORGOTTEN = "forgotten"


AUTOMATIC = frozenset(
    {
        EndReason.IDLE,
        EndReason.DAILY,
        EndReason.MESSAGE_LIMIT,
        EndReason.TOKEN_LIMIT,
        EndReason.COST_LIMIT,
        EndReason.TIME_LIMIT,
        EndReason.SPIRAL,
        EndReason.SUSPENDED,
        EndReason.RESUME_PENDING_EXPIRED,
    }
)
"""Reasons that the gateway decides; only these set the flags of an automatic reset."""

MAX_IDLE_MINUTES = 10 * 366 * 24 * 60
MAX_SESSION_MINUTES = MAX_IDLE_MINUTES
MAX_MESSAGES = 1_000_000_000
MAX_TOKENS = 1_000_000_000_000
MAX_COST_USD = 1_000_000_000
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
        force_setattr(self, "mode", _mode(self.mode))
        _check_range("at_hour", self.at_hour, 0, 23)
        _check_range("idle_minutes", self.idle_minutes, 1, MAX_IDLE_MINUTES)
        _check_range("max_messages", self.max_messages, 0, MAX_MESSAGES)
        _check_range("max_tokens", self.max_tokens, 0, MAX_TOKENS)
        force_setattr(self, "max_cost_usd", _number("max_cost_usd", self.max_cost_usd, MAX_COST_USD))
        _check_range("max_session_minutes", self.max_session_minutes, 0, MAX_SESSION_MINUTES)
        if self.spiral_repeats or type(self.spiral_repeats) is not int:
            _check_range("spiral_repeats", self.spiral_repeats, MIN_SPIRAL, MAX_SPIRAL, or_else="0 or ")
        force_setattr(self, "spiral_errors", _number("spiral_errors", self.spiral_errors, 1))
        _check_range("spiral_window", self.spiral_window, MIN_SPIRAL, MAX_SPIRAL)
        if not isinstance(self.notify, bool):
            raise errors.InvalidSetting(key="notify", value=self.notify, allowed="true or false")
        force_setattr(self, "notify_exclude_platforms", _names(self.notify_exclude_platforms))
        if self.timezone is not None:
            boundaries.load_zone(self.timezone)

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
        """Why a session is stale, or None: idle, daily, then the first limit that it has reached.

        ``served`` holds daily boundaries already reset for. Asked before a turn spends anything, a budget is
        overshot by one turn at most.
        """
        mode = self.mode
        if (mode is ResetMode.BOTH or mode is ResetMode.IDLE) and now - last_activity > self.idle_time:
            return EndReason.IDLE
        if mode is ResetMode.BOTH or mode is ResetMode.DAILY:
            boundary = boundaries.latest_passing(now, self.at_hour, self.zone(machine_zone))
            if last_activity < boundary and boundary not in served:
                return EndReason.DAILY
        age = now - created_at if created_at else timedelta()
        return self.limit_reason(message_count=message_count, tokens=tokens, cost=cost, age=age)

    def limit_reason(
        self, *, message_count: int, tokens: int, cost: float, age: timedelta
    ) -> EndReason | None:
        """The first limit that is reached, in the order of messages, tokens, cost and time."""
        if 0 < self.max_messages <= message_count:
            return EndReason.MESSAGE_LIMIT
        if 0 < self.max_tokens <= tokens:
            return EndReason.TOKEN_LIMIT
        if 0 < self.max_cost_usd <= cost:
            return EndReason.COST_LIMIT
        if self.max_session_minutes and age >= timedelta(minutes=self.max_session_minutes):
            return EndReason.TIME_LIMIT
        return None

    @property
    def idle_time(self) -> timedelta:
        return timedelta(minutes=self.idle_minutes)


def _mode(value: object) -> ResetMode:
    try:
        return ResetMode(str(value))
    except ValueError:
        raise errors.InvalidSetting(key="mode", value=value, allowed=", ".join(ResetMode)) from None


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
