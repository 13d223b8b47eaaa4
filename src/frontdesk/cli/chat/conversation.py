"""A conversation: what is said goes to the gateway at once, and the answers are shown in their order."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from frontdesk import errors
from frontdesk.app.office import Plain
from frontdesk.app.terminal import Terminal
from frontdesk.cli import one_line, output
from frontdesk.cli.chat.questions import Question
from frontdesk.cli.chat.screen import Screen
from frontdesk.cli.chat.seats import Asking, Key, Seat, Written
from frontdesk.flow.commands import registry

STOP = "/stop"
STOP_SECONDS = 20.0
WELCOME = (
    "You are talking to the agent. /help lists commands. Ctrl-C clears the line, or stops an\n"
    "answer; Ctrl-C or Ctrl-D at the empty prompt leaves."
)
AWAY = "While you were away:"
GOODBYE = "Goodbye."
DECIDING = ("approve", "deny")
NEXT = "{said!r} waits, and comes next."
LEFT_ALONE = "The agent is left to itself. What it says is shown when it has ended."
UNDECIDED = (
    "{id} is not decided: the agent waits on, until the time is over. To come back: {back}\n"
    "There you are asked again."
)
TOO_EARLY = "{said!r} was written before this question, and decides nothing."
UNFINISHED = "The agent is still at work. To see what it says: {back}"
DONE = "done"
REFUSED = "refused"
"""A command that was not obeyed: why not is its answer."""
LEFT = "left"
"""Whoever asked did not wait for it."""

T = TypeVar("T")


class Conversation:
    """One chat of a terminal. Everything that was shown is noted as collected."""

    def __init__(self, terminal: Terminal, seat: Seat, chat: str, back: str) -> None:
        """``back`` is the command that comes back to this chat."""
        self._terminal = terminal
        self._seat = seat
        self._page = seat.page
        self._chat = chat
        self._back = back
        self._turns: asyncio.Queue[tuple[str, Screen]] = asyncio.Queue()
        """Those that are still to be shown."""
        self._under_way = 0
        self._questions: list[Question] = []
        """About the confirmations that the turn waits for."""
        self._collecting = asyncio.Lock()
        """Held until what was handed in is answered or queued: nobody else shows the answer meanwhile."""
        self._showing: asyncio.Task[str] | None = None
        self._stopping: asyncio.Task[str] | None = None

    async def run(self) -> None:
        """Talk until the input ends or somebody leaves."""
        async with self._seat.listening():
            if self._seat.is_terminal:
                self._page.show(WELCOME)
            await self._catch_up(AWAY)
            await self._converse()
        if self._seat.is_terminal:
            with contextlib.suppress(OSError):  # the terminal may be gone
                self._page.show(GOODBYE)

    async def _converse(self) -> None:
        showing = asyncio.create_task(self._show_turns())
        try:
            self._invite()
            while await self._react(await self._hear(showing)):
                pass
        finally:
            await _end([each for each in (self._stopping, showing, self._showing) if each])

    async def _hear(self, showing: asyncio.Task[Any]) -> Written | Key | None:
        """What comes next; None when the showing has ended before that. What ended it is raised."""
        hearing = asyncio.create_task(self._seat.hear())
        try:
            await asyncio.wait({hearing, showing}, return_when=asyncio.FIRST_COMPLETED)
            if showing.done():
                showing.result()
                return None
            return hearing.result()
        finally:
            await _end({hearing})

    async def _react(self, heard: Written | Key | None) -> bool:
        """Whether the conversation goes on. A key does one thing."""
        match heard:
            case Written():
                await _completed(self._take(heard))
            case Key.INTERRUPT if self._under_way:
                self._stop()
            case Key.INTERRUPT:
                return False
            case Key.LEAVE:
                if self._questions:
                    self._page.show(UNDECIDED.format(id=self._questions[-1].id, back=self._back))
                elif self._under_way:
                    self._page.show(UNFINISHED.format(back=self._back))
                return False
        return True

    def _invite(self) -> None:
        asked = self._questions[-1].asking if self._questions else None
        self._seat.invite(busy=self._under_way > 0, asked=asked)

    async def _catch_up(self, heading: str | None = None) -> None:
        """Show what was said and nobody has seen, unless a turn is to be shown: it shows its own."""
        async with self._collecting:
            waiting = [] if self._under_way else await self._terminal.uncollected(self._chat)
            if not waiting:
                return
            if heading:
                self._page.aside(heading)
            screen = Screen(self._page)
            shown = [each for each in waiting if not await self._take_up(each)]
            for each in shown:
                screen.tell(each)
            await self._terminal.collected([each["id"] for each in shown], self._chat)

    async def _take_up(self, delivery: Plain) -> bool:
        """Follow the turn that asked for something while nobody was here: its question is asked again."""
        asked, turn_id = delivery["confirmation_id"], delivery["turn_id"]
        if not asked or not turn_id or not await self._open(asked):
            return False
        self._turns.put_nowait((turn_id, Screen(self._page)))
        self._under_way += 1
        return True

    async def _open(self, confirmation_id: str) -> Question | None:
        """What somebody can be asked about it. Nobody is asked where lines come from a program."""
        if not self._seat.is_terminal:
            return None
        try:
            return await Question.open(self._terminal, self._chat, confirmation_id)
        except errors.UnknownConfirmation:
            return None

    async def _take(self, said: Written) -> None:
        """Hand in a message. What answers a question goes no further; everything else is for the agent."""
        text = said.text.strip()
        try:
            if not await self._answer(text, said.asked) and text and await self._tell(text):
                self._questions = [each for each in self._questions if not _settles(text, each.id)]
        except errors.GatewayUnreachable:
            raise
        except errors.FrontdeskError as error:
            self._complain(error)
        self._invite()

    async def _answer(self, text: str, asked: Asking | None) -> bool:
        """Whether it was said to the question that stood there. What was said to an earlier one about the
        same request decides nothing."""
        question = self._questions[-1] if self._questions else None
        if question is None or asked is None or asked.id != question.id:
            return False
        if asked != question.asking:
            self._page.show(TOO_EARLY.format(said=text))
            return True
        told = await question.answer(text)
        if told:
            self._page.show(output.fitted(told))
        if question.is_decided and question in self._questions:
            self._questions.remove(question)
        return told is not None

    def _complain(self, error: errors.FrontdeskError) -> None:
        self._page.end()
        self._page.show(f"error: {one_line(error)}")

    async def _tell(self, text: str) -> bool:
        """Whether it was taken. Commands that need not wait are answered at once, the rest in its turn."""
        await self._catch_up()
        async with self._collecting:
            receipt = await self._terminal.accept(text, self._chat)
            screen = Screen(self._page, obeys=registry.parse(text) is not None)
            if self._under_way and text.startswith("/") and not receipt["waiting"]:
                return await self._show(self._terminal.follow(receipt["turn_id"]), screen) == DONE
            if receipt["waiting"] or self._under_way:
                await self._show_notices(text, receipt["turn_id"], screen)
            self._turns.put_nowait((receipt["turn_id"], screen))
            self._under_way += 1
            return True

    async def _show_notices(self, text: str, turn_id: str, screen: Screen) -> None:
        """What is said about something that is answered later."""
        waiting = await self._terminal.uncollected(self._chat)
        notices = [each for each in waiting if each["turn_id"] == turn_id]
        for each in notices:
            screen.tell(each)
        if not notices and self._under_way:
            screen.aside(NEXT.format(said=text))

    async def _show_turns(self) -> None:
        """Show the turns one after the other, for as long as the gateway answers."""
        while True:
            turn_id, screen = await self._turns.get()
            following = self._terminal.follow(turn_id)
            self._showing = asyncio.create_task(self._show(following, screen, asks=True))
            try:
                await asyncio.wait({self._showing})
                self._account(self._showing)
            finally:
                await _end({self._showing})
            self._page.end()
            self._under_way -= 1
            self._questions, self._showing = [], None
            await self._catch_up()
            self._invite()

    def _account(self, showing: asyncio.Task[str]) -> None:
        """Say what went wrong, unless the turn was left to itself."""
        if showing.cancelled():
            return
        error = showing.exception()
        if not isinstance(error, errors.FrontdeskError) or isinstance(error, errors.GatewayUnreachable):
            showing.result()
        else:
            self._complain(error)

    async def _show_asking(self, happened: Plain, screen: Screen) -> None:
        """What happens, and the question when it asks for something. What a turn that goes on asked for is
        decided."""
        question = await self._open(happened["id"]) if happened["type"] == "asked" else None
        screen.show(happened | {"text": question.text} if question else happened)
        if question:
            self._questions.append(question)
            self._invite()
        elif self._questions and happened["type"] in ("text", "call", "result", "end"):
            self._questions.clear()
            self._invite()

    def _stop(self) -> None:
        """Tell the agent to stop. Pressed again before it has, it is left to itself."""
        if self._stopping and not self._stopping.done() and self._showing:
            self._page.aside(LEFT_ALONE)
            self._showing.cancel()
        else:
            self._stopping = asyncio.create_task(self._obey(STOP))

    async def _obey(self, text: str) -> str:
        async with asyncio.timeout(STOP_SECONDS), self._collecting:
            return await self._show(
                self._terminal.say(text, self._chat, follow=True), Screen(self._page, obeys=True)
            )

    async def _show(
        self, happening: AsyncGenerator[Plain, None], screen: Screen, *, asks: bool = False
    ) -> str:
        """Show what happens in a turn; the state in which it ended."""
        async with aclosing(happening):
            async for happened in happening:
                if asks:
                    await self._show_asking(happened, screen)
                else:
                    screen.show(happened)
                if happened["type"] == "end":
                    said = [each["id"] for each in happened["deliveries"]]
                    await self._terminal.collected(said, self._chat)
                    state = str(happened["state"])
                    return REFUSED if state == DONE and happened["error"] else state
        raise errors.GatewayGone(path="the gateway", why="the turn did not end")

    async def ask_once(self, text: str, screen: Screen) -> str:
        """Say something, show what happens, and tell how it ended; Ctrl-C stops the agent."""
        async with self._seat.listening():
            showing = asyncio.create_task(
                self._show(self._terminal.say(text, self._chat, follow=True), screen)
            )
            try:
                heard = await self._hear(showing)
                if heard is None:
                    return showing.result()
                if heard is Key.INTERRUPT:
                    self._page.end()
                    stopping = asyncio.create_task(self._obey(STOP))
                    await asyncio.wait({showing, stopping}, timeout=STOP_SECONDS)
                    await _end({stopping})
                return LEFT
            finally:
                await _end({showing})


def _settles(text: str, confirmation_id: str) -> bool:
    """Whether a command that is taken ends the question, so that it is not asked again."""
    found = registry.parse(text)
    if found is None:
        return False
    command, argument = found
    decides = command.name in DECIDING and argument.split()[:1] == [confirmation_id]
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
