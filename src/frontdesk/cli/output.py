"""What commands write: never a control character that would reach the terminal."""

import math
import os
import re
import shutil
import sys
import termios
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click
import msgspec

from frontdesk.formats import wrapping

USUAL_COLUMNS = 80
JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON.")

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Amount(click.FloatRange):
    """A number within bounds: what is no number is not within them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def show(text: str) -> None:
    click.echo(printable(text))


def note(text: str) -> None:
    """Something beside what was asked for: scripts do not read it."""
    tell(f"Note: {text}")


def tell(text: str) -> None:
    """A line for people alone: the standard output is for what was asked for."""
    click.echo(printable(text), err=True)


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


def fitted(text: str, file: TextIO | None = None) -> str:
    """Lines of a request in the columns of the terminal, where there is one: none begins where ours do."""
    shown_on = file or sys.stdout
    if not shown_on.isatty():
        return text
    columns, rows = os.get_terminal_size(shown_on.fileno())
    usual = (columns or USUAL_COLUMNS, rows)
    return wrapping.hang(text, shutil.get_terminal_size(usual).columns)


def show_json_line(data: Any) -> None:
    click.echo(msgspec.json.encode(data))


def agree(question: str, otherwise: str) -> None:
    """Somebody at the terminal says yes. Where nobody can be asked, UsageError says what to do instead."""
    require_terminal(otherwise)
    if not ask_yes(question):
        raise click.Abort()


def is_terminal() -> bool:
    """Whether somebody can be asked: questions are on the standard error output, which is to be read where
    they are answered."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_terminal(otherwise: str) -> None:
    """UsageError, with what to do instead, where nobody can be asked."""
    if not is_terminal():
        raise click.UsageError(otherwise)


def ask_yes(question: str) -> bool:
    with _asking():
        return click.confirm(printable(question), err=True)
    return False


def ask_text(question: str, default: str = "") -> str:
    with _asking():
        asked, shown = printable(question), bool(default)
        return str(click.prompt(asked, default=default, show_default=shown, err=True))
    return ""


def ask_secret(question: str) -> str:
    """What is typed is not shown."""
    with _asking():
        asked = printable(question)
        return str(click.prompt(asked, default="", show_default=False, hide_input=True, err=True))
    return ""


@contextmanager
def _asking() -> Iterator[None]:
    """Whatever was typed before the question is no answer to it, nor is the end of the input; Ctrl-C ends the
    command."""
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    try:
        yield
    except click.Abort as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt() from None
        click.echo(err=True)


class Report(NamedTuple):
    """What a command has to say."""

    data: Any
    """All of it, for a program; or how to get that."""
    text: str
    """For people."""
    good: bool = True
    """Whether the exit code is 0; else it is 1."""
    doubts: Iterable[str] = ()
    """What people are told beside it, on standard error."""


def answering(command: Callable[..., Report]) -> Callable[..., None]:
    """A command that is given the configuration file, and whose report is JSON where that is wanted."""

    @JSON
    @click.pass_obj
    @wraps(command)
    def answer(config_file: Path | None, /, as_json: bool, **given: Any) -> None:
        show_report(command(config_file, **given), as_json)

    return answer


def show_report(report: Report, as_json: bool) -> None:
    if as_json:
        data = report.data() if callable(report.data) else report.data
        click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2))
    elif report.text:
        show(report.text)
    for doubt in report.doubts:
        tell(doubt)
    if not report.good:
        sys.exit(1)


def listed(found: Sequence[Any], row: Callable[[Any], Mapping[str, object]], nothing: str) -> Report:
    """What was found: a table with these cells under their headings, or that there is nothing."""
    return Report(found, "\n".join(_table(list(map(row, found)))) if found else nothing)


def in_lines(facts: Mapping[str, object], column: int) -> str:
    """Facts behind their names."""
    return "\n".join(f"{name:<{column}}{fact}" for name, fact in facts.items())


def _table(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """The rows in columns, each in one line."""
    lines = [tuple(rows[0]), *(tuple(map(_cell, row.values())) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def short(text: str, most: int = 60) -> str:
    """The text in one line of so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def account(told: Mapping[str, Any]) -> str:
    """A platform, and which of our accounts on it."""
    platform = told["platform"] or "-"
    return f"{platform}@{told['account']}" if told["account"] else str(platform)


def local_time(text: str) -> str:
    """An ISO time as the clock on the wall shows it."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
