"""Reset policies: defaults, ranges, the dict form, and when a session is stale."""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.model.policies import (
    AUTOMATIC,
    MAX_IDLE_MINUTES,
    MAX_SPIRAL,
    EndReason,
    ResetMode,
    SessionResetPolicy,
    latest_passing,
)

NOW = datetime(2026, 5, 5, 12, tzinfo=UTC)
FIELDS = {
    "mode": "both",
    "at_hour": 4,
    "idle_minutes": 1440,
    "max_messages": 200,
    "max_tokens": 0,
    "max_cost_usd": 0.0,
    "max_session_minutes": 0,
    "spiral_repeats": 5,
    "spiral_errors": 0.8,
    "spiral_window": 10,
    "notify": True,
    "notify_exclude_platforms": ["api_server", "webhook"],
    "timezone": None,
}
policies = st.builds(
    SessionResetPolicy,
    mode=st.sampled_from(ResetMode),
    at_hour=st.integers(0, 23),
    idle_minutes=st.integers(1, 10_000),
    max_messages=st.integers(0, 300),
    max_tokens=st.integers(0, 300),
    max_cost_usd=st.integers(0, 3) | st.floats(0, 3),
    max_session_minutes=st.integers(0, 10_000),
    spiral_repeats=st.just(0) | st.integers(2, 10),
    spiral_errors=st.floats(0, 1),
    spiral_window=st.integers(2, 20),
    notify=st.booleans(),
    notify_exclude_platforms=st.lists(st.sampled_from(["web", "email", "fax"])).map(tuple),
    timezone=st.none() | st.sampled_from(["Europe/Berlin", "America/Havana", "Asia/Kathmandu"]),
)


def reason(
    policy: SessionResetPolicy,
    rested: timedelta,
    count: int = 0,
    now: datetime = NOW,
    served: tuple[datetime, ...] = (),
    **spent: Any,
) -> EndReason | None:
    return policy.stale_reason(
        last_activity=now - rested, message_count=count, now=now, machine_zone=UTC, served=served, **spent
    )


def test_defaults_are_the_documented_ones() -> None:
    assert SessionResetPolicy().to_dict() == FIELDS


@given(policies)
def test_dict_form_round_trips_through_json(policy: SessionResetPolicy) -> None:
    data = policy.to_dict()
    assert SessionResetPolicy.from_dict(json.loads(json.dumps(data))) == policy
    assert type(data["mode"]) is str
    assert set(data) == set(FIELDS)


@pytest.mark.parametrize("name", list(FIELDS))
def test_missing_or_null_field_takes_its_default(name: str) -> None:
    changed = {"mode": "idle", "at_hour": 7, "idle_minutes": 5, "max_messages": 0, "notify": False}
    rest = {key: value for key, value in changed.items() if key != name}
    expected = SessionResetPolicy.from_dict(rest)
    assert getattr(expected, name) == getattr(SessionResetPolicy(), name)
    assert SessionResetPolicy.from_dict(rest | {name: None}) == expected


def test_zero_and_false_are_values_and_no_gaps() -> None:
    policy = SessionResetPolicy.from_dict({"at_hour": 0, "max_messages": 0, "notify": False})
    assert (policy.at_hour, policy.max_messages, policy.notify) == (0, 0, False)
    assert SessionResetPolicy.from_dict({"notify_exclude_platforms": []}).notify_exclude_platforms == ()


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("at_hour", 0, 23),
        ("idle_minutes", 1, MAX_IDLE_MINUTES),
        ("max_messages", 0, 10**9),
        ("max_tokens", 0, 10**12),
        ("max_session_minutes", 0, MAX_IDLE_MINUTES),
        ("spiral_window", 2, MAX_SPIRAL),
    ],
)
def test_number_out_of_range_is_refused_with_its_name_and_the_range(key: str, low: int, high: int) -> None:
    for good in (low, high):
        assert getattr(SessionResetPolicy.from_dict({key: good}), key) == good
    for bad in (low - 1, high + 1, True, 4.0, "4", [4]):
        with pytest.raises(errors.InvalidSetting) as caught:
            SessionResetPolicy.from_dict({key: bad})
        assert f"{key} is {bad!r}; allowed: a whole number from {low} to {high}" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "bad", "allowed"),
    [
        ("mode", "weekly", "both, daily, idle, none"),
        ("mode", 1, "both, daily, idle, none"),
        ("mode", "", "both, daily, idle, none"),
        ("notify", "yes", "true or false"),
        ("notify", 1, "true or false"),
        ("notify_exclude_platforms", "webhook", "a list of platform names"),
        ("notify_exclude_platforms", [1], "a list of platform names"),
        ("timezone", "Mars/Olympus", "an IANA name"),
        ("timezone", "", "an IANA name"),
        ("timezone", 3, "an IANA name"),
        ("spiral_repeats", 1, "0 or a whole number from 2 to 1000"),
        ("spiral_repeats", MAX_SPIRAL + 1, "0 or a whole number from 2 to 1000"),
        ("spiral_repeats", False, "0 or a whole number from 2 to 1000"),
        ("spiral_repeats", 0.0, "0 or a whole number from 2 to 1000"),
        ("max_cost_usd", -0.01, "a number from 0 to 1000000000"),
        ("max_cost_usd", math.inf, "a number from 0 to 1000000000"),
        ("max_cost_usd", math.nan, "a number from 0 to 1000000000"),
        ("max_cost_usd", 10**400, "a number from 0 to 1000000000"),
        ("max_cost_usd", "5", "a number from 0 to 1000000000"),
        ("max_cost_usd", True, "a number from 0 to 1000000000"),
        ("spiral_errors", 1.01, "a number from 0 to 1"),
    ],
)
def test_value_of_the_wrong_kind_is_refused_with_what_is_allowed(key: str, bad: object, allowed: str) -> None:
    with pytest.raises(errors.InvalidSetting) as caught:
        SessionResetPolicy.from_dict({key: bad})
    assert f"{key} is {bad!r}; allowed: {allowed}" in str(caught.value)


