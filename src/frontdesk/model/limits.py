"""How much of its allowances a session has used."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from frontdesk.model.policies import EndReason, SessionResetPolicy
from frontdesk.model.sessions import SessionEntry

NEAR_PERCENT = 85
TURN_MESSAGES = 2
"""So many messages below the limit, a turn may be the one that reaches it."""
TURN_MINUTES = 1
MINUTE = timedelta(minutes=1)


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one limit is used, and how much a turn is taken to use."""

    reason: EndReason
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

    @property
    def reached(self) -> bool:
        return self.used >= self.limit

    @property
    def remaining(self) -> float:
        return max(0, self.limit - self.used)


def _near(limit: float) -> float:
    return max(1, limit * NEAR_PERCENT // 100) if isinstance(limit, int) else limit * NEAR_PERCENT / 100


def gauges(entry: SessionEntry, policy: SessionResetPolicy, now: datetime) -> list[Gauge]:
    """Where a session stands with each limit that there is, in the order in which they are checked."""
    return [gauge for gauge in _all_gauges(entry, policy, now) if gauge.limit > 0]


def _all_gauges(entry: SessionEntry, policy: SessionResetPolicy, now: datetime) -> Iterator[Gauge]:
    """A turn is taken to read once more what the last call to the model read, at the average price."""
    tokens, cost, prompt = entry.total_tokens, entry.estimated_cost_usd, entry.last_prompt_tokens
    age = max(0, (now - entry.created_at) // MINUTE)
    yield Gauge(
        reason=EndReason.MESSAGE_LIMIT,
        used=entry.message_count,
        limit=policy.max_messages,
        turn=TURN_MESSAGES,
    )
    yield Gauge(reason=EndReason.TOKEN_LIMIT, used=tokens, limit=policy.max_tokens, turn=prompt)
    price = cost / tokens if tokens else 0.0
    yield Gauge(reason=EndReason.COST_LIMIT, used=cost, limit=policy.max_cost_usd, turn=prompt * price)
    yield Gauge(reason=EndReason.TIME_LIMIT, used=age, limit=policy.max_session_minutes, turn=TURN_MINUTES)


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
