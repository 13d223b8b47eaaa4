"""Receiving: a channel hands messages to the desk. Where its platform has them for one reader, one of several
nodes does."""

import asyncio

from frontdesk import errors
from frontdesk.contracts.channels import Channel
from frontdesk.flow.intake import Intake
from frontdesk.flow.parts import Parts
from frontdesk.logs import get_logger
from frontdesk.model.lanes import Lease, Taker, stream_lane

LOOK_SECONDS = 2.0
"""How often a node that does not read looks whether it should."""
RENEWALS = 3
RECEIVE_PAUSE_SECONDS = 1.0
SETTLED_SECONDS = 10.0
"""So long a channel has to receive to count as one that works again."""
MOST_FAILURES = 2
"""How often in a row a channel may fail before that is told."""

log = get_logger(__name__)


class Receiving:
    """One channel on one node."""

    def __init__(self, parts: Parts, channel: Channel, node: int) -> None:
        self._parts = parts
        self.channel = channel
        self._taker = Taker(node=node, lease_seconds=parts.running.lease_seconds)
        self._lane = stream_lane(channel.name, channel.account)
        self._begun = parts.elapsed()
        self._failures = 0
        self._why = ""

    def trouble(self) -> str | None:
        """Why no messages come in, while the channel fails as often as it is begun."""
        return self._why if self._failures > MOST_FAILURES and not self._is_settled else None

    @property
    def _is_settled(self) -> bool:
        return self._parts.elapsed() - self._begun >= SETTLED_SECONDS

    async def run(self) -> None:
        """The outermost door of a channel: when it fails, it is begun again."""
        about = {"channel": self.channel.name, "account": self.channel.account}
        while True:
            self._begun = self._parts.elapsed()
            try:
                await self._receive()
            except errors.FrontdeskError as error:
                log.warning("channel_failed", **about, why=str(error))
                self._fail(str(error))
            except Exception as error:
                log.exception("channel_failed", **about)
                self._fail(f"it fails again and again ({type(error).__name__}); the log has more")
            await asyncio.sleep(RECEIVE_PAUSE_SECONDS)

    def _fail(self, why: str) -> None:
        self._failures = 1 if self._is_settled else self._failures + 1
        self._why = why

    async def _receive(self) -> None:
        parts, channel = self._parts, self.channel
        desk = Intake(parts, channel)
        if not channel.capabilities.reads_alone or parts.store.nodes.is_alone:
            await channel.receive(desk)
            return
        lease = await self._take()
        log.info("stream_taken", channel=channel.name, account=channel.account)
        reading = asyncio.create_task(channel.receive(desk))
        keeping = asyncio.create_task(self._keep(lease))
        try:
            await asyncio.wait({reading, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # What is read after another node has begun to is known again by its event: nothing is doubled.
            reading.cancel()
            keeping.cancel()
            ended = await asyncio.gather(reading, keeping, return_exceptions=True)
            await parts.store.cursors.release(lease)
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _take(self) -> Lease:
        while True:
            if lease := await self._parts.store.cursors.take(self._lane, self._taker):
                return lease
            await asyncio.sleep(LOOK_SECONDS)

    async def _keep(self, lease: Lease) -> None:
        """Returns when the lease is another node's, or may be: nobody else was told that we live."""
        seconds = self._taker.lease_seconds
        renewed = self._parts.elapsed()
        while self._parts.elapsed() - renewed < seconds:
            await asyncio.sleep(seconds / RENEWALS)
            asked = self._parts.elapsed()
            try:
                if lease not in await self._parts.store.turns.renew([lease], lease_seconds=seconds):
                    break
            except errors.StoreError as error:
                log.warning("store_troubled", lane=self._lane, why=str(error))
            else:
                renewed = asked
        log.warning("stream_lost", channel=self.channel.name, account=self.channel.account)
