"""Taking a mail apart, within bounds: anybody can write one that the library would be busy with for hours."""

from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from functools import partial
from typing import Any

MOST_LINES = 600_000
MOST_PARTS = 1_000
MOST_HEADERS = 5_000
"""Of all parts together."""
MOST_DEPTH = 20
MOST_HEADER_CHARACTERS = 20_000
MOST_CONTENT_CHARACTERS = 2_000
"""Of a header that says what a part is: the time that it takes to read one grows with its square."""


class TooMuch(ValueError):
    """The mail has more of something than anybody needs."""


class _Budget:
    """What is left for one mail."""

    def __init__(self) -> None:
        self.parts, self.headers = MOST_PARTS, MOST_HEADERS


class _Part(Message):
    """A part of a mail that is only so large, and so deep inside others."""

    def __init__(self, budget: _Budget, policy: Any = compat32) -> None:
        super().__init__(policy=policy)
        self._budget, self._depth = budget, 0
        budget.parts -= 1
        if budget.parts < 0:
            raise TooMuch(f"it has more than {MOST_PARTS} parts")

    def attach(self, payload: Any) -> None:
        payload._depth = self._depth + 1
        if payload._depth > MOST_DEPTH:
            raise TooMuch("its parts are nested too deeply")
        super().attach(payload)

    def set_raw(self, name: str, value: Any) -> None:
        self._budget.headers -= 1
        if self._budget.headers < 0:
            raise TooMuch(f"it has more than {MOST_HEADERS} headers")
        most = MOST_CONTENT_CHARACTERS if name[:8].lower() == "content-" else MOST_HEADER_CHARACTERS
        super().set_raw(name, value[:most])


def parse(raw: bytes) -> Message:
    """The mail. TooMuch for one that is made to be hard."""
    if raw.count(b"\n") + raw.count(b"\r") > 2 * MOST_LINES:
        raise TooMuch(f"it has more than {MOST_LINES} lines")
    return BytesParser(partial(_Part, _Budget()), policy=compat32).parsebytes(raw)
