"""What tests of every kind share."""

from collections.abc import Iterator

import hypothesis
import pytest

from tests import counts, servers

# A busy machine is no failure; the reduced run is the same run every time, the full one explores.
hypothesis.settings.register_profile(
    "frontdesk", deadline=None, max_examples=counts.count(50, 1000), derandomize=not counts.proving()
)
hypothesis.settings.load_profile("frontdesk")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a real PostgreSQL server, one for the whole run."""
    # Nobody cuts the power: without fsync nothing is lost here, and the tests take a fraction of the time.
    with servers.running(fsync="off", max_connections="200") as server:
        yield server.url
