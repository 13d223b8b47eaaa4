"""``frontdesk confirm run``: a command that runs when somebody has approved exactly that."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import click
import msgspec

from frontdesk import config, errors
from frontdesk.cli import INTERRUPTED, one_line, output
from frontdesk.cli.confirm import programs, reaching
from frontdesk.config import Config
from frontdesk.confirm import Redeemed, SyncClient, Ticket, steps
from frontdesk.confirm.steps import Options
from frontdesk.model.confirmations import (
    DEFAULT_TIMEOUT_SECONDS,
    MAX_TEXT_CHARACTERS,
    MAX_TIMEOUT_SECONDS,
    MIN_TIMEOUT_SECONDS,
    Status,
)

NOT_CONFIRMED = 125
"""What we end with when the command was not even started; programs that start others do so, too."""


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    epilog=output.examples(
        "frontdesk confirm run --action publish -- twine upload dist/app-1.0.tar.gz",
        "frontdesk confirm run --action clean_up --env LEVEL=2 --timeout 600 -- ./clean.sh /srv",
        "frontdesk confirm run --action migrate --stdin -- psql app < migration.sql",
    ),
)
@click.option(
    "--action", required=True, metavar="NAME", help="What kind of thing it is, for rules and people."
)
@click.option("--description", help="What it is for; not set, it is the command itself.")
@click.option(
    "--timeout",
    "timeout_seconds",
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
@click.option(
    "--stdin",
    "with_input",
    is_flag=True,
    help="Pass the standard input on, at most 1 MiB; people see it. Without this the command gets none.",
)
@click.option("--session", "session_key", metavar="KEY", help="The conversation that it belongs to.")
@reaching.URL
@click.argument("argv", nargs=-1, required=True, metavar="-- COMMAND …", type=click.UNPROCESSED)
@click.pass_obj
def run_command(
    config_file: Path | None,
    /,
    action: str,
    description: str | None,
    variables: tuple[str, ...],
    with_input: bool,
    url: str | None,
    argv: tuple[str, ...],
    **options: Unpack[Options],
) -> None:
    """Run a command when somebody has approved exactly that.

    People see the program with its digest, every argument, the directory, the environment, the umask and the
    input, and these are used, without a shell. The input is empty, in a terminal too, unless --stdin is
    given: then all of it is read before anybody is asked. Other open files are not passed on. The service at
    confirm.host and confirm.port, or at --url, is believed, whoever runs it. The exit code is the command's;
    125 when it was not approved, 126 when it cannot be run, 127 when there is none.
    """
    with _told():
        loaded = config.load(config_file)
        here = programs.Here()
        given = programs.read_input() if with_input else None
        program = programs.describe(argv, here.path, config.environment(), variables, given)
        approved = ApprovedCommand(loaded, url).obtain(
            action,
            description or f"Run {shlex.join(argv)}"[:MAX_TEXT_CHARACTERS],
            msgspec.to_builtins(program),
            **options,
        )
        programs.execute(msgspec.convert(approved.details, type=programs.Program), here, given)


class ApprovedCommand:
    """A request, and what its user hears of it: which service is asked, too, since that one is believed."""

    def __init__(self, loaded: Config, url: str | None) -> None:
        where, token = reaching.address(loaded, url), reaching.given_token(loaded)
        self._patient = SyncClient(where, token)
        self._hasty = SyncClient(where, token, patience_seconds=0)
        self._show = f"frontdesk confirm show {{id}}{f' --url {url}' if url else ''}"

    def obtain(
        self, action: str, description: str, details: Mapping[str, Any], **options: Unpack[Options]
    ) -> Redeemed:
        """Ask, say so, and wait. A service that is not there is told at once; one that goes away is waited
        for."""
        ticket = None
        try:
            with reaching.advising():
                ticket = self._hasty.request(action, description, details, **options)
            return self._collect(ticket)
        except errors.NotConfirmed as refusal:
            refusal.add_note(f"The service at {self._patient.url} says so.")
            raise
        except KeyboardInterrupt:
            output.tell(f"Stopped. Nothing was run. {self._left(ticket) if ticket else ''}".rstrip())
            sys.exit(INTERRUPTED)

    def _collect(self, ticket: Ticket) -> Redeemed:
        url = self._patient.url
        if ticket.automatic:
            output.tell(f"The service at {url} allows it by a rule ({ticket.id}).")
        else:
            output.tell(f"Waiting for somebody to decide about {ticket.id}. {ticket.message}")
            output.tell(f"The service at {url} was asked, and is believed.")
            decision = self._patient.wait(ticket)
            decision.check()
            output.tell(f"Approved by {decision.resolved_by}, says the service at {url}.")
        return self._patient.collect(ticket)

    def _left(self, ticket: Ticket) -> str:
        """What becomes of a request that nobody waits for any more."""
        try:
            found = self._hasty.talk(steps.look(ticket.id))
        except errors.FrontdeskError as error:
            return f"What becomes of {ticket.id} is not known: {one_line(error)}"
        show = self._show.format(id=ticket.id)
        if found.status is not Status.PENDING:
            return f"{ticket.id} is {found.status}. See it with: {show}"
        return (
            f"{ticket.id} is not withdrawn: it can be decided until its time is over. The same command,"
            " started again before it is decided, waits for the same decision; after a yes it asks anew."
            f" See it with: {show}"
        )


@contextmanager
def _told() -> Iterator[None]:
    """What stands in the way is told in a line, with an exit code that commands seldom have."""
    try:
        yield
        return
    except errors.FrontdeskError as error:
        text, code = one_line(error), NOT_CONFIRMED
    except OSError as error:
        text = f"{error.filename}: {error.strerror}"
        code = programs.NOT_FOUND if isinstance(error, FileNotFoundError) else programs.CANNOT_RUN
    output.tell(f"Error: {text}")
    sys.exit(code)
