"""What tests of every kind share."""

from collections.abc import Iterator

import hypothesis
import pytest

from frontdesk.testing import postgres
from tests import counts

# A busy machine is no failure; the reduced run is the same run every time, the full one explores.
hypothesis.settings.register_profile(
    "frontdesk", deadline=None, max_examples=counts.count(50, 1000), derandomize=not counts.proving()
)
hypothesis.settings.load_profile("frontdesk")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a real PostgreSQL server, one for the whole run."""
    # Nobody cuts the power: without fsync nothing is lost here, and the tests take a fraction of the time.
    settings = {"fsync": "off", "max_connections": "200"}
    try:
        with postgres.running(settings=settings) as server:
            yield server.url
    except postgres.PostgresUnavailable as error:
        pytest.skip(str(error))
