"""Whether the clock was set back."""

from datetime import timedelta

from frontdesk.flow.clockwatch import SET_BACK, Setbacks
from frontdesk.testing import SettableClock


class Uptime:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def watched() -> tuple[Setbacks, SettableClock, Uptime]:
    clock, uptime = SettableClock(), Uptime()
    setbacks = Setbacks(uptime)
    assert setbacks.happened(clock.now())  # nobody knows what was before
    return setbacks, clock, uptime


def test_clock_that_goes_on_is_not_set_back() -> None:
    setbacks, clock, uptime = watched()
    for _ in range(3):
        clock.advance(seconds=10)
        uptime.seconds += 10
        assert not setbacks.happened(clock.now())


def test_clock_that_is_behind_the_time_that_passed_was_set_back_once() -> None:
    setbacks, clock, uptime = watched()
    clock.advance(hours=-1)
    uptime.seconds += 10
    assert setbacks.happened(clock.now())
    assert not setbacks.happened(clock.now())


def test_clock_that_stood_still_was_set_back() -> None:
    setbacks, clock, uptime = watched()
    uptime.seconds += 10
    assert setbacks.happened(clock.now())


def test_clock_that_is_put_right_by_less_than_a_second_is_steady() -> None:
    setbacks, clock, _ = watched()
    clock.advance(-SET_BACK / 2)
    assert not setbacks.happened(clock.now())


def test_clock_that_jumped_ahead_was_not_set_back() -> None:
    setbacks, clock, _ = watched()
    clock.advance(timedelta(days=1))
    assert not setbacks.happened(clock.now())
