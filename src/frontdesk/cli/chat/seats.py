"""A seat: where somebody, or a program, writes to the agent and reads what comes."""

import asyncio
import enum
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import NamedTuple

import click

from frontdesk.cli import output

ENDS = (signal.SIGTERM, signal.SIGHUP)
READ_BYTES = 64 * 1024


class Page:
    """Where everything is shown; all who write at the same time share it. This one shows each piece as it
    comes, without any styles."""

    def __init__(self, *, asides_to_stderr: bool = False) -> None:
        self._begun = False
        self._asides_to_stderr = asides_to_stderr

    def write(self, text: str) -> None:
        """A piece of an answer: the next one goes on where it ends."""
        if text:
            self._put(output.printable(text))
            self._begun = not text.endswith("\n")

    def end(self) -> None:
        """The answer is complete, or goes on elsewhere."""
        if self._begun:
            self._put("\n")
        self._begun = False

    def answer(self, text: str) -> None:
        """An answer of an agent as a whole."""
        self.show(text)

    def show(self, text: str, *, refused: bool = False) -> None:
        """Something of our own, exactly as it is."""
        self.end()
        self._put(f"{output.printable(text)}\n", err=refused and self._asides_to_stderr)

    def aside(self, text: str) -> None:
        """What goes on beside the answer."""
        self.end()
        self._put(f"· {output.printable(text)}\n", err=self._asides_to_stderr)

    def _put(self, text: str, *, err: bool = False) -> None:
        click.echo(text, nl=False, err=err)


class Asking(NamedTuple):
    """What somebody is asked at the moment about a confirmation."""

    id: str
    label: str
    """What stands before the line."""


class Written(NamedTuple):
    """A message, and what was being asked when it was written."""

    text: str
    asked: Asking | None = None


class Key(enum.Enum):
    INTERRUPT = "Ctrl-C, with nothing on the line"
    LEAVE = "Ctrl-D with nothing on the line, the end of the input, or the order to end"


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


class Seat(ABC):
    """What is written and pressed here, in the order of time."""

    is_terminal = False
    """Whether somebody sits here who can be asked."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._heard: asyncio.Queue[Written | Key] = asyncio.Queue()

    @abstractmethod
    def listening(self) -> AbstractAsyncContextManager[None]:
        """The input and the signals are ours for as long as the block lasts."""

    @abstractmethod
    def invite(self, *, busy: bool, asked: Asking | None = None) -> None:
        """Say what is waited for: the next message, the end of an answer, a decision about a confirmation.
        Whatever was written before decides nothing."""

    async def hear(self) -> Written | Key:
        """What comes next."""
        return await self._heard.get()

    def _interrupt(self) -> None:
        self._heard.put_nowait(Key.INTERRUPT)

    def _leave(self) -> None:
        self._heard.put_nowait(Key.LEAVE)


class Lines(Seat):
    """The next line is read when the answer to the one before is complete."""

    def __init__(self, page: Page, file: int = 0) -> None:
        super().__init__(page)
        self._file = file
        self._unread = b""
        self._ended = False
        self._wanted = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Nothing here blocks in a read, which an interrupt might not end."""
        reading = asyncio.create_task(self._read_lines())
        reading.add_done_callback(lambda _: self._leave())
        try:
            with signals(self._interrupt, self._leave):
                yield
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    def invite(self, *, busy: bool, asked: Asking | None = None) -> None:  # noqa: ARG002
        if busy:
            self._wanted.clear()
        else:
            self._wanted.set()

    async def _read_lines(self) -> None:
        while await self._wanted.wait():
            while b"\n" not in self._unread and not self._ended:
                await self._readable()
                self._read()
            line, newline, self._unread = self._unread.partition(b"\n")
            self._wanted.clear()  # until whoever hears this one invites another
            written = Written(line.decode("utf-8", "replace").rstrip("\r"))
            self._heard.put_nowait(written if line or newline else Key.LEAVE)

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
