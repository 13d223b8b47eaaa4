"""Who reads a platform that has its messages for one reader."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from frontdesk.app.health import HealthTrouble, find_troubles
from frontdesk.contracts.channels import Desk
from frontdesk.model.running import Running
from tests.flow.harness import Notebook, open_house, poll


class Reader(Notebook):
    """A channel that notes whether it reads."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**capabilities)
        self.reads, self.times = False, 0

    async def receive(self, desk: Desk) -> None:
        self.reads = True
        self.times += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.reads = False

    async def begins(self) -> None:
        async def look() -> bool | None:
            return self.reads or None

        await poll(look)


async def test_one_of_two_nodes_reads_and_the_other_once_it_has_ended(shared_url: str) -> None:
    first, second = Reader(reads_alone=True), Reader(reads_alone=True)
    async with open_house(shared_url, notebook=second) as other, AsyncExitStack() as opened:
        await second.begins()
        house = await opened.enter_async_context(open_house(shared_url, notebook=first))
        assert await house.ask("hello") == "echo: hello"
        assert (first.reads, second.reads) == (False, True)
        await other.gateway.close()
        await first.begins()
        assert not second.reads


async def test_channel_that_fails_as_often_as_it_is_begun_is_told_of(tmp_path: Path) -> None:
    class Broken(Notebook):
        async def receive(self, desk: Desk) -> None:
            raise ValueError("out of order")

    async with open_house(f"sqlite:///{tmp_path}/state.db", notebook=Broken()) as house:

        async def look() -> list[HealthTrouble] | None:
            return await find_troubles(house.gateway) or None

        (told,) = await poll(look)
        assert told.why.endswith("takes no messages: it fails again and again (ValueError); the log has more")


async def test_every_node_receives_where_the_platform_does_not_mind(shared_url: str) -> None:
    first, second = Reader(), Reader()
    async with open_house(shared_url, notebook=first), open_house(shared_url, notebook=second):
        await first.begins()
        await second.begins()


async def test_node_whose_lease_was_taken_reads_no_more(shared_url: str) -> None:
    reader = Reader(reads_alone=True)
    running = Running(lease_seconds=3.0, drain_seconds=1.0)
    async with open_house(shared_url, notebook=reader, running=running) as house:
        await reader.begins()
        times, node = reader.times, house.gateway.node
        assert node
        await house.store.turns.recover(
            node, house.gateway.parts.try_again_at, house.gateway.parts.clock.now()
        )

        async def look() -> bool | None:
            return reader.times > times or None

        await poll(look)
