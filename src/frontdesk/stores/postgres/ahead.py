"""What goes to the server ahead of the next question, so that nobody waits for it alone.

asyncpg waits for each thing that it asks, and overlooks what else is answered before its own rows. So a
statement whose answer nobody needs is written to the connection in PostgreSQL's own words, without asking for
an answer. When it fails, the server passes over all that follows up to the end of the question, which fails
with that error.
"""

import struct
from collections.abc import Callable, Sequence
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
AS_TEXT: dict[type, Callable[[Any], bytes]] = {
    bool: lambda value: str(value).encode(),
    bytes: lambda value: b"\\x" + value.hex().encode(),
    float: lambda value: str(value).encode(),
    int: lambda value: b"%d" % value,
    str: str.encode,
}
NULL = struct.pack("!i", -1)
EXECUTE = b"E" + struct.pack("!i", 9) + b"\0" + struct.pack("!i", 0)
NO_FORMATS = struct.pack("!h", 0)

_pack_length = struct.Struct("!i").pack
_pack_count = struct.Struct("!hh").pack


class Silent:
    """A prepared statement whose answer nobody needs."""

    def __init__(self, name: str, types: Sequence[Type]) -> None:
        self._name = b"\0" + name.encode() + b"\0"
        self._kinds = [WRITTEN.get(each.name) for each in types]

    def __call__(self, values: Sequence[Any]) -> bytes | None:
        """The statement with its values; None where those are none that are written here."""
        written = []
        for kind, value in zip(self._kinds, values, strict=True):
            if value is None:
                written.append(NULL)
            elif type(value) is kind:
                try:
                    text = AS_TEXT[kind](value)
                except UnicodeEncodeError:
                    return None
                written += (_pack_length(len(text)), text)
            else:
                return None
        return _bound(self._name, len(self._kinds), b"".join(written))


def command(sql: str) -> bytes:
    """A command without values."""
    parse = b"\0" + sql.encode() + b"\0" + NO_FORMATS
    return _message(b"P", parse) + _bound(b"\0\0", 0, b"")


def _bound(name: bytes, count: int, values: bytes) -> bytes:
    return _message(b"B", b"".join((name, _pack_count(0, count), values, NO_FORMATS))) + EXECUTE


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + _pack_length(len(body) + 4) + body
