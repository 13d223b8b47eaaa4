"""A gateway whose platform is a folder that breaks off, asks for patience, and can be searched.

    python -m tests.acceptance.seeker FOLDER ['after:channel.send:7']

In ``in`` lie messages; what the platform takes is added to ``taken``, a line each.
"""

import asyncio
import random
import sys
from pathlib import Path

import msgspec
import uvloop

from frontdesk import GatewayConfig, Platform, SessionSource
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.app.sessions import SessionStore
from frontdesk.contracts.channels import Capabilities, Desk, Incoming
from frontdesk.flow import delivery, parts
from frontdesk.model import deliveries
from frontdesk.model.running import Running
from frontdesk.testing import crashes

LOOK_SECONDS = 0.02
SOON_SECONDS = 0.05
"""What is written into a file has arrived, and the platform is back at once."""
PLATFORM = Platform.MATRIX


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    delivery: str
    chat: str
    text: str


class FickleChannel:
    name = str(PLATFORM)
    account = None
    capabilities = Capabilities(authenticates=True, text_limit=30, send_pause_seconds=0.01)
    routes = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def receive(self, desk: Desk) -> None:
        while True:
            for message in sorted((self._folder / "in").iterdir()):
                chat = message.name.partition("-")[0]
                source = SessionSource(platform=PLATFORM, chat_id=chat, user_id=chat)
                text = await asyncio.to_thread(message.read_text)
                await desk.accept(Incoming(source=source, text=text, event_id=message.name))
                message.unlink()
            await asyncio.sleep(LOOK_SECONDS)

    async def send(self, answer: deliveries.Delivery) -> deliveries.Outcome:
        match random.randrange(8):
            case 0:
                return deliveries.NotSent(why="slow down", retry_after_seconds=0.05)
            case 1:
                return deliveries.NotSent(
                    why="wait, all of you", retry_after_seconds=0.05, whole_account=True
                )
            case 2:
                return deliveries.Unknown(why="cut off before it was taken")
            case fate:
                taken = Taken(delivery=answer.id, chat=answer.to.chat_id, text=answer.text)
                with (self._folder / "taken").open("ab") as platform:
                    platform.write(msgspec.json.encode(taken) + b"\n")
                return deliveries.Unknown(why="cut off") if fate == 3 else deliveries.Sent()

    async def find(self, answer: deliveries.Delivery) -> deliveries.Outcome:
        if not random.randrange(4):
            return deliveries.Unknown(why="away", retry_after_seconds=0.02)
        there = any(taken.delivery == answer.id for taken in read_taken(self._folder))
        return deliveries.Sent() if there else deliveries.NotSent(why="it is not there")

    async def close(self) -> None:
        pass


def read_taken(folder: Path) -> list[Taken]:
    file = folder / "taken"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(each, type=Taken) for each in lines]


async def main(folder: Path, order: str | None = None) -> None:
    parts.ARRIVAL_SECONDS = delivery.FIRST_PAUSE_SECONDS = SOON_SECONDS
    crash = crashes.Crash(order)
    sessions = await SessionStore.open(f"sqlite:///{folder / 'state.db'}", GatewayConfig())
    fragile = SessionStore(crashes.fragile_store(sessions.store, crash), GatewayConfig())
    channels = crashes.fragile_channels([FickleChannel(folder)], crash)
    agent = scripted.Driver(scripted.Options())
    async with Gateway(fragile, agent, channels, running=Running(busy_notice=False)).started():
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), *sys.argv[2:]))
