"""What turns came to: by day, and by how long their session was."""

from datetime import date

import msgspec

BUCKET = 10
"""So many message numbers are one point of the curve."""
LAST_NUMBER = 1_000
"""Longer sessions are one point."""


class UsageDay(msgspec.Struct, frozen=True, kw_only=True):
    """What the turns of a day came to, on one platform, for one profile, with one model."""

    day: date
    """Of UTC."""
    platform: str
    profile: str
    model: str
    """Empty for the agent's own."""
    turns: int = 0
    failed: int = 0
    messages: int = 0
    tools: int = 0
    """Results of tools."""
    failures: int = 0
    """Of those, errors."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """What turns came to that answered messages of these numbers in their sessions."""

    number: int
    """The first of them."""
    turns: int = 0
    tools: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def error_rate(self) -> float | None:
        """Which share of the results of tools were errors; None where there were none."""
        return self.failures / self.tools if self.tools else None


def bucket_of(number: int) -> int:
    """The first message number of the point that one belongs to."""
    return min(max(number - 1, 0) // BUCKET * BUCKET + 1, LAST_NUMBER + 1)
