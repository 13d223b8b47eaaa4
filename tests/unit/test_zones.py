"""The machine's time zone."""

import logging
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import resources
from pathlib import Path

import pytest

from frontdesk import zones

BERLIN = resources.files("tzdata").joinpath("zoneinfo", "Europe", "Berlin").read_bytes()
JANUARY, JULY = datetime(2026, 1, 15, 12), datetime(2026, 7, 15, 12)  # noqa: DTZ001


def offsets(zone: tzinfo) -> tuple[float, float]:
    """The hours ahead of UTC in winter and in summer."""
    hour = timedelta(hours=1)
    winter, summer = (moment.replace(tzinfo=zone).utcoffset() for moment in (JANUARY, JULY))
    assert winter is not None
    assert summer is not None
    return winter / hour, summer / hour


@pytest.fixture
def berlin(tmp_path: Path) -> Path:
    file = tmp_path / "Berlin"
    file.write_bytes(BERLIN)
    return file


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Europe/Berlin", (1, 2)),
        (":Europe/Berlin", (1, 2)),
        ("CET-1CEST,M3.5.0,M10.5.0/3", (1, 2)),
        (":CET-1CEST,M3.5.0,M10.5.0/3", (1, 2)),
        ("XYZ5ZYX", (-5, -4)),
        ("<+03>-3", (3, 3)),
        ("<-0330>3:30", (-3.5, -3.5)),
    ],
)
def test_zone_is_the_one_that_the_environment_names(name: str, expected: tuple[float, float]) -> None:
    assert offsets(zones.machine_zone({"TZ": name})) == expected


def test_rule_changes_at_its_hour() -> None:
    rule = zones.find_zone("XYZ-1ZYX,M3.5.0,M10.5.0/3")
    named = zoneinfo.ZoneInfo("Europe/Berlin")
    for hours in range(24 * 365):
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
        assert moment.astimezone(rule).utcoffset() == moment.astimezone(named).utcoffset()


@pytest.mark.parametrize("prefix", ["", ":"])
def test_absolute_path_is_a_zone_file(prefix: str, berlin: Path) -> None:
    assert offsets(zones.machine_zone({"TZ": f"{prefix}{berlin}"})) == (1, 2)


@pytest.mark.parametrize("environ", [{}, {"TZ": ""}])
def test_without_a_name_the_machine_has_its_zone(environ: dict[str, str], berlin: Path) -> None:
    assert offsets(zones.machine_zone(environ, berlin)) == (1, 2)


def test_machine_without_a_zone_is_on_utc(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert zones.machine_zone({}, tmp_path / "none") is UTC
    assert not caplog.records


@pytest.mark.parametrize(
    "name", ["Foo/Bar", "Foo", "Europe", "../Berlin", "/", "/no/where", "CET-1CEST,M99", "XY1", "a\nb", "é5"]
)
def test_name_that_is_not_understood_means_utc_and_is_logged(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert zones.machine_zone({"TZ": name}) is UTC
    (record,) = caplog.records
    assert "event=time_zone_unknown" in record.message
    assert name.strip("\né5ab") in record.message


@pytest.mark.parametrize("length", [0, 10, 60, 200])
def test_damaged_file_means_utc_and_is_logged(
    length: int, berlin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    berlin.write_bytes(BERLIN[:length])
    assert zones.machine_zone({}, berlin) is UTC
    assert str(berlin) in caplog.text
