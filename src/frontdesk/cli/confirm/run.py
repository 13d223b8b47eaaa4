"""``frontdesk confirm run``: a command that runs when somebody has approved exactly that."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from frontdesk import config, errors
from frontdesk.cli import one_line, output
from frontdesk.cli.confirm import programs, reaching
from frontdesk.confirm import steps
from frontdesk.confirm.client import SyncClient
from frontdesk.confirm.records import Redeemed
from frontdesk.confirm.steps import Wish
from frontdesk.model.confirmations import (
    DEFAULT_TIMEOUT_SECONDS,
    MAX_TEXT_CHARACTERS,
    MAX_TIMEOUT_SECONDS,
    MIN_TIMEOUT_SECONDS,
)

NOT_CONFIRMED = 125
"""What we end with when the command was not even started; programs that start others do so, too."""
STOPPED = 130


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option(
    "--action", required=True, metavar="NAME", help="What kind of thing it is, for rules and people."
)
@click.option("--description", help="What it is for; not set, it is the command itself.")
@click.option(
    "--timeout",
    type=click.IntRange(MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
    default=DEFAULT_TIMEOUT_SECONDS,
    show_default=True,
    help="How many seconds people may take.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Pass a variable on, besides the usual ones; people see it.",
)
@click.option("--session", metavar="KEY", help="The conversation that it belongs to.")
@reaching.URL
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def run_command(
    config_file: Path | None,
    action: str,
    description: str | None,
    timeout: int,
    variables: tuple[str, ...],
    session: str | None,
    url: str | None,
    argv: tuple[str, ...],
) -> None:
    """Run a command when somebody has approved exactly that: frontdesk confirm run --action NAME -- COMMAND …

    People see the program with its digest, every argument, the directory and the environment, and these are
    used, without a shell. The exit code is the command's; 125 when it was not approved, 126 when it cannot be
    run, 127 when there is none.
    """
    with _told():
        loaded = config.load(config_file)
        here = programs.Here()
        program = programs.describe(argv, here.path, config.environment(), variables)
        wish = Wish(
            action=action,
            description=description or f"Run {program.shown}"[:MAX_TEXT_CHARACTERS],
            details=program.details,
            timeout_seconds=timeout,
            session_key=session,
        )
        client = SyncClient(reaching.address(loaded, url), reaching.given_token(loaded))
        approved = _obtain(client, wish)
        programs.execute(programs.read_program(approved.details), here)


def _obtain(client: SyncClient, wish: Wish) -> Redeemed:
    """Ask, say so, and wait. One that is not there is told at once; one that goes away is waited for."""
    ticket = client.talk(steps.ask(wish, patience_seconds=0))
    try:
        _tell(f"Waiting for somebody to decide about {ticket.id}. {ticket.message}")
        return client.collect(ticket)
    except KeyboardInterrupt:
        _tell(f"Stopped. Nothing was run; {ticket.id} is of no use to anybody else.")
        sys.exit(STOPPED)


@contextmanager
def _told() -> Iterator[None]:
    """What stands in the way is told in a line, with an exit code that commands seldom have."""
    try:
        yield
    except errors.FrontdeskError as error:
        _fail(one_line(error), NOT_CONFIRMED)
    except OSError as error:
        code = programs.NOT_FOUND if isinstance(error, FileNotFoundError) else programs.CANNOT_RUN
        _fail(f"{error.filename}: {error.strerror}", code)


def _fail(text: str, code: int) -> NoReturn:
    _tell(f"Error: {text}")
    sys.exit(code)


def _tell(text: str) -> None:
    """The standard output is the command's alone."""
    click.echo(output.printable(text), err=True)
