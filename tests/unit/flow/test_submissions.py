"""Requests as they come in."""

from typing import Any

import pytest

from frontdesk.flow.confirmations import submissions

LONG = "x" * submissions.BRIEF_CHARACTERS


@pytest.mark.parametrize(
    "details", [{}, {"text": "hello", "list": [1, 2.5, None, True]}, {"in": {"in": ["x"]}}]
)
def test_small_request_is_read_where_it_comes_in(details: dict[str, Any]) -> None:
    assert submissions.is_brief({"action": "send", "details": details})


@pytest.mark.parametrize(
    "details",
    [{"text": LONG}, {LONG: 1}, {"in": [[LONG]]}, [0] * 1_000, {str(n): n for n in range(100)}, {1, 2}],
)
def test_long_or_strange_request_is_left_to_a_thread(details: object) -> None:
    assert not submissions.is_brief({"action": "send", "details": details})
