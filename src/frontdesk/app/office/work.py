"""What is asked about the gateway itself: what runs, what waits, what is wrong."""

import asyncio
import os
from importlib.metadata import version
from typing import TypedDict, cast

import msgspec

from frontdesk import errors
from frontdesk.app.health import find_troubles
from frontdesk.app.office.counters import Counter
from frontdesk.app.office.plain import Plain
from frontdesk.flow.authorization import Refusals

WORK_SECONDS = 10.0
"""How long a store in trouble is asked what it knows."""


class NamedChannel(TypedDict):
    """A channel that is served."""

    platform: str
    account: str | None


class RefusedMessages(TypedDict):
    """How many messages were refused, by why, since the gateway was started."""

    since: str
    counts: dict[str, int]


class ServedPort(TypedDict):
    """A port, or the owner's socket; how many connections it has and may have, and how many were cut off."""

    name: str
    connections: int
    most: int
    refused: dict[str, int]


class OwedCallbacks(TypedDict):
    """How many programs are still to be told of a decision."""

    owed: int
    overdue: int


class GatewayStatus(TypedDict):
    """What runs, and how much waits."""

    running: bool
    ready: bool
    troubles: list[str]
    warnings: list[str]
    node: int | None
    process: int | None
    version: str
    channels: list[NamedChannel]
    profiles: list[str]
    refused: RefusedMessages | None
    ports: list[ServedPort]
    turns: dict[str, int]
    """By their state."""
    held_back: int
    """Of those that wait, how many are suspects and wait for others."""
    deliveries: dict[str, int]
    """By their state."""
    callbacks: OwedCallbacks


class WorkCounter(Counter):
    async def status(self) -> GatewayStatus:
        """What runs, and how much waits."""
        gateway = self._gateway
        channels = gateway.parts.channels.values() if gateway else ()
        troubles = [trouble.why for trouble in await find_troubles(gateway)] if gateway else []
        known: Plain = {
            "running": gateway is not None,
            "ready": gateway is not None and not troubles,
            "troubles": troubles,
            "warnings": list(gateway.warnings()) if gateway else [],
            "node": gateway.node if gateway else None,
            "process": os.getpid() if gateway else None,
            "version": version("frontdesk"),
            "channels": [{"platform": str(channel.name), "account": channel.account} for channel in channels],
            "profiles": list(gateway.parts.connected.profiles) if gateway else [],
            "refused": _plain_refusals(gateway.parts.refusals) if gateway else None,
            "ports": msgspec.to_builtins(self._ports()),
        }
        work = await self._work() if not troubles or gateway is None else await self._work_in_trouble()
        return cast(GatewayStatus, known | work)

    async def count_requests(self) -> int:
        """How many requests wait for a decision."""
        return await self._store.confirmations.count_pending(self._clock.now())

    async def _work(self) -> Plain:
        return {
            "turns": await self._store.turns.counts(),
            "held_back": await self._store.turns.held_back(),
            "deliveries": await self._store.deliveries.counts(),
            "callbacks": msgspec.to_builtins(await self._store.confirmations.backlog(self._clock.now())),
        }

    async def _work_in_trouble(self) -> Plain:
        """What is known; a store in trouble may know nothing, and then the trouble has been said."""
        try:
            async with asyncio.timeout(WORK_SECONDS):
                return await self._work()
        except (errors.StoreError, TimeoutError):
            return {"turns": {}, "held_back": 0, "deliveries": {}, "callbacks": {"owed": 0, "overdue": 0}}


def _plain_refusals(refusals: Refusals) -> Plain:
    return {"since": refusals.since.isoformat(), "counts": dict(sorted(refusals.counts.items()))}
