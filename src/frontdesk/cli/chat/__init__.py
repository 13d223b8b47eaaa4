"""``frontdesk chat``: talk to the agent in the terminal."""

import asyncio
import io
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from frontdesk import config, errors
from frontdesk.app import reach
from frontdesk.app.terminal import CLI, Terminal, source_of
from frontdesk.cli import INTERRUPTED, output
from frontdesk.cli.chat.conversation import DONE, Conversation
from frontdesk.cli.chat.keyboard import Interrupted, Keyboard, Leaving
from frontdesk.cli.chat.screen import Screen
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
        conversation = Conversation(terminal, Keyboard(), chat, _back(chat, start))
        if text is None:
            await conversation.run()
            return 0
        return await _ask_once(conversation, text, JsonScreen() if as_json else Screen(asides_to_stderr=True))


def _back(chat: str, start: bool) -> str:
    """The command that comes back to the chat."""
    named = [] if chat == CLI else ["--chat", chat]
    return shlex.join(["frontdesk", "chat", *named, *(["--start"] if start else [])])


@asynccontextmanager
async def _reached(loaded: Config, start: bool) -> AsyncIterator[Terminal]:
    try:
        terminal: Terminal = await reach.reach_terminal(loaded.home)
    except errors.NoGateway:
        if not start:
            raise
        from frontdesk.app import build  # noqa: PLC0415 - everything that runs is loaded only where it does

        async with build.open_gateway(loaded) as gateway:
            await gateway.start()
            yield Terminal(gateway.desk)
    else:
        yield terminal


async def _ask_once(conversation: Conversation, text: str, screen: Screen) -> int:
    try:
        return 0 if await conversation.ask_once(text, screen) == DONE else NOT_ANSWERED
    except (Interrupted, Leaving):
        return INTERRUPTED


class JsonScreen(Screen):
    """Everything that happens, as a script reads it."""

    def show(self, happened: dict[str, Any]) -> None:
        output.show_json_line(happened)


async def chat_with(gateway: "Gateway") -> None:
    """Talk to a gateway of this process until somebody leaves.

    SIGINT, SIGTERM and SIGHUP are the chat's until then.
    """
    _prepare_output()
    await Conversation(Terminal(gateway.desk), Keyboard(), CLI, BACK).run()
