"""Running git: its own store, no configuration of anybody, no hooks, a bound on everything."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from pathlib import Path

from frontdesk import errors
from frontdesk.processes import Group
from frontdesk.snapshots.folders import in_thread

BATCH_BYTES = 1024 * 1024
MAX_STDERR_CHARACTERS = 2_000
SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.fsync": "committed",
    "core.compression": "1",
    "core.logAllRefUpdates": "false",
    "core.sharedRepository": "0600",
    "fastimport.unpackLimit": "1",
    "gc.auto": "0",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "pack.windowMemory": "64m",
    "protocol.allow": "never",
}
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "PATH": os.defpath,
}
NOBODY = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in (("NAME", "frontdesk"), ("EMAIL", "frontdesk@localhost"))
}


class Git:
    """git over one bare store. Every process holds the store's lock until it ends."""

    def __init__(self, program: str, folder: Path, seconds: float, lock: int) -> None:
        self._program = program
        self._folder = folder
        self._seconds = seconds
        self._lock = lock

    async def run(self, *args: str, data: bytes = b"") -> bytes:
        """What the command prints, when it succeeds."""
        async with self._started(args) as process:
            return await process.talk(iter([data]))

    async def read_up_to(self, limit: int, *args: str) -> tuple[bytes, bool]:
        """The beginning of what the command prints, and whether there is more."""
        async with self._started(args) as process:
            process.stdin.close()
            try:
                printed = await process.stdout.readexactly(limit + 1)
            except asyncio.IncompleteReadError as error:
                await process.check(await process.stderr.read())
                return error.partial, False
            return printed[:limit], True

    async def import_blobs(self, pieces: Generator[bytes, None, None]) -> None:
        """Store blobs, which are made in a thread while git packs the ones before."""
        args = ("fast-import", "--quiet", "--done", "--date-format=raw")
        async with self._started(args) as process:
            with closing(pieces):
                await process.talk(pieces)

    def objects(self) -> AbstractAsyncContextManager["GitCommand"]:
        """A way to read objects one after the other."""
        return self._started(("cat-file", "--batch"))

    @asynccontextmanager
    async def _started(self, args: tuple[str, ...]) -> AsyncIterator["GitCommand"]:
        program = shutil.which(self._program)
        if program is None:
            raise errors.GitMissing(program=self._program)
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        env = ENVIRONMENT | NOBODY | {"GIT_DIR": str(self._folder), "HOME": str(self._folder)}
        try:
            process = await GitCommand.start(
                (program, *settings, *args), cwd=self._folder, env=env, pass_fds=(self._lock,)
            )
        except OSError as error:
            raise errors.GitFailed(command=args[0], why=error.strerror or error) from error
        process.name = args[0]
        try:
            async with asyncio.timeout(self._seconds):
                yield process
        except TimeoutError:
            why = f"it took more than {self._seconds:g} seconds"
            raise errors.GitFailed(command=args[0], why=why) from None
        finally:
            process.signal(signal.SIGKILL)
            await process.exited.wait()
            process.close()


class GitCommand(Group):
    """A running git."""

    name = ""

    async def talk(self, pieces: Iterator[bytes]) -> bytes:
        """Tell it everything and take its answer, when it succeeds."""
        said = asyncio.gather(self.stdout.read(), self.stderr.read())
        try:
            await _feed(self.stdin, pieces)
            printed, complaint = await said
        finally:
            said.cancel()
        await self.check(complaint)
        return printed

    async def check(self, complaint: bytes) -> None:
        """Wait for its end; GitFailed when it did not succeed."""
        await self.exited.wait()
        if self.code:
            said = complaint.decode("utf-8", "replace").strip()[:MAX_STDERR_CHARACTERS]
            raise errors.GitFailed(command=self.name, why=said or f"it ended with {self.code}")

    async def chunks(self, name: str) -> AsyncIterator[bytes]:
        """The contents of an object, from git that gives them one after the other; read to their end."""
        if not self.stdin.transport.is_closing():
            self.stdin.write(f"{name}\n".encode("ascii"))
        header = (await self.stdout.readline()).decode("ascii", "replace").split()
        if len(header) != len(("name", "type", "size")):
            raise errors.GitFailed(command="cat-file", why=f"the store lacks {name}")
        left = int(header[-1])
        while left:
            chunk = await self.stdout.read(min(left, BATCH_BYTES))
            if not chunk:
                raise errors.GitFailed(command="cat-file", why=f"it ended within {name}")
            left -= len(chunk)
            yield chunk
        await self.stdout.readline()

    async def read(self, name: str) -> bytes:
        return b"".join([chunk async for chunk in self.chunks(name)])


def _take_batch(pieces: Iterator[bytes]) -> bytes:
    """The next pieces, of about one batch together; nothing at the end."""
    batch = bytearray()
    for piece in pieces:
        batch += piece
        if len(batch) >= BATCH_BYTES:
            break
    return bytes(batch)


async def _feed(stdin: asyncio.StreamWriter, pieces: Iterator[bytes]) -> None:
    """Hand it all over, unless the command goes away before: then its exit tells why."""
    with suppress(BrokenPipeError, ConnectionResetError):
        while batch := await in_thread(_take_batch, pieces):
            if stdin.transport.is_closing():
                break
            stdin.write(batch)
            await stdin.drain()
    stdin.close()
