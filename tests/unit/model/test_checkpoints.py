"""Checkpoints: what may be an id, a link, a maximum."""

from typing import Any

import pytest

from frontdesk import errors
from frontdesk.model import checkpoints


@pytest.mark.parametrize("text", ["0123456789ab", "a" * 12])
def test_ids_are_twelve_hex_digits(text: str) -> None:
    assert checkpoints.is_checkpoint_id(text)


@pytest.mark.parametrize(
    "text", ["", "--foo", "HEAD", "0123456789AB", "0123456789ab\n", "../456789ab", "0123456789abc", None, 5]
)
def test_nothing_else_is_an_id(text: Any) -> None:
    assert not checkpoints.is_checkpoint_id(text)


@pytest.mark.parametrize("value", [None, "20260105_120000_0a1b2c3d", "turn 7"])
def test_links_to_sessions_and_turns_are_kept(value: str | None) -> None:
    assert checkpoints.check_link("turn_id", value) == value


@pytest.mark.parametrize("value", ["", "a\nb", "\ud800", "a" * 513, 5])
def test_links_that_cannot_be_stored_are_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="turn_id"):
        checkpoints.check_link("turn_id", value)


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "20", None])
def test_maximum_is_a_count_from_one(value: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="max_checkpoints"):
        checkpoints.check_maximum(value)
