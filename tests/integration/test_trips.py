"""How often a message waits for PostgreSQL, counted."""

from pathlib import Path

from benchmarks import trips

ROUNDS = 7


async def test_message_waits_no_more_often_than_it_should(tmp_path: Path, postgres_url: str) -> None:
    measured = await trips.measure(tmp_path, postgres_url, rounds=ROUNDS)
    found = {what: trips.least(windows).figures["round trips"] for what, windows in measured.items()}
    assert {what: found[what] for what, most in trips.CEILINGS.items() if found[what] > most} == {}
