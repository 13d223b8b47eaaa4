"""The gateway over every store."""

from collections.abc import AsyncIterator

import pytest

from tests.flow.harness import House, open_house


@pytest.fixture
async def house(store_url: str) -> AsyncIterator[House]:
    async with open_house(store_url) as opened:
        yield opened
