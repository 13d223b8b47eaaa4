"""What a checkpoint holds: the manifest, which is the truth, and git's tree, which keeps and compares it."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from frontdesk.model.checkpoints import ChangeKind, FileChange, SkipReason

EXECUTABLE = 0o111


class Kind(StrEnum):
    FILE = "file"
    LINK = "link"
    FOLDER = "folder"


class Entry(NamedTuple):
    """A path of a checkpoint. The mode has all permission bits; a symbolic link has none."""

    kind: Kind
    mode: int = 0
    size: int = 0
    oid: str = ""


Entries = Mapping[str, Entry]
"""Paths below the directory, as Python decodes file names, with what stands there."""


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def encode_manifest(entries: Entries) -> bytes:
    """One record per path, in the order of their bytes."""
    named = sorted((os.fsencode(path), entry) for path, entry in entries.items())
    return b"".join(
        b"%s %o %d %s\t%s\0" % (entry.kind.encode(), entry.mode, entry.size, entry.oid.encode(), path)
        for path, entry in named
    )


def decode_manifest(data: bytes) -> dict[str, Entry]:
    entries = {}
    for record in data.split(b"\0")[:-1]:
        facts, _, path = record.partition(b"\t")
        kind, mode, size, oid = facts.decode("ascii").split(" ")
        entries[os.fsdecode(path)] = Entry(Kind(kind), int(mode, 8), int(size), oid)
    return entries


def encode_skipped(skipped: Mapping[str, SkipReason]) -> bytes:
    named = sorted((os.fsencode(path), reason) for path, reason in skipped.items())
    return b"".join(b"%s\t%s\0" % (reason.encode(), path) for path, reason in named)


def decode_skipped(data: bytes) -> dict[str, SkipReason]:
    records = (record.partition(b"\t") for record in data.split(b"\0")[:-1])
    return {os.fsdecode(path): SkipReason(reason.decode("ascii")) for reason, _, path in records}


class TreeLine(NamedTuple):
    """A line of a git tree."""

    mode: bytes
    name: bytes
    oid: str

    @property
    def place(self) -> bytes:
        """By this git sorts: a folder as if its name ended in a slash."""
        return self.name + b"/" if self.mode == b"40000" else self.name


def git_trees(entries: Entries, manifest: str, skipped: str) -> tuple[list[bytes], str]:
    """The trees of a checkpoint as ``git mktree -z --batch`` reads them, and the name of the last."""
    lines: dict[str, list[TreeLine]] = {"": []}
    lines |= {path: [] for path, entry in entries.items() if entry.kind is Kind.FOLDER}
    texts = []
    for path in sorted(entries, reverse=True):
        entry = entries[path]
        above, _, name = path.rpartition("/")
        oid = entry.oid
        if entry.kind is Kind.FOLDER:
            text, oid = _tree(lines.pop(path))
            texts.append(text)
        lines[above].append(TreeLine(_git_mode(entry), os.fsencode(name), oid))
    files, oid = _tree(lines[""])
    records = {b"manifest": manifest, b"skipped": skipped}
    top, root = _tree(
        [TreeLine(b"40000", b"files", oid), *(TreeLine(b"100644", *each) for each in records.items())]
    )
    return [*texts, files, top], root


def _git_mode(entry: Entry) -> bytes:
    if entry.kind is Kind.FOLDER:
        return b"40000"
    if entry.kind is Kind.LINK:
        return b"120000"
    return b"100755" if entry.mode & EXECUTABLE else b"100644"


def _tree(lines: list[TreeLine]) -> tuple[bytes, str]:
    """A tree as ``git mktree`` reads it, with the name that git will give it."""
    ordered = sorted(lines, key=lambda line: line.place)
    body = b"".join(b"%s %s\0%s" % (line.mode, line.name, bytes.fromhex(line.oid)) for line in ordered)
    oid = hashlib.sha1(b"tree %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
    return b"".join(_mktree_record(line) for line in ordered) + b"\0", oid


def _mktree_record(line: TreeLine) -> bytes:
    kind = b"tree" if line.mode == b"40000" else b"blob"
    return b"%06d %s %s\t%s\0" % (int(line.mode), kind, line.oid.encode(), line.name)


def compare(before: Entries, after: Entries) -> Iterator[FileChange]:
    """What became of each path, in the order of the paths."""
    for path in sorted(before.keys() | after.keys()):
        kind = _change(before.get(path), after.get(path))
        if kind:
            yield FileChange(readable(path), kind)


def _change(before: Entry | None, after: Entry | None) -> ChangeKind | None:
    if before is None or after is None:
        return ChangeKind.ADDED if before is None else ChangeKind.REMOVED
    if (before.kind, before.oid) != (after.kind, after.oid):
        return ChangeKind.CHANGED
    return ChangeKind.PERMISSIONS if before.mode != after.mode else None


def readable(path: str) -> str:
    """The path as valid text: bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def ancestors(path: str) -> Iterable[str]:
    """The folders above a path, the nearest first, without the directory itself."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
