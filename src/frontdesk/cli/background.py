"""``frontdesk background``: work that goes on for a conversation when no turn runs."""

import sys
from pathlib import Path
from typing import Any

import click

from frontdesk.app.office import LIST_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import ask, limit_option
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
    type=click.FloatRange(0, MAX_SECONDS / MINUTE, min_open=True),
    default=DEFAULT_SECONDS / MINUTE,
    show_default=True,
    help="For how long at most; begin it again when it takes longer.",
)
@output.answering
def begin(config_file: Path | None, conversation: str, name: str, minutes: float, as_json: bool) -> None:
    """Work runs for a CONVERSATION, which is a session's id or key."""
    work = ask(config_file, lambda office: office.begin_background(conversation, name, minutes * MINUTE))
    until = output.local_time(work["until"])
    output.show_answer(work, as_json, f"{work['name']} runs until {until} at the latest.")


@command.command()
@click.argument("conversation")
@NAME
@output.answering
def end(config_file: Path | None, conversation: str, name: str, as_json: bool) -> None:
    """Work of a CONVERSATION has ended. The exit code is 1 when none of that name ran."""
    ended = ask(config_file, lambda office: office.end_background(conversation, name))
    text = f"{name} has ended." if ended else f"There was no {name}."
    output.show_answer({"name": name, "ended": ended}, as_json, text)
    sys.exit(0 if ended else 1)


@command.command("list")
@limit_option(LIST_LIMIT)
@output.answering
def list_work(config_file: Path | None, limit: int, as_json: bool) -> None:
    """List what runs, the latest first."""
    found = ask(config_file, lambda office: office.list_background(limit))
    headings = ("NAME", "BEGUN", "UNTIL", "CONVERSATION")
    output.show_list(found, as_json, headings, _row, "Nothing runs in the background.")


def _row(work: dict[str, Any]) -> tuple[object, ...]:
    times = (output.local_time(work["begun_at"]), output.local_time(work["until"]))
    return (output.short(work["name"], 40), *times, work["session_key"])
