"""A program that writes down what is said in a recording."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from frontdesk import errors
from frontdesk.logs import get_logger
from frontdesk.processes import Group

MAX_OUTPUT_BYTES = 64 * 1024
MAX_ERROR_BYTES = 4096
CHUNK_BYTES = 64 * 1024
LAST_SECONDS = 2.0

log = get_logger(__name__)


class CommandTranscriber:
    """Runs the program with the path as its last argument, and the facts as JSON on its standard input; what
    it writes to its standard output is the text."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = tuple(command)
        self._seconds = seconds

    async def transcribe(self, path: Path, kind: str) -> str:
        told = msgspec.json.encode({"event": "transcribe", "path": str(path), "kind": kind})
        try:
            group = await Group.start([*self._command, str(path)])
        except (OSError, ValueError) as error:
            log.warning("transcriber_not_started", program=self._command[0], why=str(error))
            raise errors.FileUnavailable(why="what transcribes cannot be started") from error
        output, said = bytearray(), bytearray()
        reading = asyncio.create_task(_read_both(group, output, said))
        try:
            # A program that does not read its input is no error.
            group.stdin.write(told)
            group.stdin.close()
            in_time = await group.ends_within(self._seconds)
        finally:
            await group.kill(reading, LAST_SECONDS, LAST_SECONDS)
        return self._result(group.code if in_time else None, bytes(output), bytes(said))

    def _result(self, code: int | None, output: bytes, said: bytes) -> str:
        text = output.decode(errors="replace").replace("\0", " ").strip()
        if code == 0 and text:
            return text
        why = "nothing was heard" if code == 0 else f"exit code {code}"
        why = f"it took more than {self._seconds:g} seconds" if code is None else why
        words = said.decode(errors="replace").strip() or None
        log.warning("transcription_failed", program=self._command[0], why=why, output=words)
        raise errors.FileUnavailable(why=why if code in (0, None) else "what transcribes failed")


async def _read_both(group: Group, output: bytearray, said: bytearray) -> None:
    await asyncio.gather(
        _read(group.stdout, output, MAX_OUTPUT_BYTES), _read(group.stderr, said, MAX_ERROR_BYTES)
    )


async def _read(stream: asyncio.StreamReader, kept: bytearray, most: int) -> None:
    """Keep the beginning of what a program writes."""
    while chunk := await stream.read(CHUNK_BYTES):
        kept += chunk[: most - len(kept)]
