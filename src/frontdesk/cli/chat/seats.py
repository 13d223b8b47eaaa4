"""A seat: where somebody, or a program, writes to the agent and reads what comes."""

import asyncio
import enum
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import NamedTuple, Protocol

from frontdesk.cli.chat.pages import Page

ENDS = (signal.SIGTERM, signal.SIGHUP)


class Said(NamedTuple):
    """A message, and the confirmation that was being asked for when it was written."""

    text: str
    asked: str | None = None


class Key(enum.Enum):
    INTERRUPT = "Ctrl-C, with nothing on the line"
    LEAVE = "Ctrl-D with nothing on the line, the end of the input, or the order to end"


class Seat(Protocol):
    @property
    def page(self) -> Page:
        """Where everything is shown."""
        ...

    @property
    def is_terminal(self) -> bool:
        """Whether somebody sits here who can be asked."""
        ...

    def listening(self) -> AbstractAsyncContextManager[None]:
        """The input and the signals are ours for as long as the block lasts."""
        ...

    def invite(self, *, busy: bool, asked: str | None = None) -> None:
        """Say what is waited for: the next message, the end of an answer, a decision about a confirmation.
        Whatever was written before decides nothing."""
        ...

    async def hear(self) -> Said | Key:
        """What comes next."""
        ...


@contextmanager
def signals(interrupt: Callable[[], None], leave: Callable[[], None]) -> Iterator[None]:
    """Hear them on the event loop, for as long as the block lasts."""
    loop = asyncio.get_running_loop()
    handlers = {signal.SIGINT: interrupt} | dict.fromkeys(ENDS, leave)
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handle in handlers.items():
        loop.add_signal_handler(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler or signal.SIG_DFL)
