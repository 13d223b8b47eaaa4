"""Waiting for what nobody tells us."""

import time
from collections.abc import Callable

# How long anything may take on the busiest machine; a test fails after that.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.02


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(LOOK_SECONDS)
