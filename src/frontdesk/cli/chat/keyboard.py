"""The keyboard: lines and interrupts, both heard by the event loop, so that neither waits for the other.

Lines are edited by the terminal itself. Nothing here blocks in a read, which an interrupt might not end.
"""

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Awaitable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

READ_BYTES = 64 * 1024
ENDS = (signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


class Interrupted(Exception):
    """Somebody pressed Ctrl-C."""


class Leaving(Exception):
    """The program is to end: it was told so, or the terminal is closed."""


class Keyboard:
    def __init__(self, file: int = 0) -> None:
        self._file = file
        self._unread = b""
        self._ended = False
        self._interrupt = asyncio.Event()
        self._leaving = False

    @property
    def is_terminal(self) -> bool:
        return os.isatty(self._file) and sys.stdout.isatty()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The signals are ours for as long as the block lasts."""
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDS)}
        loop.add_signal_handler(signal.SIGINT, self._interrupt.set)
        for number in ENDS:
            loop.add_signal_handler(number, self.leave)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler or signal.SIG_DFL)

    def leave(self) -> None:
        """Leaving is raised wherever somebody waits, now and from now on."""
        self._leaving = True
        self._interrupt.set()

    def forget_interrupts(self) -> None:
        """What was pressed before does not count any more."""
        if not self._leaving:
            self._interrupt.clear()

    @property
    def has_line(self) -> bool:
        """Whether there is a line that was read and not given out yet."""
        return b"\n" in self._unread

    def forget_lines(self, answers: Collection[str]) -> list[str]:
        """Drop the lines that would answer what is asked now, and were written before; they are returned.
        Other lines stay. A line that was only begun is dropped, too: its end may be an answer."""
        while not self._ended and self._is_readable():
            self._read()
        with contextlib.suppress(termios.error):
            termios.tcflush(self._file, termios.TCIFLUSH)
        *lines, _ = self._unread.split(b"\n")
        dropped = [line for line in lines if _text(line).strip().lower() in answers]
        self._unread = b"".join(line + b"\n" for line in lines if line not in dropped)
        return [_text(line).strip() for line in dropped]

    def _is_readable(self) -> bool:
        ready, _, _ = select.select([self._file], [], [], 0)
        return bool(ready)

    async def unless_interrupted(self, work: Awaitable[T]) -> T:
        """Wait for the work. Interrupted when Ctrl-C comes first, or Leaving; a task goes on then."""
        doing = asyncio.ensure_future(work)
        interrupt = asyncio.ensure_future(self._interrupt.wait())
        try:
            await asyncio.wait({doing, interrupt}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            interrupt.cancel()
        if doing.done():
            return doing.result()
        if doing is not work:
            doing.cancel()
            await asyncio.wait({doing})
        self.forget_interrupts()
        raise Leaving if self._leaving else Interrupted

    async def read_line(self) -> str | None:
        """The next line; None at the end of the input."""
        while b"\n" not in self._unread and not self._ended:
            await self._readable()
            self._read()
        line, newline, self._unread = self._unread.partition(b"\n")
        return _text(line) if line or newline else None

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


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
