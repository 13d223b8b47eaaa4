"""The search index follows what is said through the gateway, by itself."""

import asyncio
import contextlib
from pathlib import Path

from frontdesk import SessionStore, Viewer, config
from frontdesk.app.build import open_gateway
from frontdesk.stores.store import Store
from tests.contracts.conftest import stored
from tests.contracts.samples import LASTING, direct, user_says
from tests.flow.harness import House, poll

EVERYTHING = Viewer.everything()
CONFIGURATION = """
[agent]
driver = "scripted"
[store]
url = "{url}"
"""


async def until_indexed(store: Store) -> None:
    """Nobody searches: it is looked whether something is missing."""

    async def look() -> bool | None:
        return None if await store.index.is_behind() else True

    await poll(look)


async def test_what_is_said_through_the_gateway_is_indexed_without_a_search(house: House) -> None:
    assert await house.ask("a heron") == "echo: a heron"
    await until_indexed(house.store)
    assert await house.ask("another heron")
    await until_indexed(house.store)
    found = await house.sessions.search("heron", EVERYTHING)
    assert {hit.message["content"] for hit in found} >= {"a heron", "another heron", "echo: a heron"}


async def test_gateway_of_the_program_indexes_what_it_finds_at_its_start(
    store_url: str, tmp_path: Path
) -> None:
    async with await SessionStore.open(store_url, LASTING) as service:
        entry = await service.get_or_create_session(direct())
        await service.record_turn(entry.session_id, [user_says(f"heron {number}") for number in range(500)])
        assert await service.store.index.is_behind()
    file = tmp_path / "frontdesk.toml"
    file.write_text(CONFIGURATION.format(url=store_url))
    loaded = config.load(file, {"HOME": str(tmp_path)})
    async with open_gateway(loaded) as gateway, gateway.started():
        await until_indexed(gateway.parts.store)


async def test_index_follows_while_messages_keep_coming(house: House, store_url: str) -> None:
    """There is no quiet moment from the first message until they are looked for in the index."""
    entry = await house.sessions.get_or_create_session(house.source())

    async def talk() -> None:
        while True:
            await house.sessions.append_to_transcript(entry.session_id, user_says("a heron"))

    async def look() -> bool | None:
        ((indexed,),) = await stored(store_url, "SELECT CASE WHEN up_to > '0' THEN 1 ELSE 0 END FROM indexed")
        return True if indexed else None

    talking = asyncio.create_task(talk())
    try:
        await poll(look)
        assert not talking.done()
    finally:
        talking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await talking
