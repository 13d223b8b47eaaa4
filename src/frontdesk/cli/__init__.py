"""The command line: one module for each command, loaded when it is called."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from frontdesk import errors

# Else the HTTP client loads a command line of its own into every process, and a library for colours with it.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

COMMANDS = {
    "run": "Run the gateway.",
    "init": "Write a configuration file to begin with.",
    "connect": "Connect a chat platform, step by step.",
    "doctor": "Check whether everything is there that frontdesk needs.",
    "chat": "Talk to the agent in the terminal.",
    "status": "Show whether a gateway runs, and how much waits.",
    "sessions": "List, show, search and export conversations.",
    "background": "Say that work goes on for a conversation in the background.",
    "checkpoints": "List, compare and restore states of the agent's working directory.",
    "send": "Send a message to a chat.",
    "turns": "Show messages that wait, run or were set aside, and try those again.",
    "deliveries": "Show answers that did not arrive, and send them again.",
    "people": "Show who was let in, let people in, take that back.",
    "login": "Make a link that signs you in to the pages.",
    "token": "Make, list and revoke what lets programs and browsers in.",
    "confirm": "Let people decide before something dangerous is done.",
    "audit": "Verify, export and follow the log of what was asked and decided.",
    "explain": "Show which conversation a message belongs to, and why.",
    "config": "Show and check the settings.",
}

INTERRUPTED = 130
"""The exit code of a command that was stopped with Ctrl-C."""


class LazyGroup(click.Group):
    """Commands known by name; help about all of them loads none."""

    def __init__(self, *arguments: Any, table: Mapping[str, tuple[str, str]], **named: Any) -> None:
        """``table``: where each command is (``module:name``, below this package), and what it is for."""
        super().__init__(*arguments, **named)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name][0].partition(":")
        command = getattr(import_module(f"frontdesk.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


class MainGroup(LazyGroup):
    """The outermost doors of every command."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except errors.FrontdeskError as error:
            raise click.ClickException(one_line(error)) from error
        except UnicodeEncodeError as error:  # what was typed is bytes that are no text
            raise click.UsageError("An argument is not UTF-8.") from error
        except KeyboardInterrupt:
            click.echo(err=True)
            ctx.exit(INTERRUPTED)

    def main(self, *arguments: Any, **named: Any) -> Any:
        """What the system refuses is told in one line."""
        try:
            return super().main(*arguments, **named)
        except OSError as error:
            _let_go_of_output()
            why = error.strerror or str(error)
            where = f"{error.filename}: " if error.filename else ""
            raise SystemExit(f"Error: {where}{why}") from error


def _let_go_of_output() -> None:
    """What cannot be written now is not tried again, and complained about, at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: Exception) -> str:
    """What an error says, with its notes: sentences of their own, unless they are in brackets."""
    said, *notes = (" ".join(each.split()) for each in (str(error), *getattr(error, "__notes__", ())))
    for note in notes:
        ended = note.startswith("(") or said.endswith((".", "!", "?"))
        said = f"{said}{'' if ended else '.'} {note}"
    return said


@click.group(
    cls=MainGroup,
    table={name: (f"{name}:command", text) for name, text in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this file instead of frontdesk.toml in the home folder.",
)
@click.version_option(package_name="frontdesk", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, config_file: Path | None) -> None:
    """The session gateway for AI agents."""
    context.obj = config_file
