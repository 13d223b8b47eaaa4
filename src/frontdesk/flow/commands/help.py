"""The command that explains the others."""

from frontdesk.flow.commands import Command, CommandReply, CommandRequest, views
from frontdesk.flow.parts import Parts
from frontdesk.model.turns import TurnKind

HELP = "List the commands, or explain one."
HEAD = "Just write to me. These commands are for me, not for the agent:"


def help_on(others: tuple[Command, ...]) -> Command:
    """The command that explains these and itself."""

    async def handle(_: Parts, request: CommandRequest) -> CommandReply:
        wanted = views.argument_of(request).removeprefix("/").lower()
        found = [each for each in commands if wanted in (each.name, *each.aliases)]
        if wanted and not found:
            return CommandReply(f"There is no command {views.quoted(wanted)}. /help lists those there are.")
        if found:
            return CommandReply(_explained(found[0]))
        return CommandReply("\n".join((HEAD, *(f"{_form(each)}: {each.help}" for each in commands))))

    command = Command(name="help", usage="[command]", handle=handle, kind=TurnKind.CONTROL, help=HELP)
    commands = (*others, command)
    return command


def _form(command: Command) -> str:
    return f"/{command.name} {command.usage}".strip()


def _explained(command: Command) -> str:
    lines = [f"{_form(command)}: {command.help}"]
    if command.aliases:
        lines.append("Also: " + ", ".join(f"/{alias}" for alias in command.aliases))
    lines.append(_meanwhile(command))
    return "\n".join(lines)


def _meanwhile(command: Command) -> str:
    if command.kind is TurnKind.CONTROL:
        return "It works while I am busy."
    return "It stops what is running first." if command.stops_turn else "It waits for what is running."
