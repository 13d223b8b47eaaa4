"""Inputs that are almost what a platform sends, and what has to hold of each."""

import random
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from frontdesk import errors
from frontdesk.contracts.channels import Happening
from tests import counts

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, 2**70, 1.5, 1e400, float("nan")),
    *("", "x", "7", "9" * 40, "٣", "\0", "\ud800", "x" * 5000),
    *([], [None], [[]], {}, {"a": 1}),
)
Input = TypeVar("Input")
LETTERS = [chr(each) for each in (0, 10, 34, 60, 62, 92, 124, 0xD800, 0x202E, 0x1F469)]
PIECES = (
    *(b'"', b"\\", b"\\u", b"\\ud8", b"{", b"}", b"[", b"]", b":", b","),
    *(b"null", b"true", b"1e99", b"-", b"\0", b"\xff\xfe"),
)


class Damage:
    """Changes something somewhere in what a platform may bring."""

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self._values = (*ODD, *values)

    def __call__(self, whole: Any, chance: random.Random) -> Any:
        """The whole, changed in one place or a few."""
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            whole = self._changed(whole, chance)
        return whole

    def _changed(self, value: Any, chance: random.Random) -> Any:
        if isinstance(value, dict) and value and chance.random() < 0.97:
            return self._fields(value, chance)
        if isinstance(value, list | tuple) and value and chance.random() < 0.8:
            at = chance.randrange(len(value))
            kept = [*value[:at], self._changed(value[at], chance), *value[at + 1 :]]
            return kept * chance.choice((1, 1, 1, 3))
        if isinstance(value, str) and chance.random() < 0.3:
            at = chance.randrange(len(value) + 1)
            return value[:at] + chance.choice(LETTERS) + value[at:]
        return chance.choice(self._values)

    def _fields(self, value: dict[Any, Any], chance: random.Random) -> dict[Any, Any]:
        name, drawn = chance.choice(list(value)), chance.random()
        if drawn < 0.1:
            return {each: kept for each, kept in value.items() if each != name}
        if drawn < 0.13:
            return value | {name: value}
        return value | {name: self._changed(value[name], chance)}


def changed_bytes(body: bytes, chance: random.Random) -> bytes:
    """The body with a few bytes dropped, doubled, replaced or put in."""
    changing = bytearray(body)
    for _ in range(chance.randint(1, 8)):
        start = chance.randrange(len(changing) + 1)
        end = min(len(changing), start + chance.randint(0, 6))
        doubled = bytes(changing[start:end]) * 2
        changing[start:end] = chance.choice((b"", doubled, chance.randbytes(3), chance.choice(PIECES)))
    return bytes(changing)


class FuzzWatch:
    """Lets an input be refused, and says which one it was that broke something."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.given: Any = None
        self.refused = 0

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if isinstance(error, errors.InvalidInput):
            assert str(error)
            self.refused += 1
            return True
        error.add_note(f"Seed {self.seed}, given {self.given!r:.20000}")
        return False


def is_somewhere(happening: Happening) -> None:
    assert happening.source.chat_id


def read_or_refused(
    make: Callable[[random.Random], Input],
    read: Callable[[Input], Iterable[Happening | None]],
    tell: counts.Tell,
    *,
    of: str,
    reduced: int = 20_000,
    check: Callable[[Happening], None] = is_somewhere,
) -> None:
    """Everything that is made is read, or refused as an input; and what was read can be stored."""
    tried, seed, understood = counts.count(reduced, 1_000_000), random.randrange(2**32), 0
    chance, watched = random.Random(seed), FuzzWatch(seed)
    for _ in range(tried):
        watched.given = given = make(chance)
        with watched:
            for happening in read(given):
                if happening is None:
                    continue
                understood += 1
                assert happening.event_id
                check(happening)
                msgspec.json.encode(happening, enc_hook=str)
    assert understood
    assert watched.refused < tried
    tell(f"inputs of {of}", tried)
    tell(f"inputs of {of}, refused", watched.refused)
