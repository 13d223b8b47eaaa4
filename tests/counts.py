"""How often the kill, fuzz and soak tests repeat themselves."""

import os
from collections.abc import Callable

TRIED = "tried"
Tell = Callable[[str, int], None]
"""Has the end of the run say how often something was tried, or found."""


def proving() -> bool:
    """Whether this run uses the full counts (`make prove`)."""
    return os.environ.get("FRONTDESK_PROVE") == "1"


def count(reduced: int, full: int) -> int:
    """`full` in `make prove`, `reduced` in every other run."""
    return full if proving() else reduced
