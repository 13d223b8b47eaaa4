"""The gateway over every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import counts
from tests.flow.harness import House, open_house

FOLDER = Path(__file__).parent
OTHER_STATES = {"test_ordering", "test_suspects", "test_tenure", "test_withdrawals"}
"""Their examples are states and moments."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On PostgreSQL the first example of each test where examples differ in what people say and not in what a
    store does; every one in `make prove`."""
    if not counts.proving():
        seen: set[str] = set()
        items[:] = [item for item in items if not _is_further_example(item, seen)]


def _is_further_example(item: pytest.Item, seen: set[str]) -> bool:
    test, _, variant = item.nodeid.partition("[")
    if item.path.parent != FOLDER or item.path.stem in OTHER_STATES or "postgresql" not in variant:
        return False
    known = test in seen
    seen.add(test)
    return known


@pytest.fixture
async def house(store_url: str) -> AsyncIterator[House]:
    async with open_house(store_url) as opened:
        yield opened
