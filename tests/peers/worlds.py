"""Our account on a Matrix homeserver, the people around it, and the channel at work."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from frontdesk.channels.matrix import Channel, Options
from frontdesk.testing.channels import RecordingDesk
from tests import peers
from tests.patience import LOOK_SECONDS, PATIENCE_SECONDS
from tests.peers.people import Person
from tests.peers.synapse import Homeserver

SECOND_CLIENT = Path(peers.__file__).with_name("second_client.py")


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def receiving(channel: Channel, desk: RecordingDesk) -> AsyncIterator[asyncio.Task[None]]:
    """The channel at work, once it has read the homeserver for the first time."""
    task = asyncio.create_task(channel.receive(desk))
    try:
        await until(lambda: task.done() or (desk.read_until and channel.trouble() is None))
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class World:
    """Our account, two people, and two rooms that began as direct chats, where a test asks for them."""

    def __init__(self, us: Person, ann: Person, bob: Person) -> None:
        self.us, self.ann, self.bob = us, ann, bob

    @cached_property
    def rooms(self) -> list[str]:
        rooms = [self.room(), self.room()]
        self.us.call("PUT", f"/user/{self.us.user_id}/account_data/m.direct", {self.ann.user_id: rooms})
        return rooms

    def room(self, **more: Any) -> str:
        room = self.ann.create_room(self.us.user_id, self.bob.user_id, **more)
        for each in (self.us, self.bob):
            each.join(room)
        return room

    def person(self, user_id: str) -> Person:
        return next(each for each in (self.us, self.ann, self.bob) if each.user_id == user_id)

    def options(self, url: str, home: Path, **more: Any) -> Options:
        given: dict[str, Any] = {"timeout_seconds": 5.0, "encryption": False, "home": str(home)} | more
        return Options(homeserver=url, access_token=lambda: self.us.account.token, **given)


def new_world(server: Homeserver) -> World:
    return World(*(Person(server, server.register(name)) for name in ("desk", "ann", "bob")))


@asynccontextmanager
async def at_work(
    world: World, url: str, home: Path, **more: Any
) -> AsyncIterator[tuple[Channel, RecordingDesk]]:
    channel, desk = Channel(world.options(url, home, **more)), RecordingDesk()
    async with receiving(channel, desk):
        yield channel, desk


class SecondClient:
    """Somebody whose program is another one."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def tell(self, *order: str) -> None:
        assert self._process.stdin
        self._process.stdin.write((json.dumps(order) + "\n").encode())
        await self._process.stdin.drain()

    async def hears(self) -> Any:
        assert self._process.stdout
        async with asyncio.timeout(PATIENCE_SECONDS):
            return json.loads(await self._process.stdout.readline())


@asynccontextmanager
async def second_client(person: Person, url: str, folder: Path) -> AsyncIterator[SecondClient]:
    account, python = person.account, peers.require("nio") / "python"
    given = (url, account.user_id, account.token, account.device_id, str(folder))
    process = await asyncio.create_subprocess_exec(
        python, SECOND_CLIENT, *given, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        client = SecondClient(process)
        while await client.hears() != "ready":
            pass  # what was said before
        yield client
    finally:
        process.kill()
        await process.wait()
