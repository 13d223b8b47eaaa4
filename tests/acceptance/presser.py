"""A gateway whose platform is a file, where somebody presses the buttons, and that dies where it is told to.

    python -m tests.acceptance.presser FOLDER ['after:buttons.choose']

In ``sent`` is a line for everything that the platform was given.
"""

import asyncio
import math
import sys
from pathlib import Path

import msgspec
import uvloop

from frontdesk import GatewayConfig, Platform, SessionSource
from frontdesk.agents import scripted
from frontdesk.app.gateway import Gateway
from frontdesk.app.sessions import SessionStore
from frontdesk.contracts.channels import Capabilities, Desk, Incoming, Pressed
from frontdesk.model import deliveries
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from frontdesk.testing import crashes

LOOK_SECONDS = 0.02
PLATFORM = Platform.MATRIX
WISHES = {"colours": "!choose Which? Red, Blue", "files": "!approve remove_file"}
PRESSED = {"colours": "Red", "files": "Approve"}


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform was given, and which message it became."""

    delivery: str
    message: str
    chat: str
    text: str
    buttons: dict[str, str] = {}


def read(sent: Path) -> list[Given]:
    lines = sent.read_bytes().splitlines() if sent.exists() else []
    return [msgspec.json.decode(line, type=Given) for line in lines]


class PressingChannel:
    """Asks for what it wishes, and presses under what it gets, again after each start: events have ids."""

    name = str(PLATFORM)
    account = None
    capabilities = Capabilities(
        edits=True, most_buttons=8, reliable_sender_ids=True, idempotent_seconds=math.inf
    )
    routes = ()

    def __init__(self, folder: Path) -> None:
        self._sent = folder / "sent"

    async def receive(self, desk: Desk) -> None:
        for chat, text in WISHES.items():
            source = SessionSource(platform=PLATFORM, chat_id=chat, user_id="ann")
            await desk.accept(Incoming(source=source, text=text, event_id=f"wish-{chat}"))
        left = dict(PRESSED)
        while left:
            for given in read(self._sent):
                token = given.buttons.get(left.get(given.chat, ""))
                if token:
                    del left[given.chat]
                    root = SessionSource(
                        platform=PLATFORM, chat_id=given.chat, user_id="root", message_id=given.message
                    )
                    await desk.accept(Pressed(source=root, token=token, event_id=f"press-{given.chat}"))
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.Event().wait()

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        message = delivery.draft or f"m-{delivery.id}"
        given = Given(
            delivery=delivery.id,
            message=message,
            chat=delivery.to.chat_id,
            text=delivery.text,
            buttons={each.label: each.token for each in delivery.buttons},
        )
        with self._sent.open("ab") as sent:
            sent.write(msgspec.json.encode(given) + b"\n")
        return deliveries.Sent(message_id=message)

    async def draft(self, _: deliveries.Delivery) -> deliveries.Outcome:
        return deliveries.NotSent(why="answers are shown whole", hopeless=True)

    async def close(self) -> None:
        pass


async def main(folder: Path, order: str | None = None) -> None:
    crash = crashes.Crash(order)
    config = GatewayConfig(access={"matrix": Access(administrators=("root",), allow=("ann",))})
    sessions = await SessionStore.open(f"sqlite:///{folder / 'state.db'}", config)
    fragile = SessionStore(crashes.fragile_store(sessions.store, crash), config)
    channels = crashes.fragile_channels([PressingChannel(folder)], crash)
    gateway = Gateway(fragile, scripted.Driver(scripted.Options()), channels, running=Running())
    async with gateway.started():
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), *sys.argv[2:]))
