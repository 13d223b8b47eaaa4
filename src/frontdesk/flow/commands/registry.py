"""The commands that there are."""

import re

from frontdesk.flow.commands import (
    Command,
    checkpoints,
    confirmations,
    models,
    people,
    running,
    search,
    sessions,
    transcript,
)
from frontdesk.flow.commands.help import help_on
from frontdesk.model.turns import Kind

_GROUPS = (sessions, transcript, search, models, running, confirmations, checkpoints, people)
_OTHERS = tuple(command for group in _GROUPS for command in group.COMMANDS)

COMMANDS: tuple[Command, ...] = (*_OTHERS, help_on(_OTHERS))
_CALLED = re.compile(r"/([a-z]+)(?:@\S+)?(?:\s+(.*))?", re.DOTALL | re.IGNORECASE)

_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def parse(text: str) -> tuple[Command, str] | None:
    """The command in a message and what follows it; None when the message is none of ours."""
    found = _CALLED.fullmatch(text.strip())
    command = _BY_NAME.get(found[1].lower()) if found else None
    return (command, (found[2] or "").strip()) if found and command else None


def kind_of(text: str) -> Kind:
    command = parse(text)
    return command[0].kind if command else Kind.MESSAGE


def stops_turn(text: str) -> bool:
    command = parse(text)
    return command is not None and command[0].stops_turn
