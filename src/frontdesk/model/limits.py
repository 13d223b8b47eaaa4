"""How much of its allowances a session has used."""

import math
from datetime import datetime
from typing import Any

import msgspec

from frontdesk.model.policies import LIMITS, Limit, SessionResetPolicy
from frontdesk.model.sessions import SessionEntry

NEAR_PERCENT = 85


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one limit is used, and how much a turn is taken to use."""

    kind: Limit
    used: float
    limit: float
    turn: float

    @property
    def near(self) -> bool:
        return self.used >= _near(self.limit)

    @property
    def final(self) -> bool:
        """Whether a turn that begins now is taken to reach the limit."""
        return self.used + self.turn >= self.limit

    def __str__(self) -> str:
        shown, left = self.kind.shown, max(0, self.limit - self.used)
        return self.kind.used.format(used=shown(self.used), limit=shown(self.limit), left=shown(left))


def _near(limit: float) -> float:
    return max(1, limit * NEAR_PERCENT // 100) if isinstance(limit, int) else limit * NEAR_PERCENT / 100


def gauges(entry: SessionEntry, policy: SessionResetPolicy, now: datetime) -> list[Gauge]:
    """Where a session stands with each limit that there is, in the order in which they are checked."""
    return [
        Gauge(kind=limit, used=limit.measure(entry, now), limit=most, turn=limit.turn(entry))
        for limit in LIMITS
        if (most := getattr(policy, limit.setting))
    ]


def limit_info(message_count: int, max_messages: int) -> dict[str, Any]:
    """The allowance as a mapping; ``remaining`` is infinite when there is no limit."""
    limited = max_messages > 0
    return {
        "message_count": message_count,
        "max_messages": max_messages,
        "remaining": max(0, max_messages - message_count) if limited else math.inf,
        "near_limit": limited and message_count >= _near(max_messages),
        "at_limit": limited and message_count >= max_messages,
        "threshold": message_count / max_messages if limited else 0.0,
    }


UNKNOWN = {
    "message_count": 0,
    "max_messages": 0,
    "remaining": 0,
    "near_limit": False,
    "at_limit": False,
    "threshold": 0.0,
}
"""The answer for a key that has no session."""


def for_json(info: dict[str, Any]) -> dict[str, Any]:
    """The mapping with an infinite rest as null."""
    return info | {"remaining": None if info["remaining"] == math.inf else info["remaining"]}
