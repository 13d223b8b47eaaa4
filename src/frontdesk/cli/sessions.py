"""``frontdesk sessions``: conversations, found and read."""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, TextIO

import click

from frontdesk import config
from frontdesk.app.office import LIST_LIMIT, SEARCH_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import ask, limit_option, reach_office
from frontdesk.config import Config
from frontdesk.formats.exports import Format
from frontdesk.model import calls, messages

COLUMN = 10
TITLE_CHARACTERS = 40
PLACE_CHARACTERS = 50
FORMATS = [str(form) for form in Format]

Plain = dict[str, Any]


@click.group()
def command() -> None:
    """List, show, search and export conversations."""


@command.command("list")
@limit_option(LIST_LIMIT)
@click.option("--active", "minutes", type=click.FloatRange(0), help="Only those active in so many minutes.")
@click.option("--all", "ended", is_flag=True, help="Ended sessions, too.")
@output.answering
def list_sessions(
    config_file: Path | None, limit: int, minutes: float | None, ended: bool, as_json: bool
) -> None:
    """List the current session of each conversation, the latest activity first."""
    found = ask(config_file, lambda office: office.list_sessions(limit, minutes, ended))
    headings = ("ID", "ACTIVE", "MESSAGES", "STATE", "WHERE", "TITLE")
    output.show_list(found, as_json, headings, _row, "There are no sessions.")


def _row(session: Plain) -> tuple[object, ...]:
    return (
        session["id"],
        output.local_time(session["updated_at"]),
        session["messages"],
        _state(session),
        output.short(_place(session), PLACE_CHARACTERS),
        output.short(session["title"] or "", TITLE_CHARACTERS),
    )


def _place(session: Plain) -> str:
    account = f"@{session['account']}" if session["account"] else ""
    return f"{session['platform'] or '-'}{account}, {session['where']}"


def _state(session: Plain) -> str:
    if session["state"] != "open":
        return f"ended: {session['end_reason']}"
    return "suspended" if session["suspended"] else "open"


@command.command()
@click.argument("session_id")
@output.answering
def show(config_file: Path | None, session_id: str, as_json: bool) -> None:
    """Show a session and what was said in it."""
    session = ask(config_file, lambda office: office.show_session(session_id))
    if as_json:
        output.show_json(session)
        return
    output.show_facts(_facts(session), COLUMN)
    for message in session["transcript"]:
        output.show(f"\n{_said(message)}")


def _facts(session: Plain) -> dict[str, str]:
    tokens = f"{session['input_tokens']} in, {session['output_tokens']} out"
    return {
        "session": session["id"],
        "key": session["key"],
        "title": session["title"] or "-",
        "where": _place(session),
        "state": _state(session),
        "begun": output.local_time(session["created_at"]),
        "active": output.local_time(session["updated_at"]),
        "messages": str(session["messages"]),
        "tokens": tokens,
        "parent": session["parent_id"] or "-",
    }


def _said(message: Plain) -> str:
    lines = [f"{message['role']}: {messages.text_of(message)}".rstrip()]
    lines += [f"  calls {call.name} {call.arguments}" for call in calls.calls_of(message)]
    return "\n".join(lines)


@command.command()
@click.argument("query")
@limit_option(SEARCH_LIMIT)
@output.answering
def search(config_file: Path | None, query: str, limit: int, as_json: bool) -> None:
    """Find messages with these words, "phrases" and begin*. The exit code is 1 when there are none."""
    hits = ask(config_file, lambda office: office.search(query, limit))
    if as_json:
        output.show_json(hits)
    for hit in () if as_json else hits:
        output.show(f"{hit['session_id']}  {output.local_time(hit['created_at'])}  {hit['role']}")
        output.show(f"  {hit['snippet']}")
    if not hits:
        click.echo("Nothing found.", err=True)
        sys.exit(1)


@command.command()
@click.argument("session_id")
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option("--ancestors", is_flag=True, help="Also what was said before compressions.")
@click.option("-o", "--output", "to", type=click.File("w", encoding="utf-8", lazy=True), default="-")
@click.pass_obj
def export(config_file: Path | None, session_id: str, form: str, ancestors: bool, to: TextIO) -> None:
    """Write a session as JSON lines or Markdown."""
    asyncio.run(_export(config.load(config_file), session_id, form, ancestors, to))


async def _export(loaded: Config, session_id: str, form: str, ancestors: bool, to: TextIO) -> None:
    async with (
        reach_office(loaded) as office,
        aclosing(office.export_session(session_id, form, ancestors)) as pieces,
    ):
        async for piece in pieces:
            to.write(output.printable(piece) if to.isatty() else piece)
