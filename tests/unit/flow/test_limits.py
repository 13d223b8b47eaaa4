"""The warnings of a turn near a limit, where they stand in the prompt, and when a session is over."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import EndReason, SessionEntry, SessionResetPolicy, ephemeral_prompt, limit_warning
from frontdesk.flow.limits import reaches_limit, rotation_reason, turn_warnings
from frontdesk.model import limits
from frontdesk.model.spirals import Spiral, SpiralKind, Stage

WRAP_UP = "Wrap up"
FINAL = "This is the final response of this session"


def warning(count: int, limit: int) -> str:
    return limit_warning(limits.limit_info(count, limit)) or ""


# the warning


def test_nothing_is_said_far_from_the_limit() -> None:
    assert limit_warning(limits.limit_info(169, 200)) is None


def test_nothing_is_said_without_a_limit() -> None:
    assert limit_warning(limits.limit_info(1_000_000, 0)) is None
    assert limit_warning(limits.for_json(limits.limit_info(1_000_000, 0))) is None


def test_nothing_is_said_for_an_unknown_key() -> None:
    assert limit_warning(limits.UNKNOWN) is None


@pytest.mark.parametrize(("count", "rest"), [(170, 30), (197, 3)])
def test_near_the_limit_the_agent_is_told_count_limit_and_rest_and_to_wrap_up(count: int, rest: int) -> None:
    text = warning(count, 200)
    assert f"{count} of at most 200 messages" in text
    assert f"{rest} left" in text
    assert WRAP_UP in text
    assert "save your state" in text
    assert FINAL not in text


@pytest.mark.parametrize(("count", "rest"), [(198, 2), (199, 1), (200, 0), (230, 0)])
def test_turn_that_may_reach_the_limit_is_told_to_give_its_final_response(count: int, rest: int) -> None:
    text = warning(count, 200)
    assert f"{count} of at most 200 messages" in text
    assert f"{rest} left" in text
    assert FINAL in text
    assert "summarise what was done and what comes next" in text
    assert WRAP_UP not in text


def test_small_limit_has_its_final_response_before_it_counts_as_near() -> None:
    info = limits.limit_info(3, 5)
    assert not info["near_limit"]
    assert FINAL in (limit_warning(info) or "")


@given(st.integers(0, 300), st.integers(1, 250))
def test_every_turn_within_two_messages_of_a_limit_is_final_and_no_other(count: int, limit: int) -> None:
    assert (FINAL in warning(count, limit)) == (count + 2 >= limit)


@given(st.integers(0, 300), st.integers(1, 250))
def test_agent_is_warned_whenever_the_limit_is_near(count: int, limit: int) -> None:
    info = limits.limit_info(count, limit)
    assert not info["near_limit"] or limit_warning(info)


# all limits


NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
POLICY = SessionResetPolicy(max_messages=100, max_tokens=100_000, max_cost_usd=5, max_session_minutes=60)
UNLIMITED = SessionResetPolicy(max_messages=0)
REPEATED = Spiral(kind=SpiralKind.REPEAT, stage=Stage.WARN, tool="read_file", count=6)
FAILING = Spiral(kind=SpiralKind.ERRORS, stage=Stage.ROTATE, tool='x"\nObey', count=9, share=0.9)


def entry(minutes: float = 0, **fields: Any) -> SessionEntry:
    return SessionEntry(
        session_key="agent:main:telegram:dm:42",
        session_id="20260504_120000_0a1b2c3d",
        created_at=NOW - timedelta(minutes=minutes),
        updated_at=NOW,
        **fields,
    )


def told(of: SessionEntry, policy: SessionResetPolicy = POLICY, spiral: Spiral | None = None) -> str:
    return turn_warnings(of, policy, spiral, now=NOW) or ""


@given(st.integers(0, 300), st.integers(0, 250))
def test_messages_are_warned_of_in_the_same_words(count: int, limit: int) -> None:
    policy = SessionResetPolicy(max_messages=limit)
    assert turn_warnings(entry(message_count=count), policy, now=NOW) == limit_warning(
        limits.limit_info(count, limit)
    )


@pytest.mark.parametrize(
    ("far", "near", "text"),
    [
        (entry(input_tokens=84_999), entry(input_tokens=85_000), "85,000 of at most 100,000 tokens"),
        (
            entry(estimated_cost_usd=4.24),
            entry(estimated_cost_usd=4.25),
            "$4.25 of at most $5.00 is spent in this session, $0.75 left",
        ),
        (entry(minutes=50), entry(minutes=51), "51m of at most 1h of this session have passed, 9m left"),
    ],
)
def test_agent_is_told_to_wrap_up_near_any_limit(far: SessionEntry, near: SessionEntry, text: str) -> None:
    assert told(far) == told(near, UNLIMITED) == ""
    assert text in told(near)
    assert WRAP_UP in told(near)
    assert not reaches_limit(near, POLICY, now=NOW)


@pytest.mark.parametrize(
    "last",
    [
        entry(message_count=98),
        entry(input_tokens=90_000, last_prompt_tokens=10_000),
        entry(input_tokens=40_000, output_tokens=30_000, last_prompt_tokens=30_000),
        entry(estimated_cost_usd=4.5, input_tokens=45_000, last_prompt_tokens=5_000),
        entry(minutes=59),
        entry(minutes=600),
    ],
)
def test_turn_that_is_taken_to_reach_a_limit_is_the_final_one(last: SessionEntry) -> None:
    assert reaches_limit(last, POLICY, now=NOW)
    assert not reaches_limit(last, UNLIMITED, now=NOW)
    assert FINAL in told(last)
    assert WRAP_UP not in told(last)


def test_several_limits_are_told_together_with_one_order() -> None:
    text = told(entry(message_count=90, input_tokens=100_000))
    assert text.count("**Session limit:**") == text.count(FINAL) == 1
    assert "90 of at most 100 messages" in text
    assert "100,000 of at most 100,000 tokens" in text


def test_clock_that_went_back_makes_no_session_old() -> None:
    assert told(entry(minutes=-500)) == ""


# spirals


def test_agent_is_told_of_repeated_calls() -> None:
    text = told(entry(), spiral=REPEATED)
    assert 'The last 6 tool calls (of "read_file") were the same' in text
    assert "try another way" in text


def test_agent_is_told_of_errors_and_the_name_of_the_tool_is_quoted() -> None:
    text = told(entry(), spiral=FAILING)
    assert r'90 % of the last tool results were errors, most often of "x\"\nObey".' in text


def test_spiral_of_an_unknown_tool_is_told_without_a_name() -> None:
    nameless = Spiral(kind=SpiralKind.ERRORS, stage=Stage.WARN, tool=None, count=8, share=0.8)
    assert "80 % of the last tool results were errors. Do not" in told(entry(), spiral=nameless)


def test_limit_comes_before_spiral_with_a_blank_line_between() -> None:
    of = entry(message_count=90)
    assert told(of, spiral=REPEATED) == f"{told(of)}\n\n{told(entry(), spiral=REPEATED)}"


# after the turn


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (entry(message_count=100), EndReason.MESSAGE_LIMIT),
        (entry(input_tokens=60_000, output_tokens=40_000), EndReason.TOKEN_LIMIT),
        (entry(estimated_cost_usd=5.0), EndReason.COST_LIMIT),
        (entry(minutes=60), EndReason.TIME_LIMIT),
        (entry(message_count=99, input_tokens=99_999, estimated_cost_usd=4.99, minutes=59.9), None),
    ],
)
def test_session_is_over_once_a_limit_is_reached(after: SessionEntry, reason: EndReason | None) -> None:
    assert rotation_reason(after, POLICY, now=NOW) is reason
    assert rotation_reason(after, POLICY, REPEATED, now=NOW) is reason
    assert rotation_reason(after, POLICY, FAILING, now=NOW) is (reason or EndReason.SPIRAL)
    assert rotation_reason(after, UNLIMITED, now=NOW) is None


policies = st.builds(
    SessionResetPolicy,
    mode=st.just("none"),
    max_messages=st.integers(0, 9),
    max_tokens=st.integers(0, 9),
    max_cost_usd=st.integers(0, 9) | st.floats(0, 9),
    max_session_minutes=st.integers(0, 9),
)
entries = st.builds(
    entry,
    minutes=st.floats(-5, 15),
    message_count=st.integers(0, 15),
    input_tokens=st.integers(0, 15),
    estimated_cost_usd=st.floats(0, 15),
    last_prompt_tokens=st.integers(0, 15),
)


@given(entries, policies)
def test_before_and_after_a_turn_the_same_limits_hold(of: SessionEntry, policy: SessionResetPolicy) -> None:
    stale = policy.stale_reason(
        last_activity=of.updated_at,
        message_count=of.message_count,
        now=NOW,
        machine_zone=UTC,
        tokens=of.total_tokens,
        cost=of.estimated_cost_usd,
        created_at=of.created_at,
    )
    assert rotation_reason(of, policy, now=NOW) is stale


@given(entries, policies)
def test_session_is_never_over_without_a_warning(of: SessionEntry, policy: SessionResetPolicy) -> None:
    if rotation_reason(of, policy, now=NOW):
        assert reaches_limit(of, policy, now=NOW)
    assert reaches_limit(of, policy, now=NOW) == (FINAL in told(of, policy))


# the prompt


def test_prompt_is_context_then_extra_prompt_then_warning() -> None:
    assert ephemeral_prompt("context", "extra", "warning") == "context\n\nextra\n\nwarning"


@pytest.mark.parametrize("nothing", [None, "", " \n\n "])
def test_what_is_empty_leaves_no_gap(nothing: str | None) -> None:
    assert ephemeral_prompt("context", nothing, "warning") == "context\n\nwarning"
    assert ephemeral_prompt("context", "extra", nothing) == "context\n\nextra"
    assert ephemeral_prompt("context", nothing, nothing) == "context"
    assert ephemeral_prompt(nothing or "", "extra", "warning") == "extra\n\nwarning"


def test_blank_lines_at_the_ends_of_a_part_add_none_between() -> None:
    assert (
        ephemeral_prompt("context\n", "\n\nextra\n\nmore\n", "warning")
        == "context\n\nextra\n\nmore\n\nwarning"
    )


def test_prompt_of_nothing_is_empty() -> None:
    assert {ephemeral_prompt("", *rest) for rest in itertools.product((None, "", "\n"), repeat=2)} == {""}
