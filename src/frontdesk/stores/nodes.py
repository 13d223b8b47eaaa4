"""Nodes: who takes part, and who is gone and left lanes behind."""

from datetime import datetime
from functools import partial
from typing import Protocol

from frontdesk.stores.rows import to_micros
from frontdesk.stores.work import Engine, row, rows


class Presence(Protocol):
    """How a node shows that it lives."""

    async def appear(self, number: int) -> None: ...

    async def is_gone(self, number: int) -> bool: ...

    async def relieve(self) -> None:
        """End what others have begun and stand still in."""
        ...

    @property
    def standing(self) -> int | None:
        """As in the contract."""
        ...

    async def close(self) -> None: ...


class Alone:
    """The file has one owner: whoever else held something is gone."""

    async def appear(self, number: int) -> None:
        pass

    async def is_gone(self, number: int) -> bool:  # noqa: ARG002
        return True

    async def relieve(self) -> None:
        pass

    @property
    def standing(self) -> int:
        return 0

    async def close(self) -> None:
        pass


class Nodes:
    def __init__(self, engine: Engine, presence: Presence) -> None:
        self._engine = engine
        self._presence = presence

    async def join(self, name: str, now: datetime) -> int:
        found = await self._engine.write(partial(row, "join_node", name=name, now=to_micros(now)))
        assert found is not None
        number = int(found[0])
        await self._presence.appear(number)
        return number

    @property
    def standing(self) -> int | None:
        return self._presence.standing

    async def announce_stop(self, node: int, now: datetime) -> None:
        await self._engine.write(partial(row, "announce_stop", node=node, now=to_micros(now)))

    async def gone(self, node: int) -> list[int]:
        """The other nodes that hold lanes and are gone."""
        await self._presence.relieve()
        holders = await self._engine.read(partial(rows, "holders"))
        others = [number for number, _ in holders if number != node]
        return [number for number in others if await self._presence.is_gone(number)]

    async def overdue(self) -> list[int]:
        """The nodes that hold lanes and have not renewed all their leases."""
        holders = await self._engine.read(partial(rows, "holders"))
        return [number for number, late in holders if late]
