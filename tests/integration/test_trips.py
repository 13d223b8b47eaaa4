"""How often a message waits for PostgreSQL, counted."""

from pathlib import Path

from benchmarks import trips, way

ROUNDS = 7
"""Of a few, work by the clock falls into most when the machine is busy."""


async def test_message_waits_no_more_often_than_it_should(tmp_path: Path, postgres_url: str) -> None:
    measured = await trips.measure(tmp_path, postgres_url, rounds=ROUNDS)
    found = {what: way.figures(windows)["round trips"] for what, windows in measured.items()}
    assert {what: found[what] for what, most in trips.CEILINGS.items() if found[what] > most} == {}
