"""What differs from the last approved action, in a few lines and with secrets hidden."""

from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.formats import canonical, comparisons, precedents
from frontdesk.formats.cards import Known
from frontdesk.model.confirmations import Confirmation
from frontdesk.model.precedents import Precedent

SECRET, OTHER = "aB3dE5gH7jK9aB3d", "zY8xW6vU4tS2zY8x"
NOW = datetime(2028, 3, 1, 12, tzinfo=UTC)


def known(before: Any, after: Any, names: tuple[str, str] = ("run", "run")) -> Known:
    payloads = [canonical.payload(name, each) for name, each in zip(names, (before, after), strict=True)]
    return precedents.known_of(
        Confirmation(
            id="c_1",
            action=names[1],
            description="",
            digest=canonical.digest(payloads[1]),
            requester="bot",
            payload=payloads[1],
            created_at=NOW,
            expires_at=NOW,
            precedent=Precedent(is_first_for_requester=False, is_first_for_target=False, payload=payloads[0]),
        )
    )


def test_that_nothing_was_compared_is_said() -> None:
    asked = Confirmation(
        id="c_1",
        action="run",
        description="",
        digest="",
        requester="bot",
        payload=canonical.payload("run", {}),
        created_at=NOW,
        expires_at=NOW,
        precedent=Precedent(is_first_for_requester=False, is_first_for_target=False),
    )
    (odd,) = precedents.known_of(asked).unusual
    assert odd.text == precedents.NOT_COMPARED


def compared(before: Any, after: Any) -> list[str]:
    return [*map(str, known(before, after).comparison)]


def places(before: Any, after: Any) -> str:
    (odd,) = known(before, after).unusual
    return odd.text.removeprefix("Other than the last approval of this kind in ").removesuffix(".")


def test_command_is_compared_as_one_line() -> None:
    before = {"argv": ["kubectl", "get", "ns", "staging"], "cwd": "/x"}
    after = {"argv": ["kubectl", "delete", "ns", "staging"], "cwd": "/x"}
    assert compared(before, after) == ['− "kubectl get ns staging"', '+ "kubectl delete ns staging"']
    assert places(before, after) == "argv[1]"


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({"a": 1}, {"a": 2}, "a"),
        ({"a": {"b c": [1, 2]}}, {"a": {"b c": [1, 3]}}, 'a."b c"[1]'),
        ({"a": 1}, {"a": 1, "b": None}, "b"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"a": 0}, {"a": "0"}, "a"),
        ({str(place): 0 for place in range(9)}, {str(place): 1 for place in range(9)}, None),
    ],
)
def test_places_that_differ_are_named(before: Any, after: Any, wanted: str | None) -> None:
    assert places(before, after) == (wanted or '"0", "1", "2", "3", "4", 4 more places')


def test_other_name_is_a_difference() -> None:
    shown = known({"a": 1}, {"a": 1}, ("send", "sеnd"))
    assert "in the name." in shown.unusual[0].text
    assert [line.sign for line in shown.comparison] == ["−", "+"]


def test_same_action_has_no_comparison() -> None:
    assert known({"a": 1}, {"a": 1}) == Known()


def test_secrets_are_hidden_in_both() -> None:
    assert compared({"token": SECRET}, {"token": OTHER}) == [comparisons.HIDDEN_ALONE]
    assert places({"token": SECRET}, {"token": OTHER}) == "token"
    for before, after in ((SECRET, "plain"), ("plain", SECRET)):
        lines = compared({"token": before}, {"token": after})
        assert len(lines) == 2
        assert SECRET not in "".join(lines)


def test_many_lines_are_cut_and_counted() -> None:
    lines = compared({"a": [*range(200)]}, {"a": [*range(1_000, 1_200)]})
    assert len(lines) == comparisons.MOST_LINES + 1
    assert lines[0] == "− - 0"
    assert lines[6] == "+ - 1000"
    assert lines[-1] == "[388 more lines differ]"


def test_of_long_lines_the_difference_is_shown() -> None:
    before, after = (f"{'x' * 5_000}{word}{'y' * 5_000}" for word in ("keep", "drop"))
    gone, new = compared({"a": before}, {"a": after})
    assert "xkeepy" in gone
    assert "xdropy" in new
    assert max(map(len, (gone, new))) < 300


def test_very_long_actions_are_compared_in_no_time() -> None:
    before, after = ({"a": [str(number % 7) for number in range(start, start + 20_000)]} for start in (0, 3))
    assert compared(before, after)[-1].endswith("more lines differ]")
