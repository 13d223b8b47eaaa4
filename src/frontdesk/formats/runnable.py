"""Which argument of an action is code that is run: a command, a script, a statement."""

from collections.abc import Mapping
from typing import Any

from frontdesk.model import spellings

ARGUMENTS = ("argv", "args", "arguments")
CODE = ("argv", "command", "cmd", "command_line", "shell", "script", "code", "sql", "query", "statement")
"""The names of arguments that are run."""
_CODE, _ARGUMENTS = (frozenset(map(spellings.skeleton, names)) for names in (CODE, ARGUMENTS))


def names_code(name: str) -> bool:
    """Whether what goes by this name, however it is written, is run."""
    return spellings.skeleton(name) in _CODE


def names_arguments(name: str) -> bool:
    """Whether it is a list of which a program gets each item as it is."""
    return spellings.skeleton(name) in _ARGUMENTS


def code_in(details: Mapping[str, Any]) -> str | None:
    """The one argument that is a command; None where there is none, or more than one."""
    found = [name for name, value in details.items() if names_code(name) and _is_code(value)]
    return found[0] if len(found) == 1 else None


def _is_code(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, str) for each in value)
    return isinstance(value, str) and bool(value.strip())
