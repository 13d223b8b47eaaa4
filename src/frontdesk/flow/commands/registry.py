"""The commands that there are."""

import difflib
import re

from frontdesk.flow.commands import (
    Command,
    CommandRequest,
    CommandTable,
    directory,
    permissions,
    running,
    switching,
    transcript,
    views,
)
from frontdesk.flow.parts import Parts
from frontdesk.model.turns import PROMPT, TurnKind

HEAD = "Just write to me. These commands are for me, not for the agent:"
NEAR = 0.75
"""How alike a name and a command's must be, from 0 to 1, to be taken for a slip."""
TO_THE_AGENT = "If it is for the agent, write something before it."
COMMANDS = CommandTable(
    each for of in (switching, transcript, running, permissions, directory) for each in of.COMMANDS
)
_CALLED = re.compile(r"/([a-z]+)(?:@\S+)?(?:\s+(.*))?", re.DOTALL | re.IGNORECASE)


@COMMANDS.add("/help [command]", "List the commands, or explain one.", kind=TurnKind.CONTROL)
async def explain(_: Parts, request: CommandRequest) -> str:
    wanted = views.argument_of(request).removeprefix("/").lower()
    if not wanted:
        return "\n".join((HEAD, *(f"{_form(each)}: {each.help}" for each in COMMANDS)))
    if wanted not in _BY_NAME:
        return f"There is no command {views.quoted(wanted)}. /help lists those there are."
    command = _BY_NAME[wanted]
    lines = [f"{_form(command)}: {command.help}"]
    if command.aliases:
        lines.append("Also: " + ", ".join(f"/{alias}" for alias in command.aliases))
    if command.kind is TurnKind.CONTROL:
        lines.append("It works while I am busy.")
    else:
        stops = command.stops_turn
        lines.append("It stops what is running first." if stops else "It waits for what is running.")
    return "\n".join(lines)


def _form(command: Command) -> str:
    return f"/{command.name} {command.usage}".strip()


_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def parse(text: str) -> tuple[Command, str] | None:
    """The command in a message and what follows it; None when the message is none of ours."""
    found = _CALLED.fullmatch(text.strip())
    if not found:
        return None
    name, argument = found[1].lower(), (found[2] or "").strip()
    command = _BY_NAME.get(name) or (None if argument else _near_miss(name))
    return (command, argument) if command else None


def is_hasty(text: str) -> bool:
    """Whether a command does not wait until the turn that runs has ended: it stops it, or goes beside it."""
    found = parse(text)
    return found is not None and (found[0].stops_turn or found[0].kind in PROMPT)


def _near_miss(name: str) -> Command | None:
    """For a name that is almost one of ours: a command that says so, and does nothing else."""
    near = difflib.get_close_matches(name, _BY_NAME, n=1, cutoff=NEAR)
    if not near:
        return None
    text = f"There is no /{name}. Did you mean /{near[0]}? {TO_THE_AGENT}"

    async def handle(_: Parts, __: CommandRequest) -> str:
        return text

    return Command(name=name, handle=handle, help=text, kind=TurnKind.CONTROL)
