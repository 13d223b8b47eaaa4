"""What is shipped for tests."""

from datetime import UTC, datetime

import pytest

from frontdesk.testing import SettableClock

NAIVE = datetime(2026, 3, 2)  # noqa: DTZ001


def test_clock_starts_when_it_is_told() -> None:
    start = datetime(2026, 3, 2, tzinfo=UTC)
    assert SettableClock(start).now() == start


def test_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a zone"):
        SettableClock(NAIVE)
    with pytest.raises(ValueError, match="needs a zone"):
        SettableClock().set(NAIVE)
