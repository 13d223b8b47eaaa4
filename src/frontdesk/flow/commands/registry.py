"""The commands that there are."""

import difflib
import re

from frontdesk.flow.commands import (
    Command,
    CommandReply,
    CommandRequest,
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
from frontdesk.flow.parts import Parts
from frontdesk.model.turns import TurnKind

_GROUPS = (sessions, transcript, search, models, running, confirmations, checkpoints, people)
_OTHERS = tuple(command for group in _GROUPS for command in group.COMMANDS)

COMMANDS: tuple[Command, ...] = (*_OTHERS, help_on(_OTHERS))
NEAR = 0.75
"""How alike a name and a command's must be, from 0 to 1, to be taken for a slip."""
TO_THE_AGENT = "If it is for the agent, write something before it."
_CALLED = re.compile(r"/([a-z]+)(?:@\S+)?(?:\s+(.*))?", re.DOTALL | re.IGNORECASE)

_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def parse(text: str) -> tuple[Command, str] | None:
    """The command in a message and what follows it; None when the message is none of ours."""
    found = _CALLED.fullmatch(text.strip())
    if not found:
        return None
    name, argument = found[1].lower(), (found[2] or "").strip()
    command = _BY_NAME.get(name) or (None if argument else _near_miss(name))
    return (command, argument) if command else None


def _near_miss(name: str) -> Command | None:
    """For a name that is almost one of ours: a command that says so, and does nothing else."""
    near = difflib.get_close_matches(name, _BY_NAME, n=1, cutoff=NEAR)
    if not near:
        return None
    text = f"There is no /{name}. Did you mean /{near[0]}? {TO_THE_AGENT}"

    async def handle(_: Parts, __: CommandRequest) -> CommandReply:
        return CommandReply(text)

    return Command(name=name, handle=handle, help=text, kind=TurnKind.CONTROL)


def stops_turn(text: str) -> bool:
    command = parse(text)
    return command is not None and command[0].stops_turn
