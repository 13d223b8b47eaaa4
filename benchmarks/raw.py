"""The bare databases: the least that a turn could do."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import apsw

USER = "u" * 500
REPLY = "a" * 1500

SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, chat TEXT UNIQUE, tokens INTEGER NOT NULL DEFAULT 0);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL, at REAL
);
CREATE INDEX messages_by_session ON messages (session_id);
"""
INSERT = "INSERT INTO messages (session_id, role, content, at) VALUES (?, ?, ?, ?)"
UPDATE = "UPDATE sessions SET tokens = tokens + ? WHERE id = ?"
FIND = "SELECT id FROM sessions WHERE chat = ?"
LOAD = "SELECT role, content FROM messages WHERE session_id = ? ORDER BY id"

Raw = apsw.Connection | sqlite3.Connection


def open_raw(path: Path, vfs: str | None = None) -> apsw.Connection:
    """The SQLite that we use, with plain calls: WAL, full synchronisation, one commit for each write."""
    db = open_wal(path, vfs)
    db.execute(SCHEMA)
    return db


def open_wal(path: Path, vfs: str | None = None) -> apsw.Connection:
    db = apsw.Connection(str(path), vfs=vfs)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    return db


def open_standard(path: Path) -> sqlite3.Connection:
    """The same with the standard library's."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(SCHEMA)
    return db


def fill(db: Raw, chats: int) -> None:
    db.execute("BEGIN")
    db.executemany("INSERT INTO sessions (id, chat) VALUES (?, ?)", ((f"s{n}", str(n)) for n in range(chats)))
    rows = ((f"s{n}", "user", USER, 0.0) for n in range(chats))
    db.executemany(INSERT, rows)
    db.execute("COMMIT")


def turn(db: Raw, chat: str) -> None:
    """Three commits: user message, reply, tokens."""
    ((session,),) = db.execute(FIND, (chat,)).fetchall()
    db.execute(INSERT, (session, "user", USER, time.time()))
    db.execute(INSERT, (session, "assistant", REPLY, time.time()))
    db.execute(UPDATE, (42, session))


class GroupWriter:
    """A bare group-commit writer: a thread that commits whatever statements wait, for asyncio callers."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._jobs: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    async def write(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._jobs.put((statements, done, loop))
        await done

    async def turn(self, chat: str) -> None:
        session = f"s{chat}"
        await self.write((INSERT, (session, "user", USER, time.time())))
        await self.write((INSERT, (session, "assistant", REPLY, time.time())), (UPDATE, (42, session)))

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            group = [job]
            while len(group) < 256:
                try:
                    following = self._jobs.get_nowait()
                except Empty:
                    break
                if following is None:
                    self._jobs.put(None)
                    break
                group.append(following)
            self._commit(group)

    def _commit(self, group: list[tuple[Any, ...]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for statements, _, _ in group:
            for sql, values in statements:
                self._db.execute(sql, values)
        self._db.execute("COMMIT")
        group[0][2].call_soon_threadsafe(lambda: [done.set_result(None) for _, done, _ in group])

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()


@contextmanager
def group_writer(db: apsw.Connection) -> Iterator[GroupWriter]:
    writer = GroupWriter(db)
    try:
        yield writer
    finally:
        writer.close()
