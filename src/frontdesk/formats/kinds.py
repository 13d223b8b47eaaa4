"""Which actions are of one kind, and which are done to one target: known again by their digests."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from frontdesk.formats import canonical, commands, runnable, targets
from frontdesk.model import spellings

MOST_CODE_CHARACTERS = 16 * 1024
"""Of a longer text nobody looks which program it starts."""


class ActionKind(NamedTuple):
    kind: str
    target: str | None


def of(action: str, details: Mapping[str, Any]) -> ActionKind:
    """An action's name, however it is written, and where it is a command its program; with what it is done
    to, as far as that can be told."""
    simple = _telling(details)
    done_to: list[Any] = [details[name] for name in targets.matters(action, details)]
    if simple is not None:
        done_to += (word.text for word in commands.verb_and_target(simple)[1])
    kind = _digest(spellings.skeleton(action), simple.program if simple else "")
    return ActionKind(kind, _digest(kind, done_to) if done_to else None)


def _telling(details: Mapping[str, Any]) -> commands.Simple | None:
    code = runnable.code_in(details)
    if code is None:
        return None
    value: str | Sequence[str] = details[code]
    if sum(map(len, value)) > MOST_CODE_CHARACTERS:
        return None
    return commands.telling(commands.read_script(value) if isinstance(value, str) else commands.read(value))


def _digest(*parts: Any) -> str:
    return canonical.digest(canonical.canonical([*parts]))
