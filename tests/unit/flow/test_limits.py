"""The warnings of a turn near its session's message limit, and where they stand in the prompt."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import ephemeral_prompt, limit_warning
from frontdesk.model import limits

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
