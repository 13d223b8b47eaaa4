"""How a gateway fares: what waits, who works on what, what was heard. Nodes tell who takes part."""

from frontdesk.contracts.store import Work
from frontdesk.model.health import ChannelSeen, DeepLane, HeldLane, QueueDepth, StoreFigures
from frontdesk.stores.columns import from_micros, maybe_time
from frontdesk.stores.work import Noun, reads, value

LOOKED_AT = 2_000
"""Of the newest turns, to see who brought one."""
MOST_LANES = 10
MOST_LEASES = 200


class HealthFigures(Noun):
    @reads
    def queues(self) -> Work[list[QueueDepth]]:
        """What waits, by the kind of lane that it waits in; where nothing does, there is none."""
        found = (yield "queued_turns", {}) + (yield "queued_deliveries", {})
        return [
            QueueDepth(kind=kind, items=items, lanes=lanes, oldest_at=from_micros(oldest))
            for kind, items, lanes, oldest in found
        ]

    @reads
    def deepest(self, limit: int = MOST_LANES) -> Work[list[DeepLane]]:
        """The lanes in which most turns wait."""
        found = yield "deepest_lanes", {"limit": limit}
        return [
            DeepLane(lane=lane, items=items, oldest_at=from_micros(oldest)) for lane, items, oldest in found
        ]

    @reads
    def leases(self, limit: int = MOST_LEASES) -> Work[list[HeldLane]]:
        """The lanes that somebody works on, and who; those whose leases end first."""
        found = yield "leases", {"limit": limit}
        return [
            HeldLane(lane=lane, kind=kind, node=node, name=name, until=maybe_time(until))
            for lane, kind, node, name, until in found
        ]

    @reads
    def channels(self) -> Work[list[ChannelSeen]]:
        """When something was last heard from each account, by how far it was read and by the newest turns."""
        heard = (yield "cursors_moved", {}) + (yield "turns_heard", {"most": LOOKED_AT})
        latest: dict[tuple[str, str], int] = {}
        for platform, account, at in heard:
            latest[platform, account] = max(at, latest.get((platform, account), at))
        return [
            ChannelSeen(platform=platform, account=account or None, at=from_micros(at))
            for (platform, account), at in sorted(latest.items())
        ]

    @reads
    def store(self) -> Work[StoreFigures]:
        size = yield from value("store_bytes")
        oldest = yield from value("oldest_change")
        return StoreFigures(bytes=size, feed_since=maybe_time(oldest))
