"""What tests of every kind share."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest
import uvloop

from tests import counts, servers
from tests.schemas import Schemas

# A busy machine is no failure; the reduced run is the same run every time, the full one explores.
hypothesis.settings.register_profile(
    "frontdesk", deadline=None, max_examples=counts.count(50, 1000), derandomize=not counts.proving()
)
hypothesis.settings.load_profile("frontdesk")

# Files have the same permissions whoever runs the tests.
os.umask(0o022)


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the loop that the program runs on."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The laboratory first, since it takes longest and mostly waits; then the files with the most tests."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.name != "test_lab.py", -tests[item.path], str(item.path)))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a real PostgreSQL server, one for the whole run."""
    # Nobody cuts the power: without fsync nothing is lost here, and the tests take a fraction of the time.
    with servers.running(fsync="off", max_connections="200") as server:
        yield server.url


@pytest.fixture(scope="session")
def postgres_schemas(postgres_url: str) -> Schemas:
    return Schemas(postgres_url)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/state.db"
    else:
        with request.getfixturevalue("postgres_schemas").lent() as url:
            yield url
