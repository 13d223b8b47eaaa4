"""What differs from the last approved action, in a few lines and with secrets hidden."""

from typing import Any

from frontdesk.formats import canonical, cards, comparisons

SECRET, OTHER = "aB3dE5gH7jK9aB3d", "zY8xW6vU4tS2zY8x"


def compared(before: Any, after: Any, action: str = "run") -> list[str]:
    payloads = [canonical.payload(action, details) for details in (before, after)]
    return [*map(str, cards.make(payloads[1], "", "bot", before=payloads[0]).comparison)]


def test_lines_that_went_and_came_are_shown() -> None:
    before = {"argv": ["kubectl", "get", "ns", "staging"], "cwd": "/x"}
    after = {"argv": ["kubectl", "delete", "ns", "staging"], "cwd": "/x"}
    assert compared(before, after) == ['− - "get"', '+ - "delete"']


def test_same_action_has_no_comparison() -> None:
    assert compared({"a": 1}, {"a": 1}) == []


def test_secrets_are_hidden_in_both() -> None:
    assert compared({"token": SECRET}, {"token": OTHER}) == [comparisons.HIDDEN_ALONE]
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


def test_very_long_actions_are_compared_in_no_time() -> None:
    before, after = ({"a": [str(number % 7) for number in range(start, start + 20_000)]} for start in (0, 3))
    assert compared(before, after)[-1].endswith("more lines differ]")
