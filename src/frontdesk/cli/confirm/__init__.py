"""``frontdesk confirm``: people decide before something dangerous is done."""

from importlib import import_module

import click

COMMANDS = {
    "serve": ("serve", "Run the confirmation service alone."),
    "run": ("run", "Run a command when somebody has approved exactly that."),
    "list": ("decide", "List requests and what became of them."),
    "show": ("decide", "Show a request, all of it."),
    "approve": ("decide", "Allow an action."),
    "deny": ("decide", "Refuse an action."),
    "erase": ("decide", "Forget what a decided request was about."),
    "rules": ("rules", "Show, add and revoke rules."),
    "mcp": ("mcp", "Offer confirmations to an agent as MCP tools."),
}


class Commands(click.Group):
    """Commands known by name; a module is loaded when one of its commands is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"frontdesk.cli.confirm.{COMMANDS[cmd_name][0]}")
        command = getattr(module, f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands)
def command() -> None:
    """Let people decide before something dangerous is done."""
