"""What callers hand in."""

from datetime import UTC, datetime, timedelta

import pytest

from frontdesk import errors
from frontdesk.model import inputs

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def test_ago_goes_back_by_the_unit() -> None:
    assert inputs.ago(NOW, "max_age_days", 1.5, DAY) == NOW - timedelta(hours=36)


@pytest.mark.parametrize("value", [10**6, 10**400, float("inf")])
def test_more_than_the_calendar_holds_is_its_beginning(value: float) -> None:
    assert inputs.ago(NOW, "max_age_days", value, DAY) == inputs.LONG_AGO


@pytest.mark.parametrize("value", [-1, float("nan"), True, "7", None])
def test_what_is_no_amount_is_refused_by_name(value: float) -> None:
    with pytest.raises(errors.InvalidInput, match="max_age_days"):
        inputs.ago(NOW, "max_age_days", value, DAY)


@pytest.mark.parametrize("limit", [-1, 2**31 + 1, 1.5, True, "9"])
def test_limit_that_is_no_count_is_refused(limit: int) -> None:
    with pytest.raises(errors.InvalidInput, match="limit"):
        inputs.check_limit(limit)


@pytest.mark.parametrize("limit", [0, 1, 2**31])
def test_limit_that_is_a_count_is_given_back(limit: int) -> None:
    assert inputs.check_limit(limit) == limit


@pytest.mark.parametrize(
    ("value", "kinds"), [("x", (int,)), (True, (int,)), (None, (str,)), (b"x", (str, list))]
)
def test_value_of_another_kind_is_refused_by_name(value: object, kinds: tuple[type, ...]) -> None:
    with pytest.raises(errors.InvalidInput, match="thing"):
        inputs.check_kind("thing", value, *kinds)


def test_time_without_a_zone_is_refused() -> None:
    inputs.check_time("since", None)
    inputs.check_time("since", NOW)
    with pytest.raises(errors.InvalidInput, match="zone"):
        inputs.check_time("since", NOW.replace(tzinfo=None))
