"""What benches of channels have in common: a channel at work that can be started anew."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Generic, TypeVar

from frontdesk.contracts.channels import Channel, Desk
from frontdesk.testing.channels import PlatformEvent, Trouble
from tests import loopback
from tests.patience import PATIENCE_SECONDS

IMPATIENT_SECONDS = 3.0

ChannelOf = TypeVar("ChannelOf", bound=Channel)
BenchOf = TypeVar("BenchOf", bound="ServedBench[Any]")


class ServedBench(Generic[ChannelOf]):
    """A channel, its routes served. It is patient, for a busy machine; while the platform hangs, what is sent
    goes through another one that is not."""

    url: str

    def __init__(self, make: Callable[[float], ChannelOf], desk: Desk, port: int = 0) -> None:
        """A channel is made with the seconds that a call may take."""
        self._make, self._desk, self._port = make, desk, port
        self._stack = AsyncExitStack()
        self._receiving = make(PATIENCE_SECONDS)
        self._impatient: ChannelOf | None = None

    @property
    def channel(self) -> ChannelOf:
        return self._impatient or self._receiving

    async def start(self) -> None:
        serving = loopback.receiving(self._receiving, self._desk, self._port)
        self.url = await self._stack.enter_async_context(serving)
        await self.connected()

    async def stop(self) -> None:
        await self.face(None)
        await self._stack.aclose()

    async def connected(self) -> None:
        """Wait until the platform knows the channel."""

    async def face(self, trouble: Trouble | None) -> None:
        impatient, self._impatient = self._impatient, None
        if impatient:
            await impatient.close()
        if trouble is Trouble.HANGS:
            self._impatient = self._make(IMPATIENT_SECONDS)

    async def happen(self, event: PlatformEvent) -> object:
        """Do on the platform what somebody does there."""
        raise NotImplementedError

    async def restart(self, *meanwhile: PlatformEvent) -> None:
        await self.stop()
        for event in meanwhile:
            await self.happen(event)
        self._receiving = self._make(PATIENCE_SECONDS)
        await self.start()


@asynccontextmanager
async def started(bench: BenchOf) -> AsyncIterator[BenchOf]:
    try:
        await bench.start()
        yield bench
    finally:
        await bench.stop()
