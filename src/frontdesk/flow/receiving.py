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

log = get_logger(__name__)


class Receiving:
    """One channel on one node."""

    def __init__(self, parts: Parts, channel: Channel, node: int) -> None:
        self._parts = parts
        self._channel = channel
        self._taker = Taker(node=node, lease_seconds=parts.running.lease_seconds)
        self._lane = stream_lane(channel.name, channel.account)

    async def run(self) -> None:
        """The outermost door of a channel: when it fails, it is begun again."""
        about = {"channel": self._channel.name, "account": self._channel.account}
        while True:
            try:
                await self._receive()
            except errors.FrontdeskError as error:
                log.warning("channel_failed", **about, why=str(error))
            except Exception:
                log.exception("channel_failed", **about)
            await asyncio.sleep(RECEIVE_PAUSE_SECONDS)

    async def _receive(self) -> None:
        parts, channel = self._parts, self._channel
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
        log.warning("stream_lost", channel=self._channel.name, account=self._channel.account)
