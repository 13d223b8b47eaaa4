"""Intentions: what is asked of the store, each in one transaction.

A noun's method is a generator that says what happens in the transaction, and the engine runs it. What several
intentions share are generators, too, plain functions that are taken in with ``yield from``.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from frontdesk.contracts.store import Engine, Row, Work

N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
T = TypeVar("T")

Method = Callable[Concatenate[N, P], Work[T]]
Intention = Callable[Concatenate[N, P], Coroutine[Any, Any, T]]


class Noun:
    """What can be asked about one kind of thing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine


def writes(work: Method[N, P, T]) -> Intention[N, P, T]:
    """Run and commit; what it has returned is on disk."""

    @wraps(work)
    def intention(self: N, /, *given: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
        return self._engine.write(partial(work, self, *given, **named))

    return intention


def writes_lazily(work: Method[N, P, T]) -> Intention[N, P, T]:
    """The same for what may be lost by a power cut: the commit waits for no disk."""

    @wraps(work)
    def intention(self: N, /, *given: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
        return self._engine.write(partial(work, self, *given, **named), lazy=True)

    return intention


def reads(work: Method[N, P, T]) -> Intention[N, P, T]:
    """Answer from one snapshot of what is committed."""

    @wraps(work)
    def intention(self: N, /, *given: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
        return self._engine.read(partial(work, self, *given, **named))

    return intention


def glances(work: Method[N, P, T]) -> Intention[N, P, T]:
    """The same for a single statement that finds a few rows by their key: at once, where it can be."""

    @wraps(work)
    def intention(self: N, /, *given: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
        return self._engine.glance(partial(work, self, *given, **named))

    return intention


def probe() -> Work[None]:
    """Something is written and taken back, to know whether it can be."""
    name = f"probe:{uuid4()}"
    yield "probe", {"lane": name}
    yield "unprobe", {"lane": name}


def first(found: Sequence[Row]) -> Row | None:
    return found[0] if found else None
