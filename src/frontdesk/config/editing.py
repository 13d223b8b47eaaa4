"""Changing the configuration file as a person would: comments, order and everything else stay."""

import copy
import glob
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from frontdesk import errors
from frontdesk.config import settings

OWNER_ONLY = 0o600
FOLDER = 0o700

Changes = Mapping[settings.Path, Any]
"""Settings and their new values; None takes one out."""


def edited(file: Path, text: str, changes: Changes) -> str:
    """The text of the file with these settings."""
    document, wanted = tomlkit.parse(text), tomllib.loads(text)
    for path, value in changes.items():
        _set(document, path, value, tomlkit.table)
        _set(wanted, path, copy.deepcopy(value), dict)
    made = tomlkit.dumps(document)
    if tomllib.loads(made) != wanted:  # it is somebody's file: what came of the change is looked at
        why = f"it could not be changed; set {', '.join(map(settings.dotted, changes))} in it yourself"
        raise errors.UnreadableConfigFile(path=file, why=why)
    return made


def _set(table: Any, path: settings.Path, value: Any, new: Any) -> None:
    *above, name = path
    for part in above:
        if part not in table:
            if value is None:
                return
            table[part] = new()
        table = table[part]
    if value is None:
        table.pop(name, None)
    elif not _grown(table.get(name), value):
        table[name] = value


def _grown(known: Any, value: Any) -> bool:
    """A list that only gets longer is added to: what somebody has written beside its items stays there."""
    if not isinstance(known, list) or not isinstance(value, list) or known != value[: len(known)]:
        return False
    for each in value[len(known) :]:
        known.append(each)
    return True


def read_text(file: Path) -> str:
    """What is in the file; nothing where there is none."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""


def write_beside(file: Path, text: str, mode: int | None = OWNER_ONLY) -> Path:
    """The text, safely on disk in a file beside, which has only to take the other's place. Without a mode it
    has that of the one that is there."""
    for folder in reversed((file.parent, *file.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=FOLDER, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    for left in (fresh, *_left_behind(file)):
        left.unlink(missing_ok=True)
    if mode is None:
        mode = file.stat().st_mode & 0o777 if file.exists() else OWNER_ONLY
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "wb") as output:
            output.write(text.encode())
            output.flush()
            os.fchmod(output.fileno(), mode)
            os.fsync(output.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def _left_behind(file: Path) -> list[Path]:
    """What processes that were killed had written beside it."""
    found = file.parent.glob(f".{glob.escape(file.name)}.*")
    return [each for each in found if each.suffix[1:].isdecimal() and not _is_alive(int(each.suffix[1:]))]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
