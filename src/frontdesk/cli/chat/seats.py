"""A seat: where somebody, or a program, writes to the agent and reads what comes."""

import asyncio
import enum
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple, Protocol

import click

from frontdesk.cli import output

ENDS = (signal.SIGTERM, signal.SIGHUP)
READ_BYTES = 64 * 1024


class Page(Protocol):
    """All who write at the same time share it."""

    def write(self, text: str) -> None:
        """A piece of an answer: the next one goes on where it ends."""

    def end(self) -> None:
        """The answer is complete, or goes on elsewhere."""

    def answer(self, text: str) -> None:
        """An answer of an agent as a whole."""

    def show(self, text: str, *, refused: bool = False) -> None:
        """Something of our own, exactly as it is."""

    def aside(self, text: str) -> None:
        """What goes on beside the answer."""


class PlainPage:
    """Each piece as it comes, without any styles."""

    def __init__(self, *, asides_to_stderr: bool = False) -> None:
        self._begun = False
        self._asides_to_stderr = asides_to_stderr

    def write(self, text: str) -> None:
        if text:
            self._put(output.printable(text))
            self._begun = not text.endswith("\n")

    def end(self) -> None:
        if self._begun:
            self._put("\n")
        self._begun = False

    def answer(self, text: str) -> None:
        self.show(text)

    def show(self, text: str, *, refused: bool = False) -> None:
        self.end()
        self._put(f"{output.printable(text)}\n", err=refused and self._asides_to_stderr)

    def aside(self, text: str) -> None:
        self.end()
        self._put(f"· {output.printable(text)}\n", err=self._asides_to_stderr)

    def _put(self, text: str, *, err: bool = False) -> None:
        click.echo(text, nl=False, err=err)


class Written(NamedTuple):
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

    @property
    def is_terminal(self) -> bool:
        """Whether somebody sits here who can be asked."""

    def listening(self) -> AbstractAsyncContextManager[None]:
        """The input and the signals are ours for as long as the block lasts."""

    def invite(self, *, busy: bool, asked: str | None = None) -> None:
        """Say what is waited for: the next message, the end of an answer, a decision about a confirmation.
        Whatever was written before decides nothing."""

    async def hear(self) -> Written | Key:
        """What comes next."""


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


class Lines:
    """The next line is read when the answer to the one before is complete."""

    is_terminal = False

    def __init__(self, page: PlainPage, file: int = 0) -> None:
        self.page = page
        self._file = file
        self._unread = b""
        self._ended = False
        self._wanted = asyncio.Event()
        self._pressed: asyncio.Queue[Key] = asyncio.Queue()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        press = self._pressed.put_nowait
        with signals(lambda: press(Key.INTERRUPT), lambda: press(Key.LEAVE)):
            yield

    def invite(self, *, busy: bool, asked: str | None = None) -> None:  # noqa: ARG002
        if busy:
            self._wanted.clear()
        else:
            self._wanted.set()

    async def hear(self) -> Written | Key:
        """Nothing here blocks in a read, which an interrupt might not end."""
        reading = asyncio.create_task(self._read_line())
        pressing = asyncio.create_task(self._pressed.get())
        try:
            await asyncio.wait({reading, pressing}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                return pressing.result()
            if pressing.done():
                self._pressed.put_nowait(pressing.result())
            return reading.result()
        finally:
            reading.cancel()
            pressing.cancel()
            await asyncio.gather(reading, pressing, return_exceptions=True)

    async def _read_line(self) -> Written | Key:
        await self._wanted.wait()
        while b"\n" not in self._unread and not self._ended:
            await self._readable()
            self._read()
        line, newline, self._unread = self._unread.partition(b"\n")
        return Written(line.decode("utf-8", "replace").rstrip("\r")) if line or newline else Key.LEAVE

    async def _readable(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._file, ready.set)
        except PermissionError:
            return  # a plain file, which never keeps anybody waiting
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._file)

    def _read(self) -> None:
        try:
            read = os.read(self._file, READ_BYTES)
        except OSError:
            read = b""  # the terminal is gone
        self._unread += read
        self._ended = not read
