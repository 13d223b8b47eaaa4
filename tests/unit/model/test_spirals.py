"""Spirals: repeated and failing tool calls, when they are warned of, and when they end a session."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.model import spirals
from frontdesk.model.policies import SessionResetPolicy
from frontdesk.model.spirals import Spiral, SpiralKind, Stage

Rows = list[dict[str, Any]]
POLICY = SessionResetPolicy()
REPEATS_ONLY = SessionResetPolicy(spiral_errors=0)
ERRORS_ONLY = SessionResetPolicy(spiral_repeats=0)
OFF = SessionResetPolicy(spiral_repeats=0, spiral_errors=0)

USER = {"role": "user", "content": "Go on."}
ANSWER = {"role": "assistant", "content": "I tried."}


def call(tool: str = "read", arguments: Any = "{}", *, failed: bool = False, number: int = 0) -> Rows:
    """A call and its result."""
    made = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    result: dict[str, Any] = {"role": "tool", "tool_call_id": f"c{number}", "content": "…"}
    return [{"role": "assistant", "tool_calls": [made]}, result | ({"is_error": True} if failed else {})]


def same(count: int) -> Rows:
    return call() * count


def different(count: int, *, failed: bool = False, start: int = 0) -> Rows:
    return [
        row
        for number in range(start, start + count)
        for row in call("fetch", json.dumps({"page": number}), failed=failed, number=number)
    ]


def turn(*rows: Rows) -> Rows:
    return [USER, *(row for part in rows for row in part), ANSWER]


def stage(rows: Rows, policy: SessionResetPolicy = POLICY) -> Stage | None:
    found = spirals.look(rows, policy)
    return found.stage if found else None


# repeats


def test_same_call_repeated_to_the_limit_is_warned_of() -> None:
    assert spirals.look(turn(same(4)), POLICY) is None
    assert spirals.look(turn(same(5)), POLICY) == Spiral(
        kind=SpiralKind.REPEAT, stage=Stage.WARN, tool="read", count=5
    )


def test_other_arguments_or_another_tool_break_the_row() -> None:
    assert spirals.look(turn(different(20)), POLICY) is None
    assert spirals.look(turn(same(4), call("write"), same(4)), POLICY) is None
    assert spirals.look(turn(same(9), call("write")), POLICY) is None


@pytest.mark.parametrize(
    "spellings",
    [
        ['{"a": 1, "b": [2]}', '{"b":[2],"a":1}'],
        [{"a": 1}, '{"a": 1}'],
        ["not json"],
        [None, "", "{}"],
    ],
)
def test_arguments_are_compared_by_what_they_mean(spellings: list[Any]) -> None:
    rows = [row for number in range(6) for row in call(arguments=spellings[number % len(spellings)])]
    assert stage(turn(rows)) is Stage.WARN


@pytest.mark.parametrize(("one", "other"), [("1", "true"), ("[1]", "[1.0]"), ("x", "y"), ('{"a":0}', "{}")])
def test_arguments_that_mean_something_else_are_not_the_same(one: str, other: str) -> None:
    assert stage(turn((call(arguments=one) + call(arguments=other)) * 5)) is None


def test_calls_made_together_count_one_by_one() -> None:
    (made, _) = call()
    together = {"role": "assistant", "tool_calls": made["tool_calls"] * 5}
    assert stage(turn([together])) is Stage.WARN


def test_call_that_people_ask_for_again_and_again_is_no_spiral() -> None:
    assert stage([row for _ in range(30) for row in turn(same(1))]) is None


def test_message_not_meant_for_the_agent_breaks_nothing() -> None:
    observed = USER | {"observed": True}
    assert stage(turn(same(3), [observed], same(3))) is Stage.WARN


# errors


def test_errors_that_are_most_of_the_window_are_warned_of() -> None:
    rows = turn(different(2), different(8, failed=True, start=2))
    assert spirals.look(rows, POLICY) == Spiral(
        kind=SpiralKind.ERRORS, stage=Stage.WARN, tool="fetch", count=8, share=0.8
    )
    assert stage(turn(different(3), different(7, failed=True, start=3))) is None


def test_fewer_results_than_the_window_say_nothing() -> None:
    assert stage(turn(different(9, failed=True))) is None


def test_errors_of_several_turns_count_together() -> None:
    earlier, later = turn(different(5, failed=True)), turn(different(5, failed=True, start=5))
    assert stage(earlier) is None
    assert stage(earlier + later) is Stage.WARN


def test_text_about_errors_is_no_error() -> None:
    rows = turn(different(10))
    for row in rows:
        if row["role"] == "tool":
            row |= {"content": "Error: everything failed", "is_error": "true"}
    assert stage(rows) is None


def test_tool_that_failed_most_often_is_named() -> None:
    failing = [call("b", str(n), failed=True) for n in range(4)] + [
        call("a", str(n), failed=True) for n in range(4)
    ]
    rows = [row for made in [*failing, call("c", "8", failed=True), call("c", "9")] for row in made]
    found = spirals.look(turn(rows), ERRORS_ONLY)
    assert found
    assert found.tool == "a"  # the first by name of those that failed equally often


def test_result_whose_call_is_unknown_still_counts() -> None:
    results = [{"role": "tool", "content": "", "is_error": True}] * 10
    found = spirals.look(turn(results), POLICY)
    assert found
    assert (found.tool, found.count) == (None, 10)


# warned first, ended when it goes on


SPINNING = {"repeats": turn(same(5)), "errors": turn(different(10, failed=True))}
either = pytest.mark.parametrize("spinning", SPINNING.values(), ids=SPINNING)


@either
def test_message_that_is_not_answered_yet_changes_nothing(spinning: Rows) -> None:
    assert stage([*spinning, USER]) is Stage.WARN
    assert stage([*spinning, USER, USER]) is Stage.WARN


@either
def test_spiral_that_goes_on_in_the_warned_turn_ends_the_session(spinning: Rows) -> None:
    assert stage(spinning + spinning) is Stage.ROTATE


@either
def test_spiral_that_the_warned_turn_left_is_over(spinning: Rows) -> None:
    assert stage(spinning + turn(different(4, start=90))) is None
    assert stage(spinning + turn()) is None


@either
def test_spiral_after_a_quiet_turn_is_warned_of_anew(spinning: Rows) -> None:
    assert stage(spinning + turn() + spinning) is Stage.WARN


@pytest.mark.parametrize(
    "rows", [turn(same(10)), turn(different(20, failed=True))], ids=["repeats", "errors"]
)
def test_spiral_twice_as_long_is_not_warned_of_any_more(rows: Rows) -> None:
    assert stage(rows) is Stage.ROTATE
    assert stage(rows[:-3]) is Stage.WARN


def test_what_ends_the_session_comes_before_what_is_warned_of() -> None:
    rows = turn(different(10, failed=True)) + turn(call(failed=True) * 5)
    found = spirals.look(rows, POLICY)
    assert found
    assert (found.kind, found.stage) == (SpiralKind.ERRORS, Stage.ROTATE)


# settings


@pytest.mark.parametrize("rows", [turn(call(failed=True) * 40)])
def test_zero_turns_each_of_them_off(rows: Rows) -> None:
    assert spirals.look(rows, OFF) is None
    assert [found and found.kind for found in (spirals.look(rows, REPEATS_ONLY),)] == [SpiralKind.REPEAT]
    assert [found and found.kind for found in (spirals.look(rows, ERRORS_ONLY),)] == [SpiralKind.ERRORS]


def test_lengths_are_those_of_the_policy() -> None:
    policy = SessionResetPolicy(spiral_repeats=2, spiral_errors=0.5, spiral_window=4)
    assert stage(turn(same(2)), policy) is Stage.WARN
    assert stage(turn(different(2), different(2, failed=True, start=2)), policy) is Stage.WARN


# any transcript


class Counting(list[Any]):
    """A transcript that knows how many of its rows were taken."""

    taken = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.taken += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Any:
        raise AssertionError("read from the beginning")


def test_only_the_last_rows_are_read() -> None:
    rows = Counting(turn(same(1)) * 5000)
    spirals.look(rows, POLICY)
    assert rows.taken == 80


junk = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.none(), max_size=2)
some_call = st.fixed_dictionaries(
    {}, optional={"id": junk, "function": junk | st.fixed_dictionaries({"name": junk, "arguments": junk})}
)
some_row = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "session_meta"]) | junk},
    optional={
        "content": junk,
        "tool_calls": junk | st.lists(some_call | junk, max_size=3),
        "tool_call_id": junk,
        "tool_name": junk,
        "is_error": junk,
        "observed": junk,
    },
)
some_policy = st.builds(
    SessionResetPolicy,
    spiral_repeats=st.sampled_from([0, 2, 3]),
    spiral_errors=st.sampled_from([0, 0.3, 1]),
    spiral_window=st.integers(2, 4),
)
steps = st.sampled_from([[USER], [ANSWER], call(), call(failed=True), call("write", failed=True)])


@given(st.lists(some_row, max_size=20), some_policy)
def test_whatever_the_rows_hold_there_is_an_answer(rows: Rows, policy: SessionResetPolicy) -> None:
    assert spirals.look(rows, policy) == spirals.look(rows, policy)


@given(st.lists(steps, max_size=25), some_policy)
def test_spiral_has_reached_a_limit_that_is_set(parts: list[Rows], policy: SessionResetPolicy) -> None:
    found = spirals.look([row for rows in parts for row in rows], policy)
    if found and found.kind is SpiralKind.REPEAT:
        assert 0 < policy.spiral_repeats <= found.count
    elif found:
        assert 0 < policy.spiral_errors <= found.share == found.count / policy.spiral_window


@given(st.lists(steps, max_size=25), some_policy, st.integers(1, 3))
def test_new_messages_alone_never_change_the_verdict(
    parts: list[Rows], policy: SessionResetPolicy, count: int
) -> None:
    rows = [row for part in parts for row in part]
    long = SessionResetPolicy(
        spiral_repeats=policy.spiral_repeats and 30 + policy.spiral_repeats,
        spiral_errors=policy.spiral_errors,
        spiral_window=policy.spiral_window,
    )
    assert spirals.look([*rows, *[USER] * count], long) == spirals.look(rows, long)
