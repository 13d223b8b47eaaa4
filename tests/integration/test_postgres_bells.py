"""Bells that ring on all nodes of a PostgreSQL store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from frontdesk.contracts.bells import Topic
from frontdesk.stores.postgres import open_store
from frontdesk.stores.store import Store

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PATIENCE_SECONDS = 20.0


@pytest.fixture
def url(postgres_url: str) -> str:
    return f"{postgres_url}?schema=test_{uuid4().hex}"


@asynccontextmanager
async def node(url: str, name: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    try:
        await store.nodes.join(name, NOW)
        yield store
    finally:
        await store.close()


async def test_bell_rings_once_where_it_is_rung_and_on_the_other_nodes(url: str) -> None:
    async with node(url, "one") as one, node(url, "two") as two:
        here, there = one.bells.listen(Topic.TURNS), two.bells.listen(Topic.TURNS)
        answer = one.bells.listen(Topic.CONTROL)
        one.bells.ring(Topic.TURNS)
        assert await here.wait(0)
        assert await there.wait(PATIENCE_SECONDS)
        two.bells.ring(Topic.CONTROL)
        assert await answer.wait(PATIENCE_SECONDS)  # by now it has heard its own, which came before
        assert not await here.wait(0)
