"""A conversation in the terminal: a line is a message, and the answer appears as it is written."""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import click

from frontdesk import errors
from frontdesk.app.terminal import Terminal
from frontdesk.cli import one_line, output
from frontdesk.cli.chat.keyboard import Interrupted, Keyboard, Leaving
from frontdesk.cli.chat.screen import Screen

STOP = "/stop"
STOP_SECONDS = 20.0
PROMPT = "> "
WELCOME = (
    "You are talking to the agent. /help lists commands, Ctrl-C stops an answer;\n"
    "Ctrl-C or Ctrl-D at the prompt leaves."
)
AWAY = "While you were away:"
GOODBYE = "Goodbye."
ALLOW = "Allow it? yes or no: "
YES, NO = ("yes", "y"), ("no", "n")
WAITS = "Your message waits until this is decided."


class Conversation:
    """One chat of a terminal. Everything that was shown is noted as collected."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard, chat: str) -> None:
        self._terminal = terminal
        self._keyboard = keyboard
        self._chat = chat

    async def run(self) -> None:
        """Talk until the input ends or somebody leaves."""
        asks = self._keyboard.is_terminal
        with self._keyboard.listening():
            if asks:
                output.show(WELCOME)
            with contextlib.suppress(Interrupted, Leaving):
                while (line := await self._next_line(asks)) is not None:
                    if line.strip():
                        await self._answer(line)
        if asks:
            output.show(f"\n{GOODBYE}")

    async def _next_line(self, asks: bool) -> str | None:
        await self._catch_up()
        self._keyboard.forget_interrupts()
        if asks:
            click.echo(PROMPT, nl=False)
        return await self._keyboard.unless_interrupted(self._keyboard.read_line())

    async def _catch_up(self) -> None:
        """Show what was said and nobody has seen."""
        waiting = await self._terminal.uncollected(self._chat)
        if not waiting:
            return
        screen = Screen()
        screen.aside(AWAY)
        for each in waiting:
            screen.tell(each)
        await self._terminal.collected([each["id"] for each in waiting], self._chat)

    async def _answer(self, text: str) -> None:
        showing = asyncio.create_task(self._show_and_decide(text))
        try:
            await self._keyboard.unless_interrupted(showing)
        except Interrupted:
            await self._stop(showing)
        except errors.GatewayUnreachable:
            raise
        except errors.FrontdeskError as error:
            output.show(f"error: {one_line(error)}")
        finally:
            await _end({showing})

    async def _stop(self, showing: asyncio.Task[str]) -> None:
        """Tell the agent to stop, and wait for that; pressed again, Ctrl-C leaves the agent to itself."""
        stopping = asyncio.create_task(self.show_answer(STOP, Screen()))
        waiting = asyncio.wait({showing, stopping}, timeout=STOP_SECONDS)
        try:
            with contextlib.suppress(Interrupted):
                await self._keyboard.unless_interrupted(waiting)
        finally:
            await _end({stopping})

    async def _show_and_decide(self, text: str) -> str:
        """The same, while whoever sits here is asked to allow what the agent wants to do. Nobody is asked
        where lines come from a file or a program."""
        deciding: set[asyncio.Task[None]] = set()

        def ask(confirmation_id: str) -> None:
            for earlier in deciding:
                earlier.cancel()
            deciding.add(asyncio.create_task(self._decide(confirmation_id)))

        try:
            return await self.show_answer(text, Screen(), ask if self._keyboard.is_terminal else None)
        finally:
            await _end(deciding)

    async def _decide(self, confirmation_id: str) -> None:
        """Read lines until the turn goes on: yes and no decide, others are said to the agent, and wait."""
        commands = dict.fromkeys(YES, "/approve") | dict.fromkeys(NO, "/deny")
        self._keyboard.forget_lines()
        click.echo(ALLOW, nl=False)
        while (line := await self._keyboard.read_line()) is not None:
            said = line.strip()
            command = commands.get(said.lower())
            if said:
                await self._tell(f"{command} {confirmation_id}" if command else said)
            if not command:
                click.echo(ALLOW, nl=False)

    async def _tell(self, text: str) -> None:
        """Commands are answered at once; anything else waits for its turn."""
        try:
            if text.startswith("/"):
                await self.show_answer(text, Screen())
            else:
                await self._terminal.accept(text, self._chat)
                output.show(WAITS)
        except errors.GatewayUnreachable:
            raise
        except errors.FrontdeskError as error:
            output.show(f"error: {one_line(error)}")

    async def show_answer(self, text: str, screen: Screen, ask: Callable[[str], None] | None = None) -> str:
        """Say something and show what happens; the state in which the turn ended."""
        async with aclosing(self._terminal.say(text, self._chat)) as happening:
            async for happened in happening:
                screen.show(happened)
                if happened["type"] == "asked" and ask:
                    ask(happened["id"])
                if happened["type"] == "end":
                    said = [each["id"] for each in happened["deliveries"]]
                    await self._terminal.collected(said, self._chat)
                    return str(happened["state"])
        raise errors.GatewayGone(path="the gateway", why="the turn did not end")

    async def ask_once(self, text: str, screen: Screen) -> str:
        """The same for a single message; Ctrl-C stops the agent and is raised."""
        with self._keyboard.listening():
            showing = asyncio.create_task(self.show_answer(text, screen))
            try:
                return await self._keyboard.unless_interrupted(showing)
            except Interrupted:
                await self._stop(showing)
                raise
            finally:
                await _end({showing})


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """End what is still under way, and take note of how the rest ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
