"""Which interrupted turns go on by themselves, whatever the clock does."""

from datetime import UTC, datetime, timedelta

import pytest

from frontdesk import Platform, SessionSource
from frontdesk.flow.continuation import Continuation
from frontdesk.model.turns import Turn

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TURN = Turn(
    id="t",
    session_key="k",
    session_id="s",
    source=SessionSource(platform=Platform.WEBHOOK, chat_id="c"),
    text="hello",
    received_at=NOW - timedelta(days=1),
    attempts=1,
    interrupted_at=NOW,
)


@pytest.mark.parametrize(
    ("started", "now", "elapsed", "lapsed"),
    [
        (NOW + HOUR, NOW + HOUR, 0.0, False),
        (NOW + 2 * HOUR, NOW + 2 * HOUR, 0.0, True),
        (NOW - 2 * HOUR, NOW + 2 * HOUR, 4 * 3600.0, True),
        (NOW - HOUR, NOW + 24 * HOUR, 3601.0, False),  # set forward since the start
        (NOW + 24 * HOUR, NOW, 1.0, False),  # set back since the start
        (NOW - 24 * HOUR, NOW - 24 * HOUR, 1.0, False),  # set back while nothing ran
    ],
)
def test_age_is_measured_by_the_clock_until_the_start_and_by_time_after_it(
    started: datetime, now: datetime, elapsed: float, lapsed: bool
) -> None:
    times = iter((0.0, elapsed))
    continuation = Continuation(HOUR, started, elapsed=lambda: next(times))
    assert continuation.has_lapsed(TURN, now) is lapsed
