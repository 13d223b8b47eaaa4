"""Tables as records: how the values of columns are read and written, by the names of the columns."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import asdict

from frontdesk.contracts.store import Row, Work
from frontdesk.logs import get_logger
from frontdesk.model.messages import Plain

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MICROS_A_SECOND = 1_000_000
MICROS_A_MINUTE = 60 * MICROS_A_SECOND
MOMENTS_KEPT = 1_024
"""The same moment stands in several columns and rows, and is read with each of them."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
SENSELESS = (*UNREADABLE, ValueError, TypeError, OverflowError)

R = TypeVar("R")
Convert = Callable[[Any], Any]

log = get_logger(__name__)


def to_micros(moment: datetime) -> int:
    # Never from a cache: in the hour that a zone has twice, two moments are equal that are not the same.
    return (moment - EPOCH) // MICROSECOND


@lru_cache(maxsize=MOMENTS_KEPT)
def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def to_minute(moment: datetime) -> int:
    """The minute that a moment is found under."""
    return to_micros(moment) // MICROS_A_MINUTE


def maybe_micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def maybe_time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def clean(text: str | None) -> str | None:
    """A text of ours or an agent's as every database takes it."""
    return None if text is None else text.replace("\0", " ").encode(errors="replace").decode()


class Column(NamedTuple):
    """What becomes of a value on its way from the row and into it; nothing where there is no function, and
    nothing stays nothing."""

    read: Convert | None = None
    write: Convert | None = None
    field: str | None = None
    """The record's name for it, when that is another one."""


PLAIN = Column()
TIME = Column(from_micros, to_micros)
FLAG = Column(bool, int)


class Document:
    """What no query looks at, as JSON in one column: a struct of plain values with the names of the facts."""

    def __init__(self, kind: type[msgspec.Struct], **converted: Column) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode
        self._read = [(name, read) for name, (read, _, _) in converted.items() if read]
        self._write = [(name, write) for name, (_, write, _) in converted.items() if write]
        self.names = kind.__struct_fields__

    def facts(self, blob: bytes) -> dict[str, Any]:
        facts = asdict(self._decode(blob))
        for name, read in self._read:
            if facts[name] is not None:
                facts[name] = read(facts[name])
        return facts

    def write(self, facts: Mapping[str, Any]) -> bytes:
        kept = {name: facts[name] for name in self.names}
        for name, write in self._write:
            if kept[name]:  # most have nothing
                kept[name] = write(kept[name])
        return msgspec.json.encode(self._kind(**kept))


class Columns:
    """Columns of a table that hold a record's facts, in the order in which queries name them.

    Where each stands in a row is worked out here, once. ``kept`` are those that SQL alone writes. A document
    called ``body`` may come last.
    """

    def __init__(
        self,
        written: Mapping[str, Column],
        kept: Mapping[str, Column] | None = None,
        *,
        body: Document | None = None,
        after: "Columns | None" = None,
    ) -> None:
        columns = {**written, **(kept or {})}
        before: tuple[str, ...] = after.names if after else ()
        self.names: tuple[str, ...] = (*before, *columns, *(("body",) if body else ()))
        self.written: tuple[str, ...] = (*(after.written if after else ()), *written)
        self._body = body
        self._fields = [field or name for name, (_, _, field) in columns.items()]
        self._places = slice(len(before), len(before) + len(columns))
        self._read = [(field or name, read) for name, (read, _, field) in columns.items() if read]
        self._written = [(name, field or name, write) for name, (_, write, field) in written.items()]

    def facts(self, row: Row) -> dict[str, Any]:
        """What the row says, by the names of the record's fields."""
        facts = dict(zip(self._fields, row[self._places], strict=True))
        for field, read in self._read:
            if facts[field] is not None:
                facts[field] = read(facts[field])
        return {**facts, **self._body.facts(row[-1])} if self._body else facts

    def values(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What is to stand in the row, by the names of its columns."""
        values: dict[str, Any] = {}
        for name, field, write in self._written:
            fact = facts[field]
            values[name] = write(fact) if write and fact is not None else fact
        return {**values, "body": self._body.write(facts)} if self._body else values


class Records(Generic[R]):
    """Rows that are records of one kind. One that makes no sense is left out, with a warning."""

    def __init__(self, kind: str, make: Callable[..., R], facts: Callable[[Row], dict[str, Any]]) -> None:
        self._kind = kind
        self._make = make
        self._facts = facts

    def read(self, row: Row) -> R | None:
        try:
            return self._make(**self._facts(row))
        except SENSELESS as error:
            log.warning(f"{self._kind}_unreadable", **{self._kind: row[0], "why": str(error)})
            return None

    def one(self, query: str, /, **values: Any) -> Work[R | None]:
        found = yield query, values
        return self.read(found[0]) if found else None

    def many(self, query: str, /, **values: Any) -> Work[list[R]]:
        records = [self.read(row) for row in (yield query, values)]
        return [record for record in records if record is not None]


def read_calls(blob: bytes | None) -> tuple[str, ...]:
    """Open tool calls; none when they cannot be read: loading closes what was open."""
    try:
        return _CALLS.decode(blob) if blob else ()
    except UNREADABLE as error:
        log.warning("open_calls_unreadable", why=str(error))
        return ()


def write_calls(calls: tuple[str, ...]) -> bytes | None:
    return msgspec.json.encode(calls) if calls else None


# Messages as they are stored. One that cannot be read never stands in the way of the others.

_CALLS = msgspec.json.Decoder(tuple[str, ...])
_ONE = msgspec.json.Decoder(dict[str, Any])


def read_body(body: bytes, **where: object) -> Plain | None:
    """The message; None, with a warning that says where it stands, when it cannot be read."""
    try:
        return _ONE.decode(body)
    except UNREADABLE as error:
        log.warning("message_unreadable", **where, why=str(error))
        return None


def read_bodies(bodies: Sequence[bytes], **where: object) -> list[Plain | None]:
    """The messages; None for one that cannot be read."""
    try:
        return list(map(_ONE.decode, bodies))
    except UNREADABLE:
        return [read_body(body, **where) for body in bodies]
