"""frontdesk as the measurements use it."""

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from benchmarks.raw import REPLY, USER
from frontdesk import (
    GatewayConfig,
    Platform,
    ResetMode,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    Usage,
)
from frontdesk.model.policies import MAX_IDLE_MINUTES

CONFIG = GatewayConfig(
    default_reset_policy=SessionResetPolicy(
        mode=ResetMode.IDLE, idle_minutes=MAX_IDLE_MINUTES, max_messages=0
    )
)
"""Policies are looked at, and end nothing: turns are measured, not resets."""
SECOND = 1_000_000
MINUTE = 60 * SECOND
CHAT_NAME = "Somebody"
USAGE = Usage(input_tokens=30, output_tokens=12)


def source_of(chat: str) -> SessionSource:
    return SessionSource(platform=Platform.TELEGRAM, chat_id=chat, user_id=f"user{chat}", chat_name=CHAT_NAME)


async def turn(store: SessionStore, source: SessionSource, number: str | None = None) -> None:
    """Resolve, store the user message, store reply and tokens; each acknowledged after its commit. With a
    number the message and the turn have ids, as they have in the README."""
    entry = await store.get_or_create_session(source)
    user = {"role": "user", "content": USER}
    if number is not None:
        user["platform_message_id"] = number
    await store.append_to_transcript(entry.session_id, user)
    reply, turn_id = {"role": "assistant", "content": REPLY}, None if number is None else f"telegram-{number}"
    await store.record_turn(entry.session_id, [reply], turn_id=turn_id, usage=USAGE)


async def open_filled(path: Path, chats: int) -> SessionStore:
    """A store that already knows so many chats, active one a second, with a message each; nothing waits to be
    indexed."""
    url = f"sqlite:///{path}"
    store = await SessionStore.open(url, CONFIG)
    await store.close()
    _fill(path, chats)
    return await SessionStore.open(url, CONFIG)


def _fill(path: Path, chats: int) -> None:
    db = apsw.Connection(str(path))
    db.pragma("synchronous", 0)
    with db:
        db.executemany(
            "INSERT INTO sessions (id, session_key, owner, peer, platform, chat_type, created_at, updated_at,"
            " message_count, next_position, details, active_minute, named)"
            " VALUES (?, ?, ?, ?, 'telegram', 'dm', ?, ?, 1, 1, ?, ?, 1)",
            _sessions(chats),
        )
        db.executemany(
            "INSERT INTO session_names (session_id, word, owner) VALUES (?, ?, ?)",
            ((f"s{n}", CHAT_NAME.lower(), f"telegram:user{n}") for n in range(chats)),
        )
        db.executemany(
            "INSERT INTO routes (session_key, session_id) VALUES (?, ?)",
            ((f"agent:main:telegram:dm:{n}", f"s{n}") for n in range(chats)),
        )
        body = msgspec.json.encode({"role": "user", "content": USER})
        db.executemany(
            "INSERT INTO messages (session_id, position, role, created_at, body) VALUES (?, 0, 'user', 0, ?)",
            ((f"s{n}", body) for n in range(chats)),
        )
        db.execute("UPDATE indexed SET up_to = (SELECT MAX(seq) FROM messages)")
    db.pragma("wal_checkpoint(truncate)")
    db.close()


def _sessions(chats: int) -> Iterator[tuple[object, ...]]:
    now = int(datetime.now(UTC).timestamp() * 1e6)
    for n in range(chats):
        chat = str(n)
        details = msgspec.json.encode({"origin": source_of(chat).to_dict(), "display_name": CHAT_NAME})
        key = f"agent:main:telegram:dm:{chat}"
        yield (
            f"s{n}",
            key,
            f"telegram:user{n}",
            f"telegram:dm:{n}::user{n}",
            now,
            now - n * SECOND,
            details,
            (now - n * SECOND) // MINUTE,
        )


def some_chats(chats: int) -> Iterator[str]:
    """Chats in a random order that is the same in every run."""
    chooser = random.Random(7)
    return (str(chooser.randrange(chats)) for _ in itertools.count())
