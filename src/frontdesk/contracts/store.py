"""The store's engine: it runs work in transactions over a database.

Work is a generator: it yields statements, receives their rows, and returns a result. It never waits and never
sees a connection, so that an engine may run it on a thread, and again from its beginning. What is kept, and
which changes happen together, is said once for all engines, in ``frontdesk.stores``.
"""

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from frontdesk.contracts.bells import Bells, Topic
from frontdesk.model.deliveries import Delivery
from frontdesk.model.moves import Move, Situation
from frontdesk.model.sessions import Session
from frontdesk.model.sources import SessionSource
from frontdesk.model.turns import Admission, Alteration, Turn

T = TypeVar("T")

Decide = Callable[[Situation], Move]
NewId = Callable[[], str]
Rename = Callable[[Session, Mapping[str, str]], tuple[str, str, str]]
"""The key, owner and peer of a session under another table of aliases."""
Readdress = Callable[[SessionSource, Mapping[str, str]], str | None]
"""The key of a message's conversation under a table of aliases; None when none of its names is in there."""
Admit = Callable[[Turn | None, int, int], Admission]
"""What becomes of a message, given the turn that runs in its conversation, how many wait there, and how many
of its party anywhere."""
Alter = Callable[[Turn | None, Delivery | None, bool], Alteration]
"""What becomes of something that was done to a message: given what the message became, a turn or a delivery,
and whether it still waits."""
TellTurn = Callable[[Turn], Sequence[Delivery]]
"""What people are told of a turn that ends without an answer."""
TellReset = Callable[[Session], Sequence[Delivery]]
"""What people are told of the new session."""
TryAgain = Callable[[Delivery, datetime], datetime | None]
"""When a send that may have arrived may be tried again, given the time; None: not by itself."""

Change = Callable[[Any], Any]
"""What a record has become."""

Row = tuple[Any, ...]
Statement = tuple[str, Mapping[str, Any]]
"""The name of a query, and the values of its parameters."""
Work = Generator[Statement, list[Row], T]

Ring = tuple[Topic, bool]
"""A bell, and whether it is rung on other nodes, too."""

RING = "ring"
LONG = "long"
TAKES_LONG: Statement = (LONG, {})
"""Not a query: what comes next may take a while, and nobody else is to wait for it."""
EACH = "each"
"""In place of values, rows of them: the query is run with each, and gives nothing. Only SQLite's are."""

COLUMN = "column"
"""Beside the values of a query with one column: its rows are what stands in it. Only SQLite's are."""


@cache
def ring(topic: Topic, *, far: bool = True) -> Statement:
    """Not a query: that bell is rung once the work is committed, on other nodes too unless they need not
    know."""
    return RING, {"bell": (topic, far)}


class Mergeable(partial[Work[T]]):
    """Work that an engine may do in one go with other work of its kind, on the arguments of each."""

    together: Callable[[list[Any]], Work[list[T | None]]]
    """For each of them what became of it; None when it has to be done alone, after the others."""


class Swift(partial[Work[T]]):
    """Work of a few statements that find little, between which nothing takes long. An engine may do it where
    the caller is, up to where it yields `TAKES_LONG`: then it is begun anew elsewhere."""


class Knowable(partial[Work[T]]):
    """A look-up of the record at a key, which an engine may answer with what it knows."""

    @property
    def key(self) -> str:
        key: str = self.keywords["key"]
        return key


class Brief(msgspec.Struct, Generic[T], frozen=True):
    """Work that usually is one statement. Where that changes something, everything is done."""

    statement: Statement
    result: T
    """Of the usual case."""
    bell: Topic
    """Rung then."""
    changes: str
    """The id of the record that is another then."""
    change: Change
    """What it is then."""
    otherwise: Callable[[], Work[T]]
    """What is to be done instead when the statement has done nothing."""

    def __call__(self) -> Work[T]:
        if (yield self.statement):
            yield ring(self.bell)
            return self.result
        return (yield from self.otherwise())


class Engine(Protocol):
    """Runs work in transactions. What a write has returned is committed."""

    bells: Bells
    """Rung after the commit, for whoever listens."""
    glanced_rows: int
    """How many rows a glance may bring before it is no longer the quicker way."""

    def write(
        self, start: Callable[[], Work[T]], *, lazy: bool = False, supersedes: str | None = None
    ) -> Coroutine[Any, Any, T]:
        """Run and commit. Lazy work may be lost by a power cut; what is not lazy is on disk."""
        ...

    def read(self, start: Callable[[], Work[T]]) -> Coroutine[Any, Any, T]:
        """Run in a snapshot of what is committed."""
        ...

    def glance(self, start: Callable[[], Work[T]]) -> Coroutine[Any, Any, T]:
        """Run work of one statement that finds a few rows by their key, with as little delay as can be."""
        ...

    async def try_glance(self, start: Callable[[], Work[T]]) -> tuple[T] | None:
        """The same for several statements that find little, each for itself; None, with nothing done, where
        there is no such quick way."""
        ...

    async def post(self, mark: str, start: Callable[[], Work[object]]) -> None:
        """Lazy work that nobody waits for. It is done before any later work is; a later one with the same
        mark, or a write that supersedes the mark, takes its place."""
        ...

    async def check(self) -> None:
        """Raise the StoreError that a message would meet now: by what was written in the last second, else
        by writing something that is taken back."""
        ...

    async def inspect(self, seconds: float) -> bool:
        """Look for damage, for so long at most; whether all was looked at. CorruptDatabase names it."""
        ...

    async def close(self) -> None: ...


class Upgrade(msgspec.Struct, frozen=True, kw_only=True):
    """A database of an older version was brought up to date when it was opened."""

    found: int
    known: int
    copy: str | None = None
    """The file that holds it as it was, where the store can make one."""
