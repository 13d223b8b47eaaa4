"""Where the bytes of files lie, and who writes down what is heard in them."""

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec


class Shelved(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that are on disk, and not yet found by their digest."""

    digest: str
    size: int
    head: bytes
    """The first of them, by which their kind is known."""
    written: Path
    """Where they lie until they are put in their place."""


class Shelf(Protocol):
    """Bytes by their digest, each once. What it cannot do for want of room is a `FileUnavailable`."""

    async def write(self, pieces: AsyncIterator[bytes], most_bytes: int) -> Shelved:
        """Write bytes down; FileUnavailable when there are more than so many."""

    async def copy(self, path: str, working_dir: str, most_bytes: int) -> Shelved:
        """The same of a file in a working directory, wherever links lead. FileUnavailable when it is outside,
        none that can be read, or one of ours."""

    async def place(self, shelved: Shelved) -> None:
        """From now on they are found, whatever happens to the machine."""

    def find(self, digest: str) -> Path | None:
        """Where the bytes are, if they are here."""

    async def read(self, digest: str, most_bytes: int) -> bytes | None:
        """The first bytes of a file; None when it is not here."""

    def pieces(self, digest: str) -> AsyncGenerator[bytes, None]:
        """All the bytes of a file, piece by piece. UnknownFile when it is not here."""

    async def remove(self, digest: str) -> None:
        """Forget the bytes; nothing when they are not here."""

    async def stale(self, before: datetime) -> list[str]:
        """The digests of what was put in its place, or put there again, before that time. What was left
        unfinished until then is removed."""


class Transcriber(Protocol):
    async def transcribe(self, path: Path, kind: str) -> str:
        """What is said in a recording. FileUnavailable when that cannot be told, or not in time."""
