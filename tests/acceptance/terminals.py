"""The program on a terminal of its own, as somebody sits at it."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from tests.acceptance import forks
from tests.acceptance.program import FRONTDESK, PATIENCE_SECONDS, environment

CTRL_C, CTRL_D = "\x03", "\x04"


class Seat:
    """What is typed goes to the program as from a keyboard; what it writes is read as from a screen."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self._screen = screen
        self._unread = b""

    def type(self, text: str) -> None:
        """A terminal takes a few thousand bytes at a time, and the rest when the program has read them."""
        rest = text.encode()
        while rest:
            rest = rest[os.write(self._screen, rest) :]

    def set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, text: str) -> str:
        """What is written up to and with a text; fails when the program ends or falls silent before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text.encode() not in self._unread:
            piece = self.read(deadline)
            assert piece, f"the program ended or fell silent after {self._unread.decode(errors='replace')!r}"
            self._unread += piece
        end = self._unread.index(text.encode()) + len(text.encode())
        read, self._unread = self._unread[:end], self._unread[end:]
        return read.decode()

    def finish(self) -> tuple[int, str]:
        """Its exit code and what it wrote last; fails when it does not end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while piece := self.read(deadline):
            self._unread += piece
        return self.process.wait(PATIENCE_SECONDS), self._unread.decode(errors="replace")

    def read(self, deadline: float) -> bytes:
        """What is written next; nothing when the program has ended, or is silent until then."""
        ready, _, _ = select.select([self._screen], [], [], max(0.0, deadline - time.monotonic()))
        try:
            return os.read(self._screen, 65_536) if ready else b""
        except OSError:  # nobody is left on the other side
            return b""


@contextlib.contextmanager
def seated(home: Path, *arguments: str, **more: str) -> Iterator[Seat]:
    """Start the program on a terminal; it does not outlive the block."""
    screen, seat = pty.openpty()
    process = forks.popen_seated(
        [FRONTDESK, *arguments],
        stdin=seat,
        stdout=seat,
        stderr=seat,
        env=environment(home, **more),
        cwd=home,
    )
    os.close(seat)
    try:
        yield Seat(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)
