"""Bodies of many values: counted before they are decoded."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import errors
from frontdesk.channels import called
from frontdesk.channels.api_server import inbound, responding

MOST = 5
TEXTS = st.text('",:[]{}\\ax') | st.sampled_from(["\\", '\\"', "\\\\", '"', ""])
VALUES = st.recursive(
    TEXTS | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def values_of(value: Any) -> int:
    """Those inside of it; an empty list or object counts as if it had one."""
    if not isinstance(value, list | dict):
        return 0
    inner = value if isinstance(value, list) else list(value.values())
    return max(len(inner), 1) + sum(map(values_of, inner))


@given(value=VALUES)
def test_values_are_counted_whatever_texts_hold(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(called, "MOST_VALUES", MOST)
        body = json.dumps(value, separators=(",", ":")).encode()
        if values_of(value) > MOST:
            with pytest.raises(errors.InvalidInput, match="more than 5 values"):
                called.read_json(object, body)
        else:
            assert called.read_json(object, body) == value


@pytest.mark.parametrize(("read", "field"), [(inbound.read_ask, "messages"), (responding.read_ask, "input")])
def test_wide_part_of_a_message_is_refused(read: Any, field: str) -> None:
    def body(count: int) -> bytes:
        part = {"type": "x", "wide": {f"k{number}": 1 for number in range(count)}}
        return json.dumps({field: [{"role": "user", "content": [part]}]}).encode()

    with pytest.raises(errors.InvalidInput, match="values"):
        read(body(called.MOST_VALUES))
    read(body(1_000))


def test_text_may_have_as_many_signs_as_it_likes() -> None:
    text = 'a, "b", [c], {d} \\ ' * called.MOST_VALUES
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    assert inbound.read_ask(body).messages[0]["content"] == text
