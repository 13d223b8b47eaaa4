"""The gateway over every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.conftest import fresh_schema
from tests.flow.harness import House, open_house


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return fresh_schema(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def house(store_url: str) -> AsyncIterator[House]:
    async with open_house(store_url) as opened:
        yield opened
