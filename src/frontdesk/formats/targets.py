"""What an action is done to: the argument that names it, by the kind of action.

For the ten a person types it before they approve. Where no argument, or more than one, may be the target, or
nobody could type it, the end of the digest stands for it.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from frontdesk.formats import actions
from frontdesk.model import spellings
from frontdesk.model.rules import is_always_asked

MOST_CHARACTERS = 80
"""Longer ones nobody types."""
DIGITS = 6

_DATABASE = ("database", "db", "dbname", "database_name", "name")
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "deploy_production": ("service", "app", "application", "project"),
    "delete_data": ("table", "dataset", "collection", "bucket", "index", "path", "file"),
    "transfer_funds": ("to", "recipient", "beneficiary", "payee", "to_account", "iban"),
    "modify_permissions": ("user", "principal", "member", "account", "group", "path"),
    "shutdown_service": ("service", "unit", "host", "name"),
    "wipe_database": _DATABASE,
    "exec_remote": ("host", "server", "machine"),
    "publish_package": ("package", "module", "name"),
    "rotate_keys": ("key", "key_id", "key_name", "name"),
    "migrate_database": _DATABASE,
}
"""Of each of the ten, which argument names its target. An action has one of them."""
OTHERS = ("path", "file", "url", "host", "database", "table", "service", "to", "amount", "name")
"""Of any other action, what matters most; shown, and never typed."""

_SKELETONS = {
    spellings.skeleton(action): frozenset(map(spellings.skeleton, names))
    for action, names in ARGUMENTS.items()
}
_ONE_OF_SEVERAL = re.compile(r"(?:[sS]|[\W_]?[0-9]{1,3})\s*\Z")
_OTHERS = frozenset(map(spellings.skeleton, OTHERS))


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """What a person types to approve one of the ten."""

    what: str
    """What it is, without saying it."""
    text: str
    argument: str | None = None
    """The name of the argument; None when it is the end of the digest."""

    def rest_of(self, said: str) -> str | None:
        """What follows it in what somebody wrote; None when that does not begin with it. Quotes around it
        are fine."""
        words = unicodedata.normalize("NFC", said).strip()
        wanted = unicodedata.normalize("NFC", self.text)
        if self.argument is None:
            words = words[: len(wanted)].lower() + words[len(wanted) :]
        for form in (wanted, f'"{wanted}"', f"'{wanted}'"):
            if words == form or words.startswith(f"{form} "):
                return words[len(form) :].strip()
        return None

    def is_said(self, said: str | None) -> bool:
        """Whether that, and nothing else, was written."""
        return said is not None and self.rest_of(said) == ""


def typed(action: str, details: Mapping[str, Any], digest: str) -> Typed | None:
    """What is typed before it is approved; None for what is not always asked."""
    if not is_always_asked(action, details):
        return None
    named = matters(action, details)
    within = [name for value in details.values() for name in _names_within(value)]
    is_one = len(named) == 1 and not any(_names_target(action, name) for name in within)
    value = details[named[0]] if is_one else None
    if _is_typable(value):
        name = actions.spelled(named[0])
        return Typed(what=f"the value of {name}", text=str(value), argument=named[0])
    return Typed(what=f"the last {DIGITS} digits of the digest", text=digest[-DIGITS:])


def matters(action: str, details: Mapping[str, Any]) -> list[str]:
    """The names of the arguments that say what the action is done to, however they are written."""
    return [name for name in details if _names_target(action, name)]


def _names_target(action: str, name: str) -> bool:
    """Also one of several: ``tables``, ``table_2``."""
    wanted = _SKELETONS.get(spellings.skeleton(action), _OTHERS)
    return not wanted.isdisjoint(map(spellings.skeleton, (name, _ONE_OF_SEVERAL.sub("", name))))


def _names_within(value: Any) -> Iterator[str]:
    """Every name inside a value."""
    if isinstance(value, Mapping):
        yield from value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _names_within(each)


def _is_typable(value: Any) -> bool:
    """Whether somebody who sees it can type it, and knows that it is all of it."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    text = str(value)
    return 0 < len(text) <= MOST_CHARACTERS and actions.spelled(text) == f'"{text}"'
