"""What was written at the prompt, kept for the next time in a file for its owner alone."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from prompt_toolkit.history import History

FILE = "chat_history"
MAX_ENTRIES = 1_000
MAX_ENTRY_CHARACTERS = 20_000
"""A longer message is not kept: nobody looks for it with the arrow keys."""


class KeptHistory(History):
    """A text in each line, as JSON. A file that cannot be read or written is none: the chat goes on."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        entries = self._read()
        if len(entries) > 2 * MAX_ENTRIES:
            fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            with contextlib.suppress(OSError):
                _write(fresh, os.O_TRUNC, entries[-MAX_ENTRIES:])
                fresh.replace(self._file)
        return [text for text in map(_text, reversed(entries[-MAX_ENTRIES:])) if text]

    def store_string(self, string: str) -> None:
        if len(string) <= MAX_ENTRY_CHARACTERS:
            with contextlib.suppress(OSError):
                _write(
                    self._file, os.O_APPEND, [msgspec.json.encode(string.encode("utf-8", "replace").decode())]
                )

    def _read(self) -> list[bytes]:
        try:
            return self._file.read_bytes().splitlines()
        except OSError:
            return []


def _text(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=str)
    except msgspec.MsgspecError:
        return None


def _write(file: Path, mode: int, lines: list[bytes]) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | mode, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        os.fchmod(descriptor, 0o600)
        opened.write(b"".join(line + b"\n" for line in lines))
