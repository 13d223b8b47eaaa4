"""Intentions: what is asked of the store, each in one transaction.

A noun's method is a generator that says what happens in the transaction, and the engine runs it. What several
intentions share are generators, too, plain functions that are taken in with ``yield from``.
"""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from frontdesk.contracts.store import Engine, Row, Swift, Work

EVER = 2**62
"""Later than every moment, behind every row."""

N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
T = TypeVar("T")

Method = Callable[Concatenate[N, P], Work[T]]
Intention = Callable[Concatenate[N, P], Coroutine[Any, Any, T]]
Run = Callable[..., Coroutine[Any, Any, T]]


class Noun:
    """What can be asked about one kind of thing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine


class _Way:
    """Makes an intention of a noun's generator: calling it runs the work on the noun's engine, this way."""

    def __init__(self, way: str, form: type[partial[Any]] = partial, **how: bool) -> None:
        self._way = way
        self._form = form
        self._how = how

    def __call__(self, work: Method[N, P, T]) -> Intention[N, P, T]:
        way, form, how = self._way, self._form, self._how

        @wraps(work)
        def intention(self: N, /, *given: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
            run: Run[T] = getattr(self._engine, way)
            return run(form(work, self, *given, **named), **how)

        return intention


writes = _Way("write")
"""Run and commit; what it has returned is on disk."""
writes_swiftly = _Way("write", Swift)
"""The same for `Swift` work: at once, where it can be."""
writes_lazily = _Way("write", lazy=True)
"""The same for what may be lost by a power cut: the commit waits for no disk."""
reads = _Way("read")
"""Answer from one snapshot of what is committed."""
glances = _Way("glance")
"""The same for a single statement that finds a few rows by their key: at once, where it can be."""


async def few_or_many(engine: Engine, query: str, few: int, most: int, **values: Any) -> list[Row]:
    """Rows that a query finds by their key, of which there are nearly always few; its ``limit`` is ours."""
    if engine.glanced_rows:
        found = await engine.glance(partial(_rows, query, {**values, "limit": few + 1}))
        if len(found) <= few:
            return found[:most]
    return await engine.read(partial(_rows, query, {**values, "limit": most}))


def _rows(query: str, values: dict[str, Any]) -> Work[list[Row]]:
    return (yield query, values)


def probe() -> Work[None]:
    """Something is written and taken back, to know whether it can be."""
    name = f"probe:{uuid4()}"
    yield "probe", {"lane": name}
    yield "unprobe", {"lane": name}


def value(query: str, /, **values: Any) -> Work[Any]:
    """What a query tells in the first column of its first row; None when it has none."""
    found = yield query, values
    return found[0][0] if found else None
