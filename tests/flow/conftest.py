"""The gateway over every store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests import examples
from tests.flow.harness import House, open_house
from tests.schemas import Schemas

FOLDER = Path(__file__).parent
OTHER_STATES = {"test_ordering", "test_suspects", "test_tenure", "test_withdrawals"}
"""Their examples are states and moments."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    examples.leave_out_further(items, _differs_in_what_people_say)


def _differs_in_what_people_say(item: pytest.Item) -> bool:
    return item.path.parent == FOLDER and item.path.stem not in OTHER_STATES


@pytest.fixture
def shared_url(postgres_schemas: Schemas) -> Iterator[str]:
    """The address of a store that several nodes share."""
    with postgres_schemas.lent() as url:
        yield url


@pytest.fixture
async def house(store_url: str) -> AsyncIterator[House]:
    async with open_house(store_url) as opened:
        yield opened
