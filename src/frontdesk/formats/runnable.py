"""Which argument of an action is code that is run: a command, a script, a statement."""

import re
from collections.abc import Mapping
from typing import Any

from frontdesk.formats import commands
from frontdesk.model import spellings

ARGUMENTS = ("argv", "args", "arguments")
ARGV = "argv"
USUAL_PLACES = frozenset(
    f"{root}/{folder}" for root in ("", "/usr", "/usr/local", "/opt/homebrew") for folder in ("bin", "sbin")
)
CODE = ("argv", "command", "cmd", "command_line", "shell", "script", "code", "sql", "query", "statement")
"""The names of arguments that are run."""
_ALSO = {"awk": ("mawk", "gawk"), "vi": ("vim",), "python": ("pypy",), "node": ("nodejs",)}
_CODE, _ARGUMENTS = (frozenset(map(spellings.skeleton, names)) for names in (CODE, ARGUMENTS))


def names_code(name: str) -> bool:
    """Whether what goes by this name, however it is written, is run."""
    return spellings.skeleton(name) in _CODE


def names_arguments(name: str) -> bool:
    """Whether it is a list of which a program gets each item as it is."""
    return spellings.skeleton(name) in _ARGUMENTS


def code_in(details: Mapping[str, Any]) -> str | None:
    """The one argument that is a command; None where there is none, or more than one."""
    found = all_code_in(details)
    return found[0] if len(found) == 1 else None


def all_code_in(details: Mapping[str, Any]) -> list[str]:
    """Every argument that may be the command."""
    return [name for name, value in details.items() if names_code(name) and _is_code(value)]


def file_in(details: Mapping[str, Any]) -> str | None:
    """The file that is run, of a command with its program resolved; None when that is not told."""
    argv, executable = details.get(ARGV), details.get("executable")
    path = executable.get("path") if isinstance(executable, Mapping) else None
    is_told = isinstance(path, str) and isinstance(argv, list) and _is_code(argv)
    return path if is_told else None


def goes_by(path: str, name: str) -> bool:
    """Whether a file is the program of that name: a version may follow, and shells stand for each other."""
    run, named = map(commands.program_of, (path, name))
    is_shell = {run, named} <= commands.SHELLS
    return is_shell or run in _ALSO.get(named, ()) or bool(re.fullmatch(rf"{re.escape(named)}[-.0-9]*", run))


def is_usual(path: str, name: str) -> bool:
    """Whether it is the program that people think of when they read its name, or one that is named by where
    it is."""
    return goes_by(path, name) and ("/" in name or path.rpartition("/")[0] in USUAL_PLACES)


def _is_code(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, str) for each in value)
    return isinstance(value, str) and bool(value.strip())
