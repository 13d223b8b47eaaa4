"""Whether messages are taken in and worked on, and if not, why: by what really happens to them."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from frontdesk import errors
from frontdesk.contracts.channels import Channel, Watchful

if TYPE_CHECKING:
    from frontdesk.app.gateway import Gateway

STORE_SECONDS = 1.0
NOT_RUNNING = "The gateway takes no messages: it is starting or shutting down."
SLOW = f"The store did not answer within {STORE_SECONDS:.0f} second."


class HealthTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why messages are refused, or not worked on."""

    why: str
    """For the owner: what it is about, and what to do."""
    outside: str
    """For anybody: no name, no path."""
    channel: Channel | None = None
    """The one that it is about; None for the store and the gateway itself."""
    cause: str = ""
    """What is wrong with that."""


async def find_troubles(gateway: "Gateway") -> list[HealthTrouble]:
    """Everything that keeps the gateway from being ready; nothing when it is."""
    if not gateway.ready:
        return [HealthTrouble(why=NOT_RUNNING, outside=NOT_RUNNING)]
    return [*await _store_troubles(gateway), *_channel_troubles(gateway)]


async def standing(gateway: "Gateway") -> frozenset[str]:
    """What is not as it should be here, and which other nodes are there no more, in words that change only
    when that does."""
    troubles = {each.outside for each in await find_troubles(gateway)}
    nodes = gateway.parts.store.nodes
    try:
        async with asyncio.timeout(STORE_SECONDS):
            seen = [] if nodes.is_alone else await nodes.census()
    except (TimeoutError, errors.StoreError):  # which is among the troubles
        seen = []
    lost = {f"{each.number} {bool(each.held)}" for each in seen if not each.alive and each.stopped_at is None}
    return frozenset(troubles | lost)


async def _store_troubles(gateway: "Gateway") -> list[HealthTrouble]:
    store = gateway.parts.store
    try:
        async with asyncio.timeout(STORE_SECONDS):
            await store.check()
            await store.sessions.count(1)
    except TimeoutError:
        return [HealthTrouble(why=SLOW, outside=SLOW)]
    except errors.StoreError as error:
        return [HealthTrouble(why=str(error), outside=f"No message can be stored: {error.outside}.")]
    return []


def _channel_troubles(gateway: "Gateway") -> Iterator[HealthTrouble]:
    for receiving in gateway.receivings:
        channel = receiving.channel
        why = (channel.trouble() if isinstance(channel, Watchful) else None) or receiving.trouble()
        if why is not None:
            name = name_of(channel)
            outside = f"The channel {name} takes no messages: it is not set up rightly."
            told = f"The channel {name} takes no messages: {why}"
            yield HealthTrouble(why=told, outside=outside, channel=channel, cause=why)


def name_of(channel: Channel) -> str:
    return f"{channel.name}@{channel.account}" if channel.account else str(channel.name)
