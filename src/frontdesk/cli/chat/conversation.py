"""A conversation in the terminal: a line is a message, and the answer appears as it is written."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

import click

from frontdesk import errors
from frontdesk.app.terminal import Plain, Terminal
from frontdesk.cli import one_line, output
from frontdesk.cli.chat.keyboard import Interrupted, Keyboard, Leaving
from frontdesk.cli.chat.screen import Line, Screen
from frontdesk.flow.commands import registry

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
DECISIONS = dict.fromkeys(("yes", "y"), "/approve") | dict.fromkeys(("no", "n"), "/deny")
EARLY = "{said!r} was written before this was asked, and decides nothing."
NEXT = "{said!r} waits, and comes next."
UNDECIDED = (
    "{id} is not decided: the agent waits on, until the time is over. To come back: {back}\n"
    "There /approve {id} and /deny {id} decide."
)
DONE = "done"
REFUSED = "refused"
"""A command that was not obeyed: why not is its answer."""

T = TypeVar("T")
Ask = Callable[[str], None]
"""Asks whoever sits here about a confirmation."""


class Conversation:
    """One chat of a terminal. Everything that was shown is noted as collected."""

    def __init__(self, terminal: Terminal, keyboard: Keyboard, chat: str, back: str) -> None:
        """``back`` is the command that comes back to this chat."""
        self._terminal = terminal
        self._keyboard = keyboard
        self._chat = chat
        self._back = back
        self._line = Line()
        self._queued: list[tuple[str, Screen]] = []
        """The turns of messages that were said while another one waited for a decision."""

    async def run(self) -> None:
        """Talk until the input ends or somebody leaves."""
        asks = self._keyboard.is_terminal
        with self._keyboard.listening():
            if asks:
                output.show(WELCOME)
            await self._catch_up(AWAY)
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

    async def _catch_up(self, heading: str | None = None) -> None:
        """Show what was said and nobody has seen."""
        waiting = await self._terminal.uncollected(self._chat)
        if not waiting:
            return
        screen = Screen(self._line)
        if heading:
            screen.aside(heading)
        for each in waiting:
            screen.tell(each)
        await self._terminal.collected([each["id"] for each in waiting], self._chat)

    async def _answer(self, text: str) -> None:
        """Show the answer, and those to what was said meanwhile."""
        screen = Screen(self._line)
        await self._show_until_stopped(self._terminal.say(text, self._chat), screen)
        while self._queued:
            turn_id, screen = self._queued.pop(0)
            await self._show_until_stopped(self._terminal.follow(turn_id), screen)

    async def _show_until_stopped(self, happening: AsyncGenerator[Plain, None], screen: Screen) -> None:
        showing = asyncio.create_task(self._show_and_decide(happening, screen))
        try:
            await self._keyboard.unless_interrupted(showing)
        except Interrupted:
            await self._stop(showing)
        except errors.GatewayUnreachable:
            raise
        except errors.FrontdeskError as error:
            self._complain(error)
        finally:
            await _end({showing})

    def _complain(self, error: errors.FrontdeskError) -> None:
        self._line.end()
        output.show(f"error: {one_line(error)}")

    async def _stop(self, showing: asyncio.Task[Any]) -> None:
        """Tell the agent to stop, and wait for that; pressed again, Ctrl-C leaves the agent to itself."""
        self._line.end()
        stopping = asyncio.create_task(self._obey(STOP))
        waiting = asyncio.wait({showing, stopping}, timeout=STOP_SECONDS)
        try:
            with contextlib.suppress(Interrupted):
                await self._keyboard.unless_interrupted(waiting)
        finally:
            await _end({stopping})

    async def _show_and_decide(self, happening: AsyncGenerator[Plain, None], screen: Screen) -> str:
        """Show a turn, while whoever sits here is asked to allow what the agent wants to do. Nobody is asked
        where lines come from a file or a program."""
        deciding: list[asyncio.Task[None]] = []

        def ask(confirmation_id: str) -> None:
            deciding.append(asyncio.create_task(self._decide(confirmation_id, deciding[-1:])))

        try:
            return await self._show(happening, screen, ask if self._keyboard.is_terminal else None)
        finally:
            await _end(deciding)

    async def _decide(self, confirmation_id: str, earlier: list[asyncio.Task[None]]) -> None:
        """Read lines until the turn goes on: yes and no decide, others are said to the agent, and wait. The
        end of the input leaves the chat, and decides nothing."""
        await _end(earlier)
        for said in self._keyboard.forget_lines(DECISIONS):
            Screen(self._line).aside(EARLY.format(said=said))
        asks = True
        while (line := await self._hear(asks)) is not None:
            said = line.strip()
            command = DECISIONS.get(said.lower())
            text = f"{command} {confirmation_id}" if command else said
            asks = not (await _completed(self._tell(text)) and _settles(text, confirmation_id))
        self._line.end()
        output.show(UNDECIDED.format(id=confirmation_id, back=self._back))
        self._keyboard.leave()

    async def _hear(self, asks: bool) -> str | None:
        """The next line. Before one that is there already nobody is asked: it is no answer."""
        if asks and not self._keyboard.has_line:
            self._line.ask(ALLOW)
            line = await self._keyboard.read_line()
            self._line.answered()
            return line
        return await self._keyboard.read_line()

    async def _tell(self, text: str) -> bool:
        """Whether it was taken. Commands that need not wait are answered at once, the rest in its turn."""
        try:
            if text:
                receipt = await self._terminal.accept(text, self._chat)
                if text.startswith("/") and not receipt["waiting"]:
                    following = self._terminal.follow(receipt["turn_id"])
                    return await self._show(following, Screen(self._line)) == DONE
                await self._queue(text, receipt["turn_id"])
        except errors.GatewayUnreachable:
            raise
        except errors.FrontdeskError as error:
            self._complain(error)
            return False
        return True

    async def _queue(self, text: str, turn_id: str) -> None:
        """Something that is answered later; what is said about that now is shown."""
        screen = Screen(self._line)
        notices = [
            each for each in await self._terminal.uncollected(self._chat) if each["turn_id"] == turn_id
        ]
        for each in notices:
            screen.tell(each)
        if not notices:
            screen.aside(NEXT.format(said=text))
        self._queued.append((turn_id, screen))

    async def _obey(self, text: str) -> str:
        return await self._show(self._terminal.say(text, self._chat), Screen(self._line))

    async def _show(
        self, happening: AsyncGenerator[Plain, None], screen: Screen, ask: Ask | None = None
    ) -> str:
        """Show what happens in a turn; the state in which it ended."""
        async with aclosing(happening):
            async for happened in happening:
                screen.show(happened)
                if happened["type"] == "asked" and ask:
                    ask(happened["id"])
                if happened["type"] == "end":
                    said = [each["id"] for each in happened["deliveries"]]
                    await self._terminal.collected(said, self._chat)
                    state = str(happened["state"])
                    return REFUSED if state == DONE and happened["error"] else state
        raise errors.GatewayGone(path="the gateway", why="the turn did not end")

    async def ask_once(self, text: str, screen: Screen) -> str:
        """Say something, show what happens, and tell how it ended; Ctrl-C stops the agent and is raised."""
        with self._keyboard.listening():
            showing = asyncio.create_task(self._show(self._terminal.say(text, self._chat), screen))
            try:
                return await self._keyboard.unless_interrupted(showing)
            except Interrupted:
                await self._stop(showing)
                raise
            finally:
                await _end({showing})


def _settles(text: str, confirmation_id: str) -> bool:
    """Whether a command that is taken ends the question, so that it is not asked again."""
    found = registry.parse(text)
    if found is None:
        return False
    command, argument = found
    decides = f"/{command.name}" in DECISIONS.values() and argument.split()[:1] == [confirmation_id]
    return decides or command.stops_turn or f"/{command.name}" == STOP


async def _completed(work: Coroutine[Any, Any, T]) -> T:
    """What comes of it. It is completed also when nobody waits for it any more: it was heard already."""
    doing = asyncio.create_task(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing}, timeout=STOP_SECONDS)
        raise


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """End what is still under way, and take note of how the rest ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
