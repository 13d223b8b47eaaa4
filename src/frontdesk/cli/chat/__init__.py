"""``frontdesk chat``: talk to the agent in the terminal."""

import asyncio
import io
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from frontdesk import config, errors
from frontdesk.app.terminal import CLI, Terminal, source_of
from frontdesk.cli import INTERRUPTED, output
from frontdesk.cli.asking import reach_terminal
from frontdesk.cli.chat import conversation
from frontdesk.cli.chat.conversation import Conversation
from frontdesk.cli.chat.screen import Screen
from frontdesk.cli.chat.seats import Lines, Page, Seat
from frontdesk.config import Config

if TYPE_CHECKING:
    from frontdesk.app.gateway import Gateway

FROM_INPUT = "-"
BACK = "frontdesk run --chat"
NOT_ANSWERED = 1


@click.command()
@click.option("--chat", default=CLI, show_default=True, metavar="NAME", help="Each name is a conversation.")
@click.option("-m", "--message", metavar="TEXT", help="Say this, print the answer, end. - reads it.")
@click.option("--json", "as_json", is_flag=True, help="With -m: write what happens as lines of JSON.")
@click.option("--start", is_flag=True, help="Where no gateway runs, run one for as long as the chat lasts.")
@click.pass_obj
def command(config_file: Path | None, chat: str, message: str | None, as_json: bool, start: bool) -> None:
    """Talk to the agent of the running gateway.

    With -m the exit code is 0 when the message was answered, 1 when it was not or a command was refused, 130
    after Ctrl-C.
    """
    if as_json and message is None:
        raise click.UsageError("--json goes with -m.")
    source_of(chat)
    loaded = config.load(config_file)
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if message == FROM_INPUT else message
    _prepare_output()
    sys.exit(asyncio.run(_chat(loaded, chat, text, as_json, start)))


def _prepare_output() -> None:
    """Let any text out, whatever the terminal can show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


async def _chat(loaded: Config, chat: str, text: str | None, as_json: bool, start: bool) -> int:
    async with _reached(loaded, start) as terminal:
        if text is None:
            await _converse(terminal, loaded.home, chat, _back(chat, start))
            return 0
        page = Page(asides_to_stderr=True)
        asking = Conversation(terminal, Lines(page), chat, "")
        ended = await asking.ask_once(text, JsonScreen(page) if as_json else Screen(page))
        return {conversation.DONE: 0, conversation.LEFT: INTERRUPTED}.get(ended, NOT_ANSWERED)


async def _converse(terminal: Terminal, home: Path, chat: str, back: str) -> None:
    """At a prompt where somebody sits, in lines where not."""
    seat: Seat = Lines(Page())
    if sys.stdin.isatty() and sys.stdout.isatty():
        from frontdesk.cli.chat import prompt  # noqa: PLC0415 - loaded only where there is a terminal

        seat = prompt.make_prompt(partial(terminal.titles, chat), home, config.environment())
    await Conversation(terminal, seat, chat, back).run()


def _back(chat: str, start: bool) -> str:
    """The command that comes back to the chat."""
    named = [] if chat == CLI else ["--chat", chat]
    return shlex.join(["frontdesk", "chat", *named, *(["--start"] if start else [])])


@asynccontextmanager
async def _reached(loaded: Config, start: bool) -> AsyncIterator[Terminal]:
    try:
        terminal = await reach_terminal(loaded.home)
    except errors.NoGateway:
        if not start:
            raise
        from frontdesk.app import build  # noqa: PLC0415 - what runs is loaded only where it does
        from frontdesk.cli import running  # noqa: PLC0415 - the same

        running.prepare(loaded.home, "info", log_to_file=True)
        async with build.open_gateway(loaded) as gateway:
            await gateway.start()
            yield Terminal(gateway)
    else:
        yield terminal


class JsonScreen(Screen):
    """Everything that happens, as a script reads it."""

    def show(self, happened: dict[str, Any]) -> None:
        output.show_json_line(happened)


async def chat_with(gateway: "Gateway", home: Path) -> None:
    """Talk to a gateway of this process until somebody leaves.

    SIGINT, SIGTERM and SIGHUP are the chat's until then.
    """
    _prepare_output()
    await _converse(Terminal(gateway), home, CLI, BACK)
