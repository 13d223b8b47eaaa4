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
from frontdesk.processes import Group, Pipes

log = get_logger(__name__)

SCRIPT = Path(__file__).with_name("server.py")
END_SECONDS = 3.0
LAST_SECONDS = 10.0
"""How long the end of a killed model and of its last words is waited for."""
MAX_COMPLAINT_BYTES = 2000
TOKEN_BYTES = 32


class Child:
    """A running model. It ends when it is closed, and when this process is gone, however that comes about."""

    def __init__(self, group: Group, pipes: Pipes) -> None:
        self._group = group
        self._pipes = pipes
        self._complaint = b""
        self._listener = asyncio.create_task(self._listen())
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.address = ""

    @classmethod
    async def start(cls, order: dict[str, Any], seconds: float) -> "Child":
        """Start it and wait until its model is loaded; AgentFailed when that does not work."""
        # By its path and without that in the search path: nothing of ours is loaded for it.
        group = Group.start((sys.executable, "-P", str(SCRIPT)))
        child = cls(group, await Pipes.open(group))
        try:
            await child._begin(order, seconds)
        except BaseException:
            await child.kill()
            raise
        log.info("local_model_started", pid=group.pid)
        return child

    @property
    def pid(self) -> int:
        return self._group.pid

    @property
    def alive(self) -> bool:
        return not self._group.exited.is_set()

    async def close(self) -> None:
        """Let it end by itself, or end it."""
        self._pipes.stdin.close()
        await self._group.ends_within(END_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        await self._pipes.end(self._group, self._listener, LAST_SECONDS, LAST_SECONDS)

    async def complaint(self) -> str:
        """What it wrote last to its standard error, once it is dead."""
        await self.kill()
        return quoting.quote(self._complaint.decode("utf-8", "replace"))

    async def _begin(self, order: dict[str, Any], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                with suppress(ConnectionError):
                    self._pipes.stdin.write(msgspec.json.encode(order | {"token": self.token}) + b"\n")
                    await self._pipes.stdin.drain()
                said = msgspec.json.decode(await self._pipes.stdout.readline() or b"{}", type=dict[str, Any])
        except TimeoutError as error:
            why = f"the local model was not loaded after {seconds:g} seconds"
            raise errors.AgentFailed(why=why) from error
        if "address" not in said:
            why = f"the local model cannot be loaded: {quoting.quote(str(said.get('error') or 'it died'))}"
            raise errors.AgentFailed(why=f"{why} {await self.complaint()}")
        self.address = said["address"]

    async def _listen(self) -> None:
        """Take what it writes to its standard error, so that it never waits for us; keep the last of it."""
        while piece := await self._pipes.stderr.read(MAX_COMPLAINT_BYTES):
            self._complaint = (self._complaint + piece)[-MAX_COMPLAINT_BYTES:]
