"""What commands write: never a control character that would reach the terminal."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def show(text: str) -> None:
    click.echo(printable(text))


def note(text: str) -> None:
    """Something beside what was asked for: scripts do not read it."""
    click.echo(f"Note: {printable(text)}", err=True)


def show_secret(what: str, secret: Callable[[], str], file: Path) -> None:
    """A secret that was just made: to a person at a terminal alone. Anything else may be kept as a log."""
    if sys.stdout.isatty():
        show(f"{what} It is shown this once, and kept\nin {file}:\n\n    {secret()}\n")
    else:
        show(f"{what} It is in {file}")


def examples(*lines: str) -> str:
    """How a command is called, for the end of its help."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def printable(text: str) -> str:
    """The text with U+FFFD for what would command a terminal or turn its writing around."""
    return _CONTROLS.sub("\ufffd", text)


def show_json(data: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2))


def show_json_line(data: Any) -> None:
    click.echo(msgspec.json.encode(data))


def answering(command: Callable[..., None]) -> Callable[..., None]:
    """A command that is given the configuration file, and may write JSON."""
    json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
    return json(click.pass_obj(command))


def show_answer(answer: Any, as_json: bool, text: str) -> None:
    """What was done: all of it for a program, or a sentence for people."""
    if as_json:
        show_json(answer)
    else:
        show(text)


def show_list(
    found: Sequence[Any],
    as_json: bool,
    headings: Sequence[str],
    row: Callable[[Any], Sequence[object]],
    nothing: str,
) -> None:
    """What was found: all of it for a program, a table for people, or that there is nothing."""
    if as_json:
        show_json(found)
    elif found:
        show_table(headings, list(map(row, found)))
    else:
        show(nothing)


def show_facts(facts: Mapping[str, object], column: int) -> None:
    for name, fact in facts.items():
        show(f"{name:<{column}}{fact}")


def show_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """The rows in columns, each in one line."""
    lines = [tuple(headings), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        show("  ".join(cells).rstrip())


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def short(text: str, most: int = 60) -> str:
    """The text in one line of so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def local_time(text: str) -> str:
    """An ISO time as the clock on the wall shows it."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
