"""Nodes: who takes part, and who is gone and left lanes behind."""

from collections.abc import Callable
from datetime import datetime

from frontdesk.contracts.store import Row, Work
from frontdesk.model.feed import FeedKind
from frontdesk.model.health import NodeSeen
from frontdesk.stores.columns import from_micros, maybe_time, to_micros
from frontdesk.stores.feed import announce
from frontdesk.stores.work import Noun, glances, reads, value, writes

MOST_LISTED = 50
JOINED, STOPPING = "joined", "stopping"


class Nodes(Noun):
    """Where a store has one owner, as a file has, no other node shows that it lives: whoever else held
    something is gone."""

    is_alone = True
    """Whether there is no other node."""
    hear: Callable[[str], None] | None = None
    """Is called with what another node says."""
    _scope = ""
    """What the nodes of this store show their life under."""
    standing: int | None = 0
    """Another number each time that the others may have taken this node for gone; None while they may."""

    async def join(self, name: str, now: datetime) -> int:
        """Take part; the node's number, under which it holds lanes."""
        number = await self._join(name, now)
        await self._appear(number)
        return number

    @writes
    def _join(self, name: str, now: datetime) -> Work[int]:
        number: int = yield from value("join_node", name=name, now=to_micros(now))
        yield from announce(FeedKind.NODE, now, state=JOINED)
        return number

    async def say(self, words: str) -> None:
        """To the other nodes, ours included, as far as they listen just now; less than 8,000 bytes."""

    @writes
    def announce_stop(self, node: int, now: datetime) -> Work[None]:
        """It was told to stop: what it may leave behind is no turn's fault, and no attempt of its counts."""
        yield "announce_stop", {"node": node, "now": to_micros(now)}
        yield from announce(FeedKind.NODE, now, state=STOPPING)

    async def left_behind(self, node: int) -> tuple[list[int], list[int]]:
        """Of the nodes that hold lanes: the others that are certainly gone, and those that are there, or may
        be, and have not renewed all their leases in time."""
        await self._relieve()
        holders = await self._holders()
        others = [number for number, _ in holders if number != node]
        gone = [number for number in others if await self._is_gone(number)]
        return gone, [number for number, late in holders if late and number not in gone]

    @reads
    def census(self, limit: int = MOST_LISTED) -> Work[list[NodeSeen]]:
        """The newest nodes, each with its last sign of life."""
        living = {number for (number,) in (yield "living_nodes", {"scope": self._scope})}
        found = yield "nodes_seen", {"limit": limit}
        return [
            NodeSeen(
                number=number,
                name=name,
                started_at=from_micros(started_at),
                stopped_at=maybe_time(stopped_at),
                held=held,
                leased_until=maybe_time(leased_until),
                alive=None if self.is_alone else number in living,
            )
            for number, name, started_at, stopped_at, held, leased_until in found
        ]

    @glances
    def _holders(self) -> Work[list[Row]]:
        return (yield "holders", {})

    async def _appear(self, number: int) -> None:
        """Show the others that the node lives."""

    async def _is_gone(self, number: int) -> bool:  # noqa: ARG002
        return True

    async def _relieve(self) -> None:
        """End what others have begun and stand still in."""

    async def close(self) -> None:
        """Take part no longer."""
