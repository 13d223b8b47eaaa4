"""``frontdesk tour``: try conversations in the terminal, as different people on different platforms."""

import asyncio
import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click

from frontdesk import config, errors
from frontdesk.cli import one_line, output
from frontdesk.cli.tour.desk import Desk
from frontdesk.cli.tour.guide import WELCOME, Guide

FILE_NAME = "tour.db"
QUIT = (":quit", ":q", ":exit")


@click.command()
@click.option("--store", "store_url", metavar="URL", help="Keep conversations there, not in the home folder.")
@click.option("--ephemeral", is_flag=True, help="Forget everything at the end.")
@click.pass_obj
def command(config_file: Path | None, /, store_url: str | None, ephemeral: bool) -> None:
    """Try conversations, resets, limits and search in the terminal.

    There is no agent yet: each message is answered with its own words. Conversations are kept in a file of
    the tour's own, tour.db in the home folder.
    """
    if store_url and ephemeral:
        raise click.UsageError("--store and --ephemeral exclude each other.")
    loaded = config.load(config_file)
    _prepare_terminal()
    with contextlib.ExitStack() as stack:
        if ephemeral:
            store_url = _in(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="frontdesk-"))))
        runner = stack.enter_context(asyncio.Runner())
        desk = runner.run(Desk.open(store_url or _in(loaded.home), loaded.gateway))
        stack.callback(lambda: runner.run(desk.close()))
        _converse(runner, Guide(desk))


def _in(folder: Path) -> str:
    return config.sqlite_url(folder / FILE_NAME)


def _prepare_terminal() -> None:
    """Let any bytes in and out, and let people edit their lines where the terminal can."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import_module("readline")


def _converse(runner: asyncio.Runner, guide: Guide) -> None:
    output.show(f"{WELCOME}\n")
    with contextlib.suppress(KeyboardInterrupt):
        for line in _lines(guide):
            if line in QUIT:
                break
            output.show(f"{_answer(runner, guide, line)}\n")


def _answer(runner: asyncio.Runner, guide: Guide, line: str) -> str:
    try:
        return runner.run(guide.answer(line))
    except errors.FrontdeskError as error:
        return f"error: {one_line(error)}"


def _lines(guide: Guide) -> Iterator[str]:
    """What is typed, without empty lines, until the input ends; asked for only when a person types."""
    asks = sys.stdin.isatty()
    try:
        while True:
            if line := input(guide.prompt if asks else "").strip():
                yield line
    except (EOFError, KeyboardInterrupt):
        if asks:
            output.show("")
