"""Units of work: generators that yield statements and receive rows."""

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar
from uuid import uuid4

T = TypeVar("T")
Row = tuple[Any, ...]


Statement = tuple[str, Mapping[str, Any]]
"""The name of a query, and the values of its parameters."""

Work = Generator[Statement, list[Row], T]


class Mergeable(Generic[T]):
    """Work that an engine may do in one go with other work of its kind."""

    __slots__ = ("alone", "item", "together")

    def __init__(
        self,
        item: Row,
        *,
        alone: Callable[..., Work[T]],
        together: Callable[[list[Any]], Work[list[T | None]]],
    ) -> None:
        self.item = item
        self.alone = alone
        self.together = together
        """For each of the items what became of it; None when it has to be done alone, after the others."""

    def __call__(self) -> Work[T]:
        return self.alone(*self.item)


DURABLE: Statement = ("durable", {})
"""From here on the work must not be lost: an engine that had run it lazily starts it again."""


class Engine(Protocol):
    """Runs work in transactions."""

    def write(
        self, start: Callable[[], Work[T]], *, lazy: bool = False, supersedes: str | None = None
    ) -> Coroutine[Any, Any, T]:
        """Run and commit. Lazy work may be lost by a power cut, as long as it has not said DURABLE."""
        ...

    async def read(self, start: Callable[[], Work[T]]) -> T:
        """Run in a snapshot of what is committed."""
        ...

    async def check(self) -> None:
        """Raise what a write would meet now."""
        ...

    async def inspect(self, seconds: float) -> bool:
        """Look for damage, for so long at most; whether all of it was looked at."""
        ...

    @property
    def glanced_rows(self) -> int:
        """How many rows a glance may bring before it is no longer the quicker way."""
        ...

    async def glance(self, name: str, **values: Any) -> list[Row]:
        """Look up a few rows by their key, with as little delay as the engine can."""
        ...

    async def post(self, mark: str, start: Callable[[], Work[object]]) -> None:
        """Lazy work that nobody waits for. It is done before any later work is; a later one with the same
        mark, or a write that supersedes the mark, takes its place."""
        ...

    async def close(self) -> None: ...


def probe() -> Work[None]:
    """Something is written and taken back, to know whether it can be."""
    name = f"probe:{uuid4()}"
    yield "probe", {"lane": name}
    yield "unprobe", {"lane": name}


def rows(name: str, /, **values: Any) -> Work[list[Row]]:
    return (yield name, values)


def row(name: str, /, **values: Any) -> Work[Row | None]:
    return first((yield name, values))


def run(name: str, /, **values: Any) -> Work[None]:
    yield name, values


def first(found: Sequence[Row]) -> Row | None:
    return found[0] if found else None
