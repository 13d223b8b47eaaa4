"""``python -m benchmarks [--quick] [--only WORD] [--folder PATH]``"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import uvloop

from benchmarks import (
    burst,
    channels,
    confirmations,
    connections,
    finds,
    followers,
    gateway,
    lists,
    nodes,
    others,
    postgres,
    starts,
    trips,
    turns,
    way,
)
from benchmarks.table import Result, show

Benchmark = Callable[[Path, bool], AsyncIterator[Result]]
ALL: dict[str, Benchmark] = {
    "turn": turns.one_client,
    "long": turns.long_chat,
    "many": turns.many_chats,
    "counted": turns.counted,
    "others": others.turns,
    "search": finds.search,
    "lists": finds.lists,
    "pages": lists.pages,
    "start": starts.first,
    "help": starts.helped,
    "postgres": postgres.turns,
    "gateway": gateway.turned,
    "channels": channels.platforms,
    "burst": burst.burst,
    "nodes": nodes.nodes,
    "bounds": connections.bounded,
    "crowd": connections.crowded,
    "told": followers.told,
    "followed": followers.followed,
    "waiting": followers.waiting,
    "idle": followers.idle,
    "confirmations": confirmations.cycles,
    "audit": confirmations.verification,
    "expiry": confirmations.expiry,
    "way": way.counts,
    "trips": trips.counts,
}
LONG = frozenset(
    {
        "pages",
        "channels",
        "nodes",
        "bounds",
        "crowd",
        "told",
        "followed",
        "waiting",
        "idle",
        "expiry",
        "trips",
    }
)
"""Left out of a quick run, unless asked for."""


def main() -> int:
    options = _options()
    # Programs that are started are what is measured, and not how Python compiles them anew each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the program does
        results = runner.run(_run(options))
    print("\n" + show(results))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure frontdesk.")
    parser.add_argument(
        "--quick", action="store_true", help="smaller stores, fewer rounds, and not all; two minutes"
    )
    parser.add_argument("--only", choices=ALL, action="append", help="only this one; may be repeated")
    parser.add_argument(
        "--folder", type=Path, help="where to put the databases (default: the temporary folder)"
    )
    return parser.parse_args()


async def _run(options: argparse.Namespace) -> list[Result]:
    results = []
    for name in options.only or [each for each in ALL if not (options.quick and each in LONG)]:
        print(f"{name} …", end=" ", file=sys.stderr, flush=True)
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="frontdesk-bench-", dir=options.folder) as folder:
            results += [result async for result in ALL[name](Path(folder), options.quick)]
        print(f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
