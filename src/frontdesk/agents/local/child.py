"""The model's process as the driver sees it: started, spoken to over loopback, ended."""

import asyncio
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.formats import quoting
from frontdesk.logs import get_logger

log = get_logger(__name__)

SCRIPT = Path(__file__).with_name("server.py")
END_SECONDS = 3.0
MAX_COMPLAINT_BYTES = 2000
TOKEN_BYTES = 32


class Child:
    """A running model. It ends when it is closed, and when this process is gone, however that comes about."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._complaint = b""
        self._listener = asyncio.create_task(self._listen())
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.address = ""

    @classmethod
    async def start(cls, order: dict[str, Any], seconds: float) -> "Child":
        """Start it and wait until its model is loaded; AgentFailed when that does not work."""
        pipe = asyncio.subprocess.PIPE
        # By its path and without that in the search path: nothing of ours is loaded for it. In a session of
        # its own, so that a ^C in the terminal reaches this process alone.
        command = (sys.executable, "-P", str(SCRIPT))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        child = cls(process)
        try:
            await child._begin(order, seconds)
        except BaseException:
            await child.kill()
            raise
        log.info("local_model_started", pid=process.pid)
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def close(self) -> None:
        """Let it end by itself, or end it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        await self._listener

    async def complaint(self) -> str:
        """What it wrote last to its standard error, once it is dead."""
        await self.kill()
        return quoting.quote(self._complaint.decode("utf-8", "replace"))

    async def _begin(self, order: dict[str, Any], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                said = await self._exchange(order | {"token": self.token})
        except TimeoutError as error:
            why = f"the local model was not loaded after {seconds:g} seconds"
            raise errors.AgentFailed(why=why) from error
        if "address" not in said:
            why = f"the local model cannot be loaded: {quoting.quote(str(said.get('error') or 'it died'))}"
            raise errors.AgentFailed(why=f"{why} {await self.complaint()}")
        self.address = said["address"]

    async def _exchange(self, order: dict[str, Any]) -> dict[str, Any]:
        """Hand it the order and take its one line; an empty one when it died."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise errors.AgentFailed(why="the local model has no pipes")
        with suppress(ConnectionError):
            stdin.write(msgspec.json.encode(order) + b"\n")
            await stdin.drain()
        return msgspec.json.decode(await stdout.readline() or b"{}", type=dict[str, Any])

    async def _listen(self) -> None:
        """Take what it writes to its standard error, so that it never waits for us; keep the last of it."""
        stderr = self._process.stderr
        while stderr is not None and (piece := await stderr.read(MAX_COMPLAINT_BYTES)):
            self._complaint = (self._complaint + piece)[-MAX_COMPLAINT_BYTES:]
