"""What the agent is told, for one turn only, when its message allowance runs out."""

from collections.abc import Mapping
from typing import Any

TURN_MESSAGES = 2
"""So many messages below the limit, a turn may be the one that reaches it."""

USED = "{message_count} of at most {max_messages} messages of this session are used, {remaining} left."
NEAR = f"**Session limit:** {USED} Wrap up: finish what is open, begin nothing new, and save your state."
FINAL = (
    f"**Session limit:** {USED} This is the final response of this session: summarise what was done and what"
    " comes next. Once the limit is reached, a new session begins."
)


def limit_warning(info: Mapping[str, Any]) -> str | None:
    """The warning for a turn, or None when the limit is far or there is none.

    ``info`` is what ``get_message_limit_info`` gives once the incoming message is counted.
    """
    if info["max_messages"] <= 0:
        return None
    if info["message_count"] + TURN_MESSAGES >= info["max_messages"]:
        return FINAL.format_map(info)
    return NEAR.format_map(info) if info["near_limit"] else None


def ephemeral_prompt(context: str, extra: str | None, warning: str | None) -> str:
    """A turn's instructions, never stored: the context, the configured extra prompt, the warning."""
    parts = (part.strip() for part in (context, extra, warning) if part)
    return "\n\n".join(part for part in parts if part)