def test_constructor_checks_what_from_dict_checks() -> None:
    with pytest.raises(errors.InvalidSetting, match="at_hour"):
        SessionResetPolicy(at_hour=24)


@pytest.mark.parametrize("data", [None, [], "both"])
def test_something_else_than_a_table_is_no_policy(data: Any) -> None:
    with pytest.raises(errors.InvalidSetting, match="session_reset"):
        SessionResetPolicy.from_dict(data)


# Idle


@pytest.mark.parametrize("mode", ["idle", "both"])
def test_idle_means_more_than_the_idle_time(mode: str) -> None:
    policy = SessionResetPolicy(mode=ResetMode(mode), idle_minutes=60, at_hour=0)
    assert reason(policy, timedelta(minutes=60)) is None
    assert reason(policy, timedelta(minutes=60, microseconds=1)) is EndReason.IDLE


@pytest.mark.parametrize("mode", ["daily", "none"])
def test_idle_time_means_nothing_in_other_modes(mode: str) -> None:
    policy = SessionResetPolicy(mode=ResetMode(mode), idle_minutes=1, at_hour=0)
    assert reason(policy, timedelta(hours=11)) is None


def test_activity_in_the_future_is_not_idle() -> None:
    assert reason(SessionResetPolicy(), -timedelta(days=400)) is None


# Daily


@pytest.mark.parametrize("mode", ["daily", "both"])
def test_daily_means_active_before_the_hour_was_passed(mode: str) -> None:
    policy = SessionResetPolicy(mode=ResetMode(mode), at_hour=4)
    assert reason(policy, timedelta(hours=8)) is None  # active at 4:00 sharp
    assert reason(policy, timedelta(hours=8, microseconds=1)) is EndReason.DAILY


def test_before_the_hour_yesterdays_boundary_counts() -> None:
    policy, early = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4), NOW.replace(hour=3)
    assert reason(policy, timedelta(hours=22), now=early) is None
    assert reason(policy, timedelta(hours=24), now=early) is EndReason.DAILY


@pytest.mark.parametrize("mode", ["idle", "none"])
def test_hour_means_nothing_in_other_modes(mode: str) -> None:
    assert reason(SessionResetPolicy(mode=ResetMode(mode)), timedelta(hours=20)) is None


def test_served_boundary_is_not_served_again() -> None:
    policy = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4)
    boundary = NOW.replace(hour=4)
    assert reason(policy, timedelta(hours=9), served=(boundary,)) is None
    assert reason(policy, timedelta(hours=9), served=(boundary - timedelta(days=1),)) is EndReason.DAILY


def test_boundary_is_in_the_zone_of_the_policy() -> None:
    tokyo = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4, timezone="Asia/Tokyo")  # 19:00 UTC
    assert reason(tokyo, timedelta(hours=16)) is None
    assert reason(tokyo, timedelta(hours=18)) is EndReason.DAILY


def test_boundary_is_in_the_zone_of_the_machine_when_the_policy_has_none() -> None:
    tokyo, policy = ZoneInfo("Asia/Tokyo"), SessionResetPolicy(mode=ResetMode.DAILY)
    rested = NOW - timedelta(hours=16)
    stale = policy.stale_reason(last_activity=rested, message_count=0, now=NOW, machine_zone=tokyo)
    assert stale is None
    assert policy.zone(tokyo) is tokyo
    assert reason(policy, timedelta(hours=16)) is EndReason.DAILY


# Messages


@pytest.mark.parametrize("mode", list(ResetMode))
def test_message_limit_holds_in_every_mode(mode: ResetMode) -> None:
    policy = SessionResetPolicy(mode=mode, max_messages=10)
    assert reason(policy, timedelta(), count=9) is None
    assert reason(policy, timedelta(), count=10) is EndReason.MESSAGE_LIMIT
    assert reason(policy, timedelta(), count=11) is EndReason.MESSAGE_LIMIT


