"""What is asked about the gateway's condition: queues, leases, nodes, channels, the store."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from typing import TypedDict, cast

from frontdesk import errors
from frontdesk.app.health import HealthTrouble, find_troubles
from frontdesk.app.office.deliveries import DeliveryCounter, OverduePlatform
from frontdesk.app.office.plain import Plain, picked
from frontdesk.app.office.turns import TurnCounter, TurnCounts
from frontdesk.model.confirmations import Confirmation, Status
from frontdesk.model.health import NodeSeen

ASKED_SECONDS = 10.0
"""How long a store in trouble is asked what it knows."""
MOST_REQUESTS = 100
"""Of what waits for a decision, so many are looked at."""
MOST_GONE = 3
"""Of nodes that are there no more, so many are told of."""
NO_TURNS: TurnCounts = {"queued": 0, "running": 0, "waiting": 0, "set_aside": 0, "oldest_at": None}

NO_REQUESTS: "RequestHealth" = {"waiting": 0, "yours": 0, "denied_at": None}

Heard = dict[tuple[str, str | None], datetime]


class QueueHealth(TypedDict):
    """What waits in all lanes of a kind."""

    kind: str
    items: int
    lanes: int
    oldest_at: str


class LeaseHealth(TypedDict):
    """A lane that a node works on."""

    lane: str
    kind: str
    node: int
    until: str | None


class NodeHealth(TypedDict):
    """A process of the gateway: it `works`, is `silent` and holds lanes all the same, or is `gone`."""

    number: int
    name: str
    state: str
    leases: int
    started_at: str
    stopped_at: str | None
    leased_until: str | None


class ChannelHealth(TypedDict):
    """A channel, and why it takes no messages if it does not."""

    platform: str
    account: str | None
    trouble: str | None
    last_event_at: str | None


class StoreHealth(TypedDict):
    is_shared: bool
    """Whether several nodes may use it."""
    bytes: int


class RequestHealth(TypedDict):
    """What is asked for and waits for a decision."""

    waiting: int
    yours: int
    """Of these, how many whoever asks may decide about; no more than 100 are looked at."""
    denied_at: str | None
    """When the first of those is denied, if nobody decides."""


class GatewayHealth(TypedDict):
    """How the gateway is. Where the store does not answer, what only it knows is left out."""

    running: bool
    troubles: list[str]
    """What is wrong with the gateway itself and its store."""
    warnings: list[str]
    node: int | None
    version: str
    turns: TurnCounts
    requests: RequestHealth
    deliveries: list[OverduePlatform]
    channels: list[ChannelHealth]
    queues: list[QueueHealth]
    leases: list[LeaseHealth]
    nodes: list[NodeHealth]
    store: StoreHealth | None


class ConditionCounter(DeliveryCounter, TurnCounter):
    async def health(self) -> GatewayHealth:
        """Queues, leases, nodes, channels with their last event, the store: whether everything works, and
        what does not."""
        gateway = self._gateway
        troubles = await find_troubles(gateway) if gateway else []
        known: Plain = {
            "running": gateway is not None,
            "troubles": [each.why for each in troubles if each.channel is None],
            "warnings": list(gateway.warnings()) if gateway else [],
            "node": gateway.node if gateway else None,
            "version": version("frontdesk"),
        }
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                return await self._kept(known, troubles)
        except (errors.StoreError, TimeoutError):
            nothing: Plain = {"deliveries": [], "queues": [], "leases": [], "nodes": []}
            nothing |= {"turns": NO_TURNS, "requests": NO_REQUESTS}
            channels = self._channels_heard(troubles, {})
            return cast(GatewayHealth, known | nothing | {"channels": channels, "store": None})

    async def _kept(self, known: Plain, troubles: Sequence[HealthTrouble]) -> GatewayHealth:
        """With what the store knows."""
        figures = self._store.health
        heard = {(each.platform, each.account): each.at for each in await figures.channels()}
        kept = {
            "turns": await self.count_turns(),
            "requests": await self._requests(),
            "deliveries": await self._overdue(),
            "channels": self._channels_heard(troubles, heard),
            "queues": [
                picked(each, "kind", "items", "lanes", "oldest_at") for each in await figures.queues()
            ],
            "leases": [picked(each, "lane", "kind", "node", "until") for each in await figures.leases()],
            "nodes": self._nodes(await self._store.nodes.census()),
            "store": {
                "is_shared": not self._store.nodes.is_alone,
                "bytes": (await figures.store()).bytes,
            },
        }
        return cast(GatewayHealth, known | kept)

    async def _requests(self) -> RequestHealth:
        """What waits; the owner may decide about all of it."""
        now, store = self._clock.now(), self._store.confirmations
        waiting = await store.count_pending(now)
        if not waiting:
            return NO_REQUESTS
        found = [each for each in await store.list(MOST_REQUESTS, Status.PENDING) if each.expires_at > now]
        theirs = [each.expires_at for each in found if await self._decides(each)]
        return {"waiting": waiting, "yours": len(theirs), "denied_at": _written(min(theirs, default=None))}

    async def _decides(self, asked: Confirmation) -> bool:
        """Whether whoever asks may decide about it."""
        if self._visitor is None or self._gateway is None:
            return True
        try:
            await self._gateway.parts.confirmations.check_decider(asked, self._visitor.caller)
        except errors.NotAllowed:
            return False
        return True

    def _channels_heard(self, troubles: Sequence[HealthTrouble], heard: Heard) -> list[ChannelHealth]:
        channels = self._gateway.parts.channels.values() if self._gateway else ()
        why = {(each.channel.name, each.channel.account): each.cause for each in troubles if each.channel}
        return [
            {
                "platform": str(each.name),
                "account": each.account,
                "trouble": why.get((each.name, each.account)),
                "last_event_at": _written(heard.get((str(each.name), each.account))),
            }
            for each in channels
        ]

    def _nodes(self, found: Sequence[NodeSeen]) -> list[NodeHealth]:
        """Those that are there, or hold something; of the others the newest."""
        told = [_node(each, self._state_of(each)) for each in found]
        gone = [each for each in told if each["state"] == "gone"]
        return [each for each in told if each not in gone[MOST_GONE:]]

    def _state_of(self, node: NodeSeen) -> str:
        here = self._gateway is not None and node.number == self._gateway.node
        if here or node.alive:
            return "works"
        return "silent" if node.held and node.stopped_at is None else "gone"


def _written(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _node(node: NodeSeen, state: str) -> NodeHealth:
    return {
        "number": node.number,
        "name": node.name,
        "state": state,
        "leases": node.held,
        "started_at": node.started_at.isoformat(),
        "stopped_at": _written(node.stopped_at),
        "leased_until": _written(node.leased_until),
    }
