"""PostgreSQL servers for tests that need one of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from frontdesk.testing import postgres


@contextmanager
def running(**settings: str) -> Iterator[postgres.Server]:
    """A server until the end of the block; the test is skipped, and says why, where there are no binaries."""
    try:
        with postgres.running(settings=settings) as server:
            yield server
    except postgres.PostgresUnavailable as error:
        pytest.skip(str(error))
