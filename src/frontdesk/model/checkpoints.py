"""Checkpoints: the state of a working directory at a moment, kept so that one can go back."""

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from frontdesk import errors

CHECKPOINT_ID = re.compile(r"[0-9a-f]{12}")
MAX_SKIPPED_SHOWN = 200
MAX_CHANGES_SHOWN = 1_000
MAX_LINK_CHARACTERS = 512
MAX_NUMBER_DIGITS = 9

GENERATED_NAMES = frozenset(
    [
        "node_modules",
        "bower_components",
        ".venv",
        "__pycache__",
        "__pypackages__",
        ".tox",
        ".nox",
        ".eggs",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".gradle",
        ".terraform",
        ".next",
        ".nuxt",
        ".svelte-kit",
        ".parcel-cache",
        ".turbo",
        ".cache",
    ]
)
"""Folders that a tool makes anew: they are not kept."""


class SkipReason(StrEnum):
    """Why something in the directory is not part of a checkpoint."""

    REPOSITORY = "repository"
    GENERATED = "generated"
    LARGE = "large"
    SPECIAL = "special"
    UNREADABLE = "unreadable"
    MOUNT = "mount"
    DEEP = "deep"
    PRIVATE = "private"


class Skip(msgspec.Struct, frozen=True):
    """A path that was left out."""

    path: str
    reason: SkipReason


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint may hold, and how long its parts may take."""

    max_files: int = 100_000
    max_file_bytes: int = 32 * 1024 * 1024
    max_total_bytes: int = 2 * 1024 * 1024 * 1024
    max_depth: int = 100
    max_diff_bytes: int = 200_000
    generated_names: frozenset[str] = GENERATED_NAMES
    git_seconds: float = 300
    lock_seconds: float = 120


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A kept state of a directory."""

    id: str
    number: int
    """Its place among the directory's checkpoints; later ones have higher numbers."""
    directory: str
    label: str
    created_at: datetime
    session_id: str | None = None
    turn_id: str | None = None
    before_restore: str | None = None
    """The checkpoint that was about to be restored, when this one keeps the state before."""
    files: int
    """How many files and symbolic links it holds."""
    bytes: int
    skipped: tuple[Skip, ...] = ()
    """What was left out; of many the first ones."""
    skipped_count: int = 0
    state: str
    """The same for two checkpoints that hold the same."""


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    PERMISSIONS = "permissions"


class FileChange(msgspec.Struct, frozen=True):
    """A path that is not as it was."""

    path: str
    kind: ChangeKind


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened in the directory since the checkpoint."""

    checkpoint: Checkpoint
    changes: tuple[FileChange, ...]
    text: str
    """A unified diff, from the checkpoint to the present."""
    truncated: bool = False
    """Whether there are more changes, or more text, than the limits allow to show."""

    def __str__(self) -> str:
        return self.text


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that was carried out."""

    checkpoint: Checkpoint
    safety: Checkpoint
    """The state before. Restoring it undoes the restore."""
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def find_named(kept: Sequence[Checkpoint], name: str) -> Checkpoint | None:
    """The one with this number or id."""
    number = int(name) if name.isdecimal() and len(name) <= MAX_NUMBER_DIGITS else None
    return next((each for each in kept if each.id == name or each.number == number), None)


def changes_within(changes: Sequence[FileChange], path: str | None) -> list[FileChange]:
    """The changes of one file, or of a folder and what is in it."""
    if path is None:
        return list(changes)
    place = path.strip("/")
    return [each for each in changes if each.path == place or each.path.startswith(f"{place}/")]


def is_checkpoint_id(text: object) -> bool:
    """Whether this can be an id; nothing else may reach git or a path."""
    return isinstance(text, str) and CHECKPOINT_ID.fullmatch(text) is not None


def check_link(name: str, value: str | None) -> str | None:
    """The id of a session or turn, when it can be stored with a checkpoint."""
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= MAX_LINK_CHARACTERS:
        why = f"use a text of 1 to {MAX_LINK_CHARACTERS} characters"
        raise errors.InvalidInput(what=f"{name} = {value!r:.100}", why=why)
    if not value.isprintable():
        raise errors.InvalidInput(what=f"{name} = {value!r}", why="it holds control characters")
    return value


def check_maximum(value: int) -> int:
    """How many checkpoints to keep, when it is a count from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise errors.InvalidInput(what=f"max_checkpoints = {value!r}", why="use a whole number from 1")
    return value
