"""What a message costs, counted: calls, statements, transactions, pages, syncs and files on its way."""

from pathlib import Path

from benchmarks import way

BOUNDS = way.CEILINGS | {way.IDLE: {**way.CEILINGS[way.IDLE], "write transactions": 0}}
IDLE_SECONDS = 10.0
ROUNDS = 7
"""Of a few, work by the clock falls into most when the machine is busy."""


async def test_message_costs_no_more_than_it_should(tmp_path: Path) -> None:
    measured = await way.measure(tmp_path, rounds=ROUNDS, idle_seconds=IDLE_SECONDS)
    for what, bounds in BOUNDS.items():
        found = way.figures(measured[what], IDLE_SECONDS if what == way.IDLE else 1.0)
        assert {name: found[name] for name in bounds if found[name] > bounds[name]} == {}, what
