"""Nodes: who takes part, and who is gone and left lanes behind."""

from datetime import datetime
from typing import Protocol

from frontdesk.contracts.store import Engine, Row, Work
from frontdesk.stores.columns import to_micros
from frontdesk.stores.work import Noun, glances, writes


class Presence(Protocol):
    """How a node shows that it lives."""

    async def appear(self, number: int) -> None: ...

    async def is_gone(self, number: int) -> bool: ...

    async def relieve(self) -> None:
        """End what others have begun and stand still in."""
        ...

    @property
    def standing(self) -> int | None:
        """As `Nodes` says."""
        ...

    async def close(self) -> None: ...


class Alone:
    """The file has one owner: whoever else held something is gone."""

    standing = 0

    async def appear(self, number: int) -> None:
        pass

    async def is_gone(self, number: int) -> bool:  # noqa: ARG002
        return True

    async def relieve(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Nodes(Noun):
    def __init__(self, engine: Engine, presence: Presence) -> None:
        super().__init__(engine)
        self._presence = presence

    async def join(self, name: str, now: datetime) -> int:
        """Take part; the node's number, under which it holds lanes."""
        number = await self._join(name, now)
        await self._presence.appear(number)
        return number

    @writes
    def _join(self, name: str, now: datetime) -> Work[int]:
        ((number,),) = yield "join_node", {"name": name, "now": to_micros(now)}
        return int(number)

    @property
    def standing(self) -> int | None:
        """Another number each time that the others may have taken this node for gone; None while they may."""
        return self._presence.standing

    @writes
    def announce_stop(self, node: int, now: datetime) -> Work[None]:
        """It was told to stop: what it may leave behind is no turn's fault, and no attempt of its counts."""
        yield "announce_stop", {"node": node, "now": to_micros(now)}

    async def left_behind(self, node: int) -> tuple[list[int], list[int]]:
        """Of the nodes that hold lanes: the others that are certainly gone, and those that are there, or may
        be, and have not renewed all their leases in time."""
        await self._presence.relieve()
        holders = await self._holders()
        others = [number for number, _ in holders if number != node]
        gone = [number for number in others if await self._presence.is_gone(number)]
        return gone, [number for number, late in holders if late and number not in gone]

    @glances
    def _holders(self) -> Work[list[Row]]:
        return (yield "holders", {})
