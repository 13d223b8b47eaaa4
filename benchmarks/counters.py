"""Counts what happens in this process: calls, statements, syncs. No times."""

import dis
import inspect
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, Protocol, TypeVar

import apsw

import frontdesk
from benchmarks import disk
from frontdesk.stores.sql import load_queries

T_co = TypeVar("T_co", covariant=True)

RESUME = dis.opmap["RESUME"]
"""Where a frame begins, with the argument 0, and where it goes on after a yield or an await, with another."""

_OURS = str(Path(frontdesk.__file__).parent) + os.sep


class Count(NamedTuple):
    """What happened in one window."""

    calls: Counter[str]
    statements: Counter[str]
    prepared: int
    files: frozenset[str]
    syncs: int
    checkpoint_syncs: int
    pages: int

    @property
    def transactions(self) -> int:
        return self.statements["BEGIN IMMEDIATE"]

    @property
    def figures(self) -> dict[str, float]:
        return {
            "calls": self.calls.total(),
            "statements": self.statements.total(),
            "prepared": self.prepared,
            "write transactions": self.transactions,
            "files": len(self.files),
            "syncs": self.syncs,
            "syncs of checkpoints": self.checkpoint_syncs,
            "pages": self.pages,
        }


class Counters:
    """Counts on every thread that is started while they are installed, and on this one."""

    def __init__(self) -> None:
        self._names = {query.sql: name for name, query in load_queries("sqlite").items()}
        self._counting = False
        self._disk: disk.CountingVFS | None = None
        self._calls: list[CodeType] = []
        self._statements: list[str] = []
        self._prepared: set[int] = set()

    @contextmanager
    def installed(self) -> Iterator[None]:
        apsw.connection_hooks.append(self._follow)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            with disk.CountingVFS() as self._disk:
                yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            apsw.connection_hooks.remove(self._follow)

    def begin(self) -> None:
        assert self._disk
        self._disk.log_syncs = self._disk.database_syncs = self._disk.pages = 0
        self._calls, self._statements, self._prepared, self._counting = [], [], set(), True

    def end(self) -> Count:
        self._counting = False
        files = frozenset(code.co_filename.removeprefix(_OURS) for code in self._calls)
        assert self._disk
        return Count(
            Counter(map(_name, self._calls)),
            Counter(map(self._name, self._statements)),
            len(self._prepared),
            files,
            self._disk.log_syncs,
            self._disk.database_syncs,
            self._disk.pages,
        )

    def _follow(self, db: apsw.Connection) -> None:
        db.exec_trace = self._trace
        db.authorizer = self._authorize

    def _authorize(self, *_: object) -> int:
        """Asked while a statement is prepared, several times for each, before it is traced or after."""
        if self._counting:
            self._prepared.add(len(self._statements))
        return apsw.SQLITE_OK

    def _trace(self, _cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        if self._counting:
            self._statements.append(sql)
        return True

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._counting and event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_OURS) and _is_begun(code, frame.f_lasti):
                self._calls.append(code)

    def _name(self, sql: str) -> str:
        sql = sql.strip()
        return self._names.get(sql, sql[:60])


def _is_begun(code: CodeType, at: int) -> bool:
    """Whether a frame is called, and does not merely go on. Comprehensions are calls in some Pythons only."""
    if code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>"):
        return False
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return code.co_code[at] == RESUME and not code.co_code[at + 1] & 3  # else it goes on, or is closed
    return True


def _name(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(_OURS)}:{code.co_qualname}"


class Window(Protocol[T_co]):
    """Something that counts between its begin and its end."""

    def begin(self) -> None: ...
    def end(self) -> T_co: ...
