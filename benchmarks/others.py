"""The same turn in other libraries, each in an environment of its own that `make peers` installs."""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import ours, raw
from benchmarks.table import Result, Spent, compared, medians, timed

SCRIPTS = Path(__file__).parent / "peers"
INSTALLED = Path(__file__).parents[1] / ".peers"
NAMES = {"openai_agents": "SQLiteSession of OpenAI Agents (no routing, no tokens)"}

Turn = Callable[[], Awaitable[Spent]]


async def turns(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """A turn of one client in one chat, of each beside raw and ours."""
    rounds = 100 if quick else 600
    for name, what in NAMES.items():
        python = INSTALLED / name / "bin" / "python"
        if not python.exists():
            print(f"  without {name}: `make peers` installs it, where PyPI can be reached", file=sys.stderr)
            continue
        with _peer(python, name, folder) as theirs:
            peer, bare, mine = await _beside(folder, theirs, rounds)
        yield compared("turn, one client, 1 chat: ours", mine, bare, None)
        yield compared(f"  {what}", peer, bare, None)


async def _beside(folder: Path, theirs: Turn, rounds: int) -> list[Spent]:
    db = raw.open_raw(folder / "raw.db")
    raw.fill(db, 1)

    async def bare_turn() -> None:
        raw.turn(db, "0")

    async with await ours.open_filled(folder / "ours.db", 1) as store:
        our_turn = partial(ours.turn, store, ours.source_of("0"))
        runs: list[Turn] = [theirs, partial(timed, bare_turn), partial(timed, our_turn)]
        await medians(20, *runs)  # warm
        found = await medians(rounds, *runs)
    db.close()
    return found


@contextmanager
def _peer(python: Path, name: str, folder: Path) -> Iterator[Turn]:
    """Somebody else's library at work in a process of its own, which says itself how long a turn took."""
    command = [str(python), str(SCRIPTS / f"{name}.py"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        async def turn() -> Spent:
            assert process.stdin
            assert process.stdout
            process.stdin.write("0\n")
            process.stdin.flush()
            return Spent(*map(float, process.stdout.readline().split()))

        yield turn
