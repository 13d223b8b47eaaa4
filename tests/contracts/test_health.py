"""Whether a store says truly that it can be written."""

import asyncio

from frontdesk import SessionStore
from tests.contracts.samples import direct


async def test_store_that_can_be_written_has_nothing_to_say(service: SessionStore) -> None:
    await service.store.check()
    await asyncio.gather(*(service.store.check() for _ in range(8)))
    assert await service.store.inspect(60.0)


async def test_check_leaves_no_trace(service: SessionStore) -> None:
    await service.store.check()
    assert not await service.has_any_sessions()
    entry = await service.get_or_create_session(direct())
    await service.store.check()
    assert await service.load_transcript(entry.session_id) == []
    assert await service.store.nodes.left_behind(0) == ([], [])
