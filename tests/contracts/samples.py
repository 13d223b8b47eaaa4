"""Sources, messages and configurations that the contract tests share."""

from typing import Any

from frontdesk import (
    ChatType,
    GatewayConfig,
    Platform,
    ResetMode,
    SessionEntry,
    SessionResetPolicy,
    SessionSource,
)

Message = dict[str, Any]


def with_policy(**policy: Any) -> GatewayConfig:
    """A configuration whose only policy is this one, with the daily boundary in UTC."""
    return GatewayConfig(default_reset_policy=SessionResetPolicy(**{"timezone": "UTC"} | policy))


LASTING = with_policy(mode=ResetMode.NONE, max_messages=0)
"""Sessions that neither time nor messages end."""

UNKNOWN_KEY = "agent:main:telegram:dm:nobody"
UNKNOWN_ID = "20260101_000000_00000000"


def direct(user: str = "ann", **fields: Any) -> SessionSource:
    """A message to the agent in private."""
    return SessionSource(
        **{"platform": Platform.TELEGRAM, "chat_id": f"chat-{user}", "user_id": user, "chat_name": user}
        | fields
    )


def in_group(user: str | None = "ann", chat: str = "crowd", **fields: Any) -> SessionSource:
    """A message in a chat of many."""
    group = {"platform": Platform.TELEGRAM, "chat_id": chat, "chat_name": chat, "chat_type": ChatType.GROUP}
    return SessionSource(**group | {"user_id": user} | fields)


def in_thread(user: str | None = "ann", thread: str = "topic", **fields: Any) -> SessionSource:
    """A message in a thread of a chat of many."""
    return in_group(user, thread_id=thread, **fields)


def user_says(content: Any = "hello", **fields: Any) -> Message:
    return {"role": "user", "content": content, **fields}


def agent_says(content: Any = "hi", **fields: Any) -> Message:
    return {"role": "assistant", "content": content, **fields}


def agent_calls(*call_ids: str) -> Message:
    calls = [
        {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for call_id in call_ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool_answers(call_id: str, content: str = "seen") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def flags_of(entry: SessionEntry) -> list[str]:
    """The flags that are set."""
    names = (
        "was_auto_reset",
        "is_fresh_reset",
        "reset_had_activity",
        "suspended",
        "resume_pending",
        "expiry_finalized",
    )
    return [name for name in names if getattr(entry, name)]
