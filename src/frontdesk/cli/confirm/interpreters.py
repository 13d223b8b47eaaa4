"""What runs a script: the programs that its first line names, and their files."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Mapping

import msgspec

from frontdesk import errors

SCRIPT = b"#!"
READ_BYTES = 256
"""So much of a script the system looks at."""
MOST_INTERPRETERS = 8
"""A script may be run by a script, and so on; the system itself follows fewer."""
ENV = "env"
SPLIT = re.compile(r"-S|-vS|--split-string=?")
ASSIGNED = re.compile(r"(?!PATH=)[A-Za-z_][A-Za-z0-9_]*=[^\\'\"$#]*")
WORD = re.compile(r"[^-\\'\"$#=][^\\'\"$#=]*")
"""What env takes as it is written."""


class Executable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    """Without any link in it."""
    sha256: str


def find_program(name: str, cwd: str, path: str) -> str:
    """Where a program is. FileNotFoundError, or PermissionError when it cannot be run."""
    found = shutil.which(os.path.join(cwd, name) if "/" in name else name, path=path)
    if found:
        return os.path.join(cwd, found)
    if "/" in name and os.path.exists(os.path.join(cwd, name)):
        raise PermissionError(errno.EACCES, "it is no program that can be run", name)
    raise FileNotFoundError(errno.ENOENT, "there is no such program", name)


def sha256_of(file: int) -> str:
    with os.fdopen(os.dup(file), "rb") as opened:
        opened.seek(0)
        return hashlib.file_digest(opened, "sha256").hexdigest()


def look_at(path: str) -> tuple[Executable, bytes]:
    """A program's file as it is now, without links, and its beginning."""
    resolved = os.path.realpath(path)
    file = os.open(resolved, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return Executable(path=resolved, sha256=sha256_of(file)), os.pread(file, READ_BYTES, 0)
    finally:
        os.close(file)


def interpreters_of(script: str, head: bytes, cwd: str, env: Mapping[str, str]) -> list[Executable]:
    """The programs that run a script with this beginning, each by the one before it; none for a program.
    InvalidInput when its first line does not tell which; OSError when one is not there."""
    found: list[Executable] = []
    while head.startswith(SCRIPT):
        if len(found) >= MOST_INTERPRETERS:
            raise _unclear(script, "its interpreters are scripts without end")
        name, argument = _first_line(script, head)
        named, head = look_at(os.path.join(cwd, name))
        found.append(named)
        if ENV in (os.path.basename(name), os.path.basename(named.path)):
            program = find_program(_started_by_env(script, argument), cwd, _search_path(env))
            started, head = look_at(program)
            found.append(started)
    return found


def _first_line(script: str, head: bytes) -> tuple[str, str]:
    """The interpreter that a script names, and the one argument that it gets."""
    line, end, _ = head.removeprefix(SCRIPT).partition(b"\n")
    if not end and len(head) >= READ_BYTES:
        raise _unclear(script, f"its first line is longer than {READ_BYTES} bytes")
    try:
        told = line.decode().strip(" \t")
    except UnicodeDecodeError:
        raise _unclear(script, "its first line is not UTF-8") from None
    name, *rest = re.split(r"[ \t]+", told, maxsplit=1)
    if not name or not told.isprintable():
        raise _unclear(script, "its first line names no interpreter that can be shown")
    return name, rest[0] if rest else ""


def _started_by_env(script: str, argument: str) -> str:
    """The program that env starts when it gets this argument: what it does besides must be plain."""
    split = SPLIT.match(argument)
    words = argument[split.end() :].split() if split else [argument]
    while words and ASSIGNED.fullmatch(words[0]):
        words.pop(0)
    if not words or not WORD.fullmatch(words[0]):
        raise _unclear(script, f"what env makes of {argument!r} cannot be told: name the interpreter itself")
    return words[0]


def _search_path(env: Mapping[str, str]) -> str:
    """Where env looks; without PATH, where the system does."""
    return env["PATH"] if "PATH" in env else os.confstr("CS_PATH") or os.defpath


def _unclear(script: str, why: str) -> errors.InvalidInput:
    return errors.InvalidInput(what=f"The script {script}", why=why)
