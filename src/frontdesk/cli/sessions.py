"""``frontdesk sessions``: conversations, found and read."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

import click

from frontdesk import config
from frontdesk.app.office import Office, Plain
from frontdesk.app.office.conversations import SEARCH_LIMIT
from frontdesk.app.office.counters import LIST_LIMIT
from frontdesk.cli import output
from frontdesk.cli.asking import answering, ask, limit_option
from frontdesk.cli.output import Report
from frontdesk.formats.exports import Format
from frontdesk.model import calls, messages

COLUMN = 10
TITLE_CHARACTERS = 40
PLACE_CHARACTERS = 50
FORMATS = [str(form) for form in Format]


@click.group()
def command() -> None:
    """List, show, search and export conversations."""


@command.command("list")
@limit_option(LIST_LIMIT)
@click.option("--active", "minutes", type=output.Amount(0), help="Only those active in so many minutes.")
@click.option("--all", "ended", is_flag=True, help="Ended sessions, too.")
@answering
async def list_sessions(office: Office, limit: int, minutes: float | None, ended: bool) -> Report:
    """List the current session of each conversation, the latest activity first."""
    found = await office.list_sessions(limit, minutes, ended)
    return output.listed(found, _row, "There are no sessions.")


def _row(session: Plain) -> Plain:
    return {
        "ID": session["id"],
        "ACTIVE": output.local_time(session["updated_at"]),
        "MESSAGES": session["messages"],
        "STATE": _state(session),
        "WHERE": output.short(_place(session), PLACE_CHARACTERS),
        "TITLE": output.short(session["title"] or "", TITLE_CHARACTERS),
    }


def _place(session: Plain) -> str:
    return f"{output.account(session)}, {session['where']}"


def _state(session: Plain) -> str:
    if session["state"] != "open":
        return f"ended: {session['end_reason']}"
    return "suspended" if session["suspended"] else "open"


@command.command()
@click.argument("session_id")
@answering
async def show(office: Office, session_id: str) -> Report:
    """Show a session and what was said in it."""
    session = await office.show_session(session_id)
    parts = [output.in_lines(_facts(session), COLUMN), *map(_said, session["transcript"])]
    return Report(session, "\n\n".join(parts))


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
@answering
async def search(office: Office, query: str, limit: int) -> Report:
    """Find messages with these words, "phrases" and begin*. The exit code is 1 when there are none."""
    hits = await office.search(query, limit)
    if not hits:
        click.echo("Nothing found.", err=True)
    return Report(hits, "\n".join(map(_hit, hits)), good=bool(hits))


def _hit(hit: Plain) -> str:
    when = output.local_time(hit["created_at"])
    return f"{hit['session_id']}  {when}  {hit['role']}\n  {hit['snippet']}"


@command.command()
@click.argument("session_id")
@click.option("--format", "form", type=click.Choice(FORMATS), default="jsonl", show_default=True)
@click.option("--ancestors", is_flag=True, help="Also what was said before compressions.")
@click.option("-o", "--output", "to", type=click.File("w", encoding="utf-8", lazy=True), default="-")
@click.pass_obj
def export(config_file: Path | None, session_id: str, form: str, ancestors: bool, to: TextIO) -> None:
    """Write a session as JSON lines or Markdown."""
    wanted = (session_id, form, ancestors)
    ask(config.load(config_file), lambda office: _write(office.export_session(*wanted), to))


async def _write(exported: AsyncGenerator[str, None], to: TextIO) -> None:
    async with aclosing(exported) as pieces:
        async for piece in pieces:
            to.write(output.printable(piece) if to.isatty() else piece)
