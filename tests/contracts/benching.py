"""What benches of channels have in common: a channel at work that can be started anew."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, TypeVar

from frontdesk.contracts.channels import Channel, Desk
from frontdesk.testing.channels import PlatformEvent
from tests import loopback

ChannelOf = TypeVar("ChannelOf", bound=Channel)
BenchOf = TypeVar("BenchOf", bound="ServedBench[Channel]")


class ServedBench(Generic[ChannelOf]):
    """A channel, its routes served, of a platform that a stand-in plays."""

    channel: ChannelOf
    url: str

    def __init__(self, make: Callable[[], ChannelOf], desk: Desk, port: int = 0) -> None:
        self._make, self._desk, self._port = make, desk, port
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        self.channel = self._make()
        serving = loopback.receiving(self.channel, self._desk, self._port)
        self.url = await self._stack.enter_async_context(serving)
        await self.connected()

    async def stop(self) -> None:
        await self._stack.aclose()

    async def connected(self) -> None:
        """Wait until the platform knows the channel."""

    async def happen(self, event: PlatformEvent) -> object:
        """Do on the platform what somebody does there."""
        raise NotImplementedError

    async def restart(self, *meanwhile: PlatformEvent) -> None:
        await self.stop()
        for event in meanwhile:
            await self.happen(event)
        await self.start()


@asynccontextmanager
async def started(bench: BenchOf) -> AsyncIterator[BenchOf]:
    try:
        await bench.start()
        yield bench
    finally:
        await bench.stop()
