"""Which examples of a test run where they would take long and show nothing new."""

from collections.abc import Callable

import pytest

from tests import counts


def leave_out_further(items: list[pytest.Item], alike: Callable[[pytest.Item], bool]) -> None:
    """On PostgreSQL only the first example of a test where they are alike for a store; every one in
    `make prove`."""
    if counts.proving():
        return
    seen: set[str] = set()

    def is_further(item: pytest.Item) -> bool:
        test, _, variant = item.nodeid.partition("[")
        if "postgresql" not in variant or not alike(item):
            return False
        known = test in seen
        seen.add(test)
        return known

    items[:] = [item for item in items if not is_further(item)]
