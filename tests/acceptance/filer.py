"""A gateway whose platform is a folder with files in it, and that dies where it is told to.

    python -m tests.acceptance.filer FOLDER ['after:shelf.place']

In ``in`` lies a message for each file of ``blobs``; what is sent is added to ``sent``, a line each.
"""

import asyncio
import hashlib
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import msgspec
import uvloop

from frontdesk import GatewayConfig, Platform, SessionSource
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.app.sessions import SessionStore
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.contracts.channels import Capabilities, Desk, Incoming
from frontdesk.contracts.files import Shelf
from frontdesk.files import FileShelf
from frontdesk.model import deliveries, events
from frontdesk.model.chats import Attachment
from frontdesk.model.running import Running
from frontdesk.testing import crashes

LOOK_SECONDS = 0.02
PLATFORM = Platform.MATRIX


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """What arrived."""

    chat: str
    text: str
    digests: list[str]


class FolderChannel:
    name = str(PLATFORM)
    account = None
    capabilities = Capabilities(authenticates=True, most_files=1)
    routes = ()

    def __init__(self, folder: Path, crash: crashes.Crash) -> None:
        self._folder = folder
        self._crash = crash

    async def receive(self, desk: Desk) -> None:
        while True:
            for message in sorted((self._folder / "in").iterdir()):
                source = SessionSource(platform=PLATFORM, chat_id=message.name, user_id=message.name)
                files = (Attachment(id=message.name, name=f"{message.name}.txt"),)
                text = await asyncio.to_thread(message.read_text)
                await desk.accept(Incoming(source=source, text=text, event_id=message.name, files=files))
                message.unlink()
            await asyncio.sleep(LOOK_SECONDS)

    async def fetch(self, attachment: Attachment, most_bytes: int) -> AsyncGenerator[bytes, None]:
        with (self._folder / "blobs" / attachment.id).open("rb") as file:
            yield file.read(most_bytes)

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        self._crash.meet(crashes.When.BEFORE, "channel.send")
        paths = [Path(str(file.path)) for file in delivery.files]
        digests = [hashlib.sha256(await asyncio.to_thread(path.read_bytes)).hexdigest() for path in paths]
        copy = Copy(chat=str(delivery.to.chat_id), text=delivery.text, digests=digests)
        with (self._folder / "sent").open("ab") as sent:
            sent.write(msgspec.json.encode(copy) + b"\n")
        return deliveries.Sent()

    async def close(self) -> None:
        pass


class FragileAgent:
    """Dies before its answer, if that was ordered."""

    def __init__(self, crash: crashes.Crash) -> None:
        self._agent = scripted.Driver(scripted.Options())
        self._crash = crash

    @property
    def abilities(self) -> Abilities:
        return self._agent.abilities

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        async with aclosing(self._agent.run(turn, line)) as stream:
            async for event in stream:
                yield event
                self._crash.meet(crashes.When.AFTER, "agent.run")

    async def release(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        pass


async def main(folder: Path, order: str | None = None) -> None:
    crash = crashes.Crash(order)
    sessions = await SessionStore.open(f"sqlite:///{folder / 'state.db'}", GatewayConfig())
    fragile = SessionStore(crashes.fragile_store(sessions.store, crash), GatewayConfig())
    shelf: Any = crashes.Watched(FileShelf(folder / "files"), "shelf", ("write", "place"), crash)
    gateway = Gateway(
        fragile,
        FragileAgent(crash),
        [FolderChannel(folder, crash)],
        running=Running(),
        shelf=cast("Shelf", shelf),
    )
    async with gateway.started():
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), *sys.argv[2:]))
