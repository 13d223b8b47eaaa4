"""How pages tell durations and platforms."""

import pytest

from frontdesk.model.platforms import Platform
from frontdesk.web.pages import rendering, tiles

HOUR = 3600
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (-59.9, "59 s"),
        (61, "1 min 1 s"),
        (3 * HOUR + 20 * 60, "3 h 20 min"),
        (47 * HOUR + 59 * 60, "47 h 59 min"),
        (2 * DAY, "2 days 0 h"),
        (6 * DAY + 23 * HOUR, "6 days 23 h"),
        (7 * DAY + 23 * HOUR, "7 days"),
        (59 * DAY, "59 days"),
        (60 * DAY, "2 months"),
        (8759 * HOUR + 59 * 60, "12 months"),
        (729 * DAY, "24 months"),
        (730 * DAY, "2 years"),
    ],
)
def test_durations_are_told_in_the_units_that_people_use(seconds: float, told: str) -> None:
    assert rendering.span(seconds) == told


def test_every_platform_has_letters_of_its_own() -> None:
    ours = {name: tiles.tile(name) for name in tiles.BUILT_IN}
    assert len(set(ours.values())) == len(ours)
    assert ours["telegram"] == "te"
    assert ours["web"] != ours["webhook"]


def test_plugin_takes_no_letters_of_another_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {name: tiles.tile(name) for name in tiles.BUILT_IN}
    monkeypatch.setattr(Platform, "_known", dict(Platform._known))
    for name in ("webex", "tea", "te", "9", "a-b"):
        Platform.register(name)
    told = {str(name): tiles.tile(name) for name in Platform.known()}
    assert len(set(told.values())) == len(told)
    assert {name: told[name] for name in ours} == ours
    assert tiles.tile("nobody-has-registered-this") not in told.values()
    assert tiles.tile("") == "?"