@pytest.mark.parametrize("mode", list(ResetMode))
def test_zero_means_no_message_limit(mode: ResetMode) -> None:
    assert reason(SessionResetPolicy(mode=mode, max_messages=0), timedelta(), count=10**9) is None


# Tokens, cost, time


LIMITED = SessionResetPolicy(max_tokens=1000, max_cost_usd=2.5, max_session_minutes=60)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize("mode", list(ResetMode))
@pytest.mark.parametrize(
    ("limits", "below", "reached", "expected"),
    [
        ({"max_tokens": 1000}, {"tokens": 999}, {"tokens": 1000}, EndReason.TOKEN_LIMIT),
        ({"max_cost_usd": 2.5}, {"cost": 2.49}, {"cost": 2.5}, EndReason.COST_LIMIT),
        (
            {"max_session_minutes": 60},
            {"created_at": NOW - HOUR + TICK},
            {"created_at": NOW - HOUR},
            EndReason.TIME_LIMIT,
        ),
    ],
)
def test_budget_holds_in_every_mode_from_the_moment_it_is_spent(
    mode: ResetMode,
    limits: dict[str, Any],
    below: dict[str, Any],
    reached: dict[str, Any],
    expected: EndReason,
) -> None:
    policy = SessionResetPolicy(mode=mode, **limits)
    assert reason(policy, timedelta(), **below) is None
    assert reason(policy, timedelta(), **reached) is expected
    assert reason(SessionResetPolicy(mode=mode), timedelta(), **reached) is None


def test_session_that_begins_in_the_future_is_not_too_old() -> None:
    assert reason(LIMITED, timedelta(), created_at=NOW + timedelta(days=400)) is None


def test_limits_are_checked_in_the_order_of_messages_tokens_cost_and_time() -> None:
    spent: dict[str, Any] = {"tokens": 9999, "cost": 9.0, "created_at": NOW - 2 * HOUR}
    assert reason(LIMITED, timedelta(), 500, **spent) is EndReason.MESSAGE_LIMIT
    assert reason(LIMITED, timedelta(), **spent) is EndReason.TOKEN_LIMIT
    assert reason(LIMITED, timedelta(), **spent | {"tokens": 0}) is EndReason.COST_LIMIT
    assert reason(LIMITED, timedelta(), **spent | {"tokens": 0, "cost": 0.0}) is EndReason.TIME_LIMIT
    assert reason(LIMITED, timedelta(days=3), 500, **spent) is EndReason.IDLE


def test_limit_of_time_expires_a_session_in_mode_none() -> None:
    assert SessionResetPolicy(mode=ResetMode.NONE, max_session_minutes=1).expires


# Order


def test_idle_comes_before_daily_before_message_limit() -> None:
    rested, count = timedelta(days=3), 500
    assert reason(SessionResetPolicy(), rested, count) is EndReason.IDLE
    assert reason(SessionResetPolicy(mode=ResetMode.DAILY), rested, count) is EndReason.DAILY
    assert reason(SessionResetPolicy(mode=ResetMode.NONE), rested, count) is EndReason.MESSAGE_LIMIT


@given(policies, st.integers(-5000, 20_000), st.integers(0, 400), st.integers(0, 40_000))
def test_verdict_is_the_first_reason_that_holds(
    policy: SessionResetPolicy, rested: int, count: int, later: int
) -> None:
    now = NOW + timedelta(minutes=later)
    active = now - timedelta(minutes=rested)
    boundary = latest_passing(now, policy.at_hour, policy.zone(UTC))
    holds = {
        EndReason.IDLE: policy.mode in ("idle", "both") and rested > policy.idle_minutes,
        EndReason.DAILY: policy.mode in ("daily", "both") and active < boundary,
        EndReason.MESSAGE_LIMIT: policy.max_messages > 0 and count >= policy.max_messages,
    }
    expected = next((name for name, true in holds.items() if true), None)
    assert reason(policy, now - active, count, now) is expected


@pytest.mark.parametrize("mode", list(ResetMode))
def test_time_alone_expires_every_mode_but_none(mode: ResetMode) -> None:
    policy = SessionResetPolicy(mode=mode, max_messages=0)
    assert policy.expires is (reason(policy, timedelta(days=4000)) is not None)


# Reasons


def test_reasons_are_one_enum() -> None:
    assert list(EndReason) == [
        "idle",
        "daily",
        "message_limit",
        "token_limit",
        "cost_limit",
        "time_limit",
        "spiral",
        "suspended",
        "resume_pending_expired",
        "new",
        "switch",
        "branch",
        "compressed",
        "pruned",
        "unlinked",
        "closed",
        "forgotten",
    ]


def test_endings_by_hand_are_not_automatic() -> None:
    by_hand = {"new", "switch", "branch", "compressed", "pruned", "unlinked", "closed", "forgotten"}
    assert {str(each) for each in EndReason if each not in AUTOMATIC} == by_hand
