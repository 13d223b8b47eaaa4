"""``frontdesk background``: work that goes on for a conversation when no turn runs."""

import click

from frontdesk.app.office import Office, Plain
from frontdesk.app.office.counters import LIST_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import answering, limit_option
from frontdesk.cli.output import Report
from frontdesk.model.background import DEFAULT_NAME, DEFAULT_SECONDS, MAX_SECONDS

MINUTE = 60
NAME = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which work it is.")


@click.group()
def command() -> None:
    """Say that work goes on for a conversation in the background, so that it is not reset meanwhile."""


@command.command()
@click.argument("conversation")
@NAME
@click.option(
    "--minutes",
    type=output.Amount(0, MAX_SECONDS / MINUTE, min_open=True),
    default=DEFAULT_SECONDS / MINUTE,
    show_default=True,
    help="For how long at most; begin it again when it takes longer.",
)
@answering
async def begin(office: Office, conversation: str, name: str, minutes: float) -> Report:
    """Work runs for a CONVERSATION, which is a session's id or key."""
    work = await office.begin_background(conversation, name, minutes * MINUTE)
    return Report(work, f"{work['name']} runs until {output.local_time(work['until'])} at the latest.")


@command.command()
@click.argument("conversation")
@NAME
@answering
async def end(office: Office, conversation: str, name: str) -> Report:
    """Work of a CONVERSATION has ended. The exit code is 1 when none of that name ran."""
    ended = await office.end_background(conversation, name)
    text = f"{name} has ended." if ended else f"There was no {name}."
    return Report({"name": name, "ended": ended}, text, good=ended)


@command.command("list")
@limit_option(LIST_LIMIT)
@answering
async def list_work(office: Office, limit: int) -> Report:
    """List what runs, the latest first."""
    return output.listed(await office.list_background(limit), _row, "Nothing runs in the background.")


def _row(work: Plain) -> Plain:
    return {
        "NAME": output.short(work["name"], 40),
        "BEGUN": output.local_time(work["begun_at"]),
        "UNTIL": output.local_time(work["until"]),
        "CONVERSATION": work["session_key"],
    }
