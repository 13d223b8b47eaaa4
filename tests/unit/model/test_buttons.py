"""Choices and the signs that stand for buttons."""

import pytest

from frontdesk import errors
from frontdesk.model import events
from frontdesk.model.buttons import APPROVE_SIGN, KEYCAP, plain_sign


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("a", "a"),
        ("",),
        (" a",),
        ("a\nb",),
        ("a\u2028b",),
        ("x" * 101,),
        ("a\0b",),
        ("\ud800",),
        tuple(map(str, range(21))),
    ],
)
def test_choice_has_few_different_options_of_one_line(options: tuple[str, ...]) -> None:
    with pytest.raises(errors.InvalidInput):
        events.Choice(options=options)


def test_choice_is_read_by_its_numbers() -> None:
    assert events.Choice(text="Which?", options=("Red", "Blue")).numbered == "Which?\n\n1. Red\n2. Blue"
    assert events.Choice(options=("Red",)).numbered == "1. Red"


@pytest.mark.parametrize(
    ("sign", "plain"),
    [
        (f"2{KEYCAP}", "2"),
        (f"{APPROVE_SIGN}\ufe0f", APPROVE_SIGN),
        (" 👍🏽 ", "👍"),
        ("👩‍🚀", "👩‍🚀"),
    ],
)
def test_looks_of_a_sign_change_nothing(sign: str, plain: str) -> None:
    assert plain_sign(sign) == plain
