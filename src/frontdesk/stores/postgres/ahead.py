"""What goes to the server ahead of the next question, so that nobody waits for it alone.

asyncpg waits for each thing that it asks, and overlooks what else is answered before its own rows. So a
statement whose answer nobody needs is written to the connection in PostgreSQL's own words, without asking for
an answer. When it fails, the server passes over all that follows up to the end of the question, which fails
with that error.
"""

import struct
from collections.abc import Sequence
from typing import Any

from asyncpg.types import Type

WRITTEN: dict[str, type] = {
    "bool": bool,
    "bytea": bytes,
    "float8": float,
    "int2": int,
    "int4": int,
    "int8": int,
    "jsonb": str,
    "text": str,
}
"""The types whose values are written here, and what they are in Python."""
NULL = struct.pack("!i", -1)
EXECUTE = b"E" + struct.pack("!i", 9) + b"\0" + struct.pack("!i", 0)


def command(sql: str) -> bytes:
    """A command without values."""
    parse = b"\0" + sql.encode() + b"\0" + struct.pack("!h", 0)
    return _message(b"P", parse) + _bound("", ())


def statement(name: str, types: Sequence[Type], values: Sequence[Any]) -> bytes | None:
    """A prepared statement with its values; None where those are none that are written here."""
    kinds = [WRITTEN.get(each.name) for each in types]
    if any(value is not None and type(value) is not kind for kind, value in zip(kinds, values, strict=True)):
        return None
    try:
        return _bound(name, list(map(_written, values)))
    except UnicodeEncodeError:
        return None


def _bound(name: str, values: Sequence[bytes]) -> bytes:
    count = struct.pack("!hh", 0, len(values))
    bind = b"\0" + name.encode() + b"\0" + count + b"".join(values) + struct.pack("!h", 0)
    return _message(b"B", bind) + EXECUTE


def _written(value: Any) -> bytes:
    match value:
        case None:
            return NULL
        case bytes():
            text = b"\\x" + value.hex().encode()
        case _:
            text = str(value).encode()
    return struct.pack("!i", len(text)) + text


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body
