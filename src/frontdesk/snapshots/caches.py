"""What is known of files from the last look, so that an unchanged one is not read again."""

import os
import secrets
from collections.abc import Collection
from pathlib import Path

import msgspec

from frontdesk.snapshots.folders import Stamp

VERSION = 1
SETTLED_NS = 2_000_000_000
"""A file that changed so recently may change again without its stamp telling."""
UNSETTLED = Stamp(0, 0, 0, 0)
"""No file has this stamp: the file is read again, and its contents may be known."""

_Row = tuple[bytes, int, int, int, int, str]
_Table = tuple[int, list[_Row]]
_DECODER = msgspec.msgpack.Decoder(_Table)


class Cache:
    """Stamps of files with the names of their contents, all of which are in the store."""

    def __init__(self, rows: dict[str, tuple[Stamp, str]] | None = None) -> None:
        self._rows = rows or {}
        self.known = {oid for _, oid in self._rows.values()}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def look_up(self, path: str, stamp: Stamp) -> str | None:
        known = self._rows.get(path)
        return known[1] if known and known[0] == stamp else None

    def of(self, oids: Collection[str]) -> "Cache":
        """The part of it that names only these contents."""
        return Cache({path: row for path, row in self._rows.items() if row[1] in oids})

    def write(self, file: Path) -> None:
        rows = [(os.fsencode(path), *stamp, oid) for path, (stamp, oid) in self._rows.items()]
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}.tmp")
        draft.write_bytes(msgspec.msgpack.encode((VERSION, rows)))
        draft.replace(file)


def read_cache(file: Path) -> Cache:
    """What was written; nothing when it is missing, damaged or of another version."""
    try:
        version, rows = _DECODER.decode(file.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return Cache()
    if version != VERSION:
        return Cache()
    return Cache({os.fsdecode(path): (Stamp(*stamp), oid) for path, *stamp, oid in rows})


def settled(stamp: Stamp, now_ns: int) -> Stamp:
    """The stamp, when any later change would show in it."""
    return stamp if max(stamp.modified_ns, stamp.changed_ns) < now_ns - SETTLED_NS else UNSETTLED
