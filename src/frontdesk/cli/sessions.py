"""``frontdesk sessions``: conversations, found and read."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

import click

from frontdesk import config
from frontdesk.app.office import Office, Plain
from frontdesk.app.office.acting import Acted
from frontdesk.app.office.conversations import SEARCH_LIMIT, FoundMessage
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
    """List, show, search and export conversations, and act on them."""


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
    parts = [output.in_lines(_facts(dict(session)), COLUMN), *map(_said, session["transcript"])]
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


def _hit(hit: FoundMessage) -> str:
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


def _order(name: str, text: str) -> None:
    """A command that has something done to a session, as if it were written in its chat."""

    async def order(office: Office, session_id: str) -> Report:
        return _acted(await getattr(office, f"{name}_session")(session_id))

    order.__doc__ = text
    command.command(name)(click.argument("session_id")(answering(order)))


_order("stop", "Stop what runs in a session.")
_order("reset", "Let a conversation go on in a new session; this one is kept.")
_order("resume", "Go on with a session that ended, in its own chat.")
_order("branch", "Go on in a copy; the original stays as it is.")
_order("compress", "Go on with a short hand-over in place of the older messages.")
_order("redo", "Bring back what was undone, until something is said.")


@command.command()
@click.argument("session_id")
@click.argument("title")
@answering
async def rename(office: Office, session_id: str, title: str) -> Report:
    """Give a session a title."""
    return _acted(await office.rename_session(session_id, title))


@command.command()
@click.argument("session_id")
@click.option("--turns", default=1, show_default=True, type=click.IntRange(1, 1_000), help="How many.")
@answering
async def undo(office: Office, session_id: str, turns: int) -> Report:
    """Take back the last turn of a session, or several."""
    return _acted(await office.undo_session(session_id, turns))


@command.command()
@click.argument("session_id")
@click.confirmation_option(prompt="It can never be resumed. Forget it?")
@answering
async def forget(office: Office, session_id: str) -> Report:
    """End a session so that it can never be resumed."""
    return _acted(await office.forget_session(session_id))


def _acted(acted: Acted) -> Report:
    """What was answered there; the exit code is 1 when nothing was done."""
    goes_on = "It will happen after the running turn" if acted["waits"] else "It goes on"
    told = acted["message"] if acted["is_over"] else f"{goes_on}: {acted['turn_id']}"
    return Report(dict(acted), told, good=not acted["refused"])
