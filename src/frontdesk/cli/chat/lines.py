"""Lines of a pipe or a file, each a message; nobody is asked there."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from frontdesk.cli.chat.pages import PlainPage
from frontdesk.cli.chat.seats import Key, Said, signals

READ_BYTES = 64 * 1024


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

    async def hear(self) -> Said | Key:
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

    async def _read_line(self) -> Said | Key:
        await self._wanted.wait()
        while b"\n" not in self._unread and not self._ended:
            await self._readable()
            self._read()
        line, newline, self._unread = self._unread.partition(b"\n")
        return Said(_text(line)) if line or newline else Key.LEAVE

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
