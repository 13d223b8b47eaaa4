"""The program on a terminal that draws: what somebody sees on the screen of one."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte

from tests.acceptance.program import PATIENCE_SECONDS
from tests.acceptance.terminals import Seat, seated

COLUMNS, ROWS = 80, 30
ENTER, ALT_ENTER, TAB = "\r", "\x1b\r", "\t"
UP, DOWN, LEFT = "\x1b[A", "\x1b[B", "\x1b[D"
DRAWS = {"TERM": "xterm-256color"}


class Screen:
    """A terminal of so many columns and rows; what scrolls away is gone."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.written = b""
        """Every byte that the program wrote."""
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.resize(COLUMNS, ROWS)

    def resize(self, columns: int, rows: int) -> None:
        self.seat.set_size(columns, rows)
        self._screen.resize(rows, columns)

    def type(self, text: str) -> None:
        self.seat.type(text)

    def paste(self, text: str) -> None:
        self.seat.type(f"\x1b[200~{text}\x1b[201~")

    @property
    def lines(self) -> list[str]:
        """What is to be read, from the top down."""
        return [line.rstrip() for line in self._screen.display if line.strip()]

    @property
    def last(self) -> str:
        return self.lines[-1] if self.lines else ""

    def wait(self, seen: Callable[["Screen"], bool]) -> list[str]:
        """Look until it is seen; fails when the program ends or falls silent before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not seen(self):
            piece = self.seat.read(deadline)
            assert piece, f"the program ended or fell silent, and this is seen: {self.lines[-5:]}"
            self.written += piece
            self._stream.feed(piece)
        return self.lines

    def wait_for(self, text: str) -> list[str]:
        return self.wait(lambda screen: any(text in line for line in screen.lines))

    def wait_for_line(self, line: str) -> list[str]:
        return self.wait(lambda screen: line in screen.lines)

    def wait_for_prompt(self, typed: str = "") -> list[str]:
        """Until the last line is the prompt with that on it, and no turn is under way."""
        return self.wait(lambda screen: screen.last == f"> {typed}".rstrip() and not screen.is_working)

    @property
    def is_working(self) -> bool:
        return any(line.startswith("· working") for line in self.lines)


@contextlib.contextmanager
def watched(home: Path, *arguments: str, **more: str) -> Iterator[Screen]:
    with seated(home, *arguments, **(DRAWS | more)) as seat:
        yield Screen(seat)
