"""How a gateway fares, as its store tells it: what waits, who works on what, who takes part."""

from datetime import datetime

import msgspec


class QueueDepth(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in all lanes of a kind."""

    kind: str
    items: int
    lanes: int
    oldest_at: datetime
    """When the item that has waited longest came in."""


class DeepLane(msgspec.Struct, frozen=True, kw_only=True):
    """A lane in which much waits."""

    lane: str
    items: int
    oldest_at: datetime


class HeldLane(msgspec.Struct, frozen=True, kw_only=True):
    """A lane that somebody works on."""

    lane: str
    kind: str
    node: int
    name: str | None
    """The node's."""
    until: datetime | None
    """When the lease ends, unless it is renewed."""


class NodeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the gateway, and its last sign of life."""

    number: int
    name: str
    started_at: datetime
    stopped_at: datetime | None
    """When it was told to stop."""
    held: int
    """How many lanes it holds."""
    leased_until: datetime | None
    """When the last of its leases ends."""
    alive: bool | None
    """Whether it shows that it lives; None where a store has one owner, and nobody shows it."""


class ChannelSeen(msgspec.Struct, frozen=True, kw_only=True):
    """When something was last heard from a platform, as far as that is known."""

    platform: str
    account: str | None
    at: datetime


class StoreFigures(msgspec.Struct, frozen=True, kw_only=True):
    bytes: int
    feed_since: datetime | None
    """The oldest change that the feed tells of; None when it is empty."""
