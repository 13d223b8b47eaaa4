"""Changing the configuration file: what somebody has written there stays."""

from pathlib import Path

import pytest

from frontdesk.config import editing

FILE = Path("frontdesk.toml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '[channels.telegram]\nallow = [\n  "1", # Ann\n  "2", # Bob\n]\n# end\n',
            '[channels.telegram]\nallow = [\n  "1", # Ann\n  "2", # Bob\n  "3",\n]\n# end\n',
        ),
        (
            '[channels.telegram]\nallow = ["1", "2"] # Ann and Bob\n',
            '[channels.telegram]\nallow = ["1", "2", "3"] # Ann and Bob\n',
        ),
    ],
)
def test_comments_beside_people_stay_when_somebody_is_added(before: str, after: str) -> None:
    people = ["1", "2", "3"]
    assert editing.edited(FILE, before, {("channels", "telegram", "allow"): people}) == after


def test_list_that_is_another_one_takes_the_place_of_the_one_before() -> None:
    made = editing.edited(FILE, 'names = ["1", "2"]\n', {("names",): ["2", "3"], ("gone",): None})
    assert made == 'names = ["2", "3"]\n'
