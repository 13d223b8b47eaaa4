"""Adding to a transcript what is not one usual message: several, repeated ones, those around tool calls."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.contracts.store import Work
from frontdesk.model.keys import encode_part
from frontdesk.model.messages import Message, Role, interrupted, open_calls
from frontdesk.model.sessions import Usage
from frontdesk.stores.columns import read_calls, to_micros, to_minute, write_calls


class Head(msgspec.Struct, frozen=True):
    """Where a transcript goes on."""

    next_position: int
    open_calls: tuple[str, ...]
    session_key: str
    revision: int
    redo_depth: int
    counted_from: int
    active_minute: int


def append_any(
    session_id: str,
    messages: Sequence[Message],
    now: datetime,
    usage: Usage | None = None,
    ends: bool = False,
    is_first_attempt: bool = False,
) -> Work[int]:
    """Add the messages that are new, however many they are and whatever the session is in the middle of."""
    # The head locks the session until the commit: of two who append the same message, the second finds it.
    head = yield from head_of(session_id)
    if head is None:
        raise errors.UnknownSession(session_id=session_id)
    fresh = yield from fresh_among(session_id, head.session_key, messages, is_first_attempt)
    added, calls = with_closings(fresh, head.open_calls)
    if ends:
        added, calls = [*added, *map(interrupted, calls)], ()
    if added or (usage is not None and not messages):
        yield from _advance(session_id, head, added, calls, now, usage)
    yield from insert(session_id, head, added, now)
    return len(fresh)


def head_of(session_id: str) -> Work[Head | None]:
    """Where the transcript goes on; nobody else adds to it or hides rows of it until the commit."""
    found = yield "transcript_head", {"session_id": session_id}
    if not found:
        return None
    position, calls, *rest = found[0]
    return Head(position, read_calls(calls), *rest)


def fresh_among(
    session_id: str, session_key: str, messages: Sequence[Message], is_first_attempt: bool = False
) -> Work[list[Message]]:
    """The messages that are not stored yet, each once."""
    fresh: list[Message] = []
    seen: set[tuple[Any, ...]] = set()
    for message in messages:
        marks = _marks(session_key, message)
        known = not marks.isdisjoint(seen)
        if marks and not known and (message.platform_message_id is not None or not is_first_attempt):
            known = yield from _stored(session_id, session_key, message)
        if not known:
            seen |= marks
            fresh.append(message)
    return fresh


def _marks(session_key: str, message: Message) -> set[tuple[Any, ...]]:
    marks: set[tuple[Any, ...]] = set()
    if message.platform_message_id is not None:
        marks.add(("platform", message.platform_message_id, message.source_key or session_key))
    if message.turn_id is not None:
        marks.add(("turn", message.turn_id, message.turn_position))
    return marks


def _stored(session_id: str, session_key: str, message: Message) -> Work[bool]:
    if message.platform_message_id is not None:
        platform_id, source = encode_part(message.platform_message_id), message.source_key or session_key
        mark = {"session_id": session_id, "platform_message_id": platform_id, "source_key": source}
        if (yield "has_platform_id", mark):
            return True
    if message.turn_id is None:
        return False
    place = {"turn_id": message.turn_id, "turn_position": message.turn_position}
    return bool((yield "has_turn_position", {"session_id": session_id, **place}))


def with_closings(
    messages: Sequence[Message], calls: tuple[str, ...]
) -> tuple[list[Message], tuple[str, ...]]:
    """The rows to write, and the tool calls open after them."""
    added: list[Message] = []
    for message in messages:
        if message.closes_calls:
            added.extend(map(interrupted, calls))
        added.append(message)
        calls = open_calls(calls, message)
    return added, calls


def _advance(
    session_id: str,
    head: Head,
    added: list[Message],
    calls: tuple[str, ...],
    now: datetime,
    usage: Usage | None,
) -> Work[None]:
    values = {
        "session_id": session_id,
        "now": to_micros(now),
        "rows": len(added),
        "counted": sum([message.counts for message in added]),
        "model_turns": sum([message.role is Role.ASSISTANT for message in added]),
        "open_calls": write_calls(calls),
    }
    if usage is None:
        yield "advance_transcript", values
    else:
        yield "advance_transcript_with_usage", {**values, **msgspec.structs.asdict(usage)}
    if to_minute(now) != head.active_minute:
        yield "move_forward", {"session_id": session_id, "active_minute": to_minute(now)}


def insert(session_id: str, head: Head, added: list[Message], now: datetime) -> Work[None]:
    created_at = to_micros(now)
    for position, message in enumerate(added, head.next_position):
        platform_id = message.platform_message_id
        values = {
            "session_id": session_id,
            "position": position,
            "role": str(message.role),
            "created_at": created_at,
            "platform_message_id": None if platform_id is None else encode_part(platform_id),
            "source_key": None if platform_id is None else message.source_key or head.session_key,
            "turn_id": message.turn_id,
            "turn_position": message.turn_position,
            "body": message.body,
        }
        yield "insert_message", values


def close_calls(session_id: str, now: datetime) -> Work[int]:
    """Nobody will answer the tool calls that are open; how many there were."""
    head = yield from head_of(session_id)
    if head is None or not head.open_calls:
        return 0
    closings = [interrupted(call) for call in head.open_calls]
    yield from _advance(session_id, head, closings, (), now, None)
    yield from insert(session_id, head, closings, now)
    return len(closings)
