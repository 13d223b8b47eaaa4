"""How much of its allowance of messages a session has used, as a mapping."""

import math
from typing import Any

from frontdesk.model.policies import near


def limit_info(message_count: int, max_messages: int) -> dict[str, Any]:
    """The allowance as a mapping; ``remaining`` is infinite when there is no limit."""
    limited = max_messages > 0
    return {
        "message_count": message_count,
        "max_messages": max_messages,
        "remaining": max(0, max_messages - message_count) if limited else math.inf,
        "near_limit": limited and message_count >= near(max_messages),
        "at_limit": limited and message_count >= max_messages,
        "threshold": message_count / max_messages if limited else 0.0,
    }


UNKNOWN = limit_info(0, 0) | {"remaining": 0}
"""The answer for a key that has no session."""


def for_json(info: dict[str, Any]) -> dict[str, Any]:
    """The mapping with an infinite rest as null."""
    return info | {"remaining": None if info["remaining"] == math.inf else info["remaining"]}
