"""``python -m benchmarks.trips``: how often one message makes the program wait for PostgreSQL. No times.

The same messages as in `way`, on a throw-away server behind a proxy that reads what the program says to it. A
round trip is whatever is sent until an answer is asked for: a command, or statements before one sync. Bells
for other nodes are named and not counted: nobody waits for them, and by the clock one is for several reasons.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import uvloop

from benchmarks import confirmations, ours, way
from benchmarks.table import Result
from frontdesk import SessionStore, plugins
from frontdesk.stores.sql import load_queries
from frontdesk.stores.store import Store
from frontdesk.testing import postgres

LENGTH_BYTES = 4
CHUNK_BYTES = 65_536
COMMAND, PARSE, BIND = b"Q", b"P", b"B"
ASKING = {COMMAND: "", b"S": "", b"H": "prepare "}
"""After these the program waits: a command, a sync, and a flush, by which statements are prepared."""
BELL = "ring_others"
POOL, WARM = 2, 12
"""Few connections, so that all of them have prepared what they are asked for."""
CEILINGS = {
    way.LIBRARY: 3,
    "a message": 12,
    "the first message of a chat": 20,
    way.CONFIRMATION: 12,
}
"""Nothing may take more."""
GOALS = {way.LIBRARY: 6, "the first message of a chat": 24}
"""What is still to be reached."""


class TripCount(NamedTuple):
    """What was waited for in one window."""

    trips: Counter[str]

    @property
    def figures(self) -> dict[str, float]:
        return {"round trips": self.trips.total() - self.trips[BELL]}


class TripCounter:
    """A proxy before a server, that counts for everybody who goes through it."""

    def __init__(self, url: str) -> None:
        self._host, self._port = urlsplit(url).hostname, urlsplit(url).port
        self._queries = load_queries("postgres")
        self._names = {query.sql: name for name, query in self._queries.items()}
        self._counting = False
        self._trips: list[str] = []

    def begin(self) -> None:
        self._trips, self._counting = [], True

    def end(self) -> TripCount:
        self._counting = False
        return TripCount(Counter(self._trips))

    def name(self, statement: str, sql: str) -> str:
        return statement if statement in self._queries else self._names.get(sql, sql[:60])

    def note(self, trip: str) -> None:
        if self._counting:
            self._trips.append(trip)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(self._host, self._port)
        ways = [_pass_on(from_server, writer), _Requests(self, reader, to_server).pass_on()]
        with suppress(OSError, asyncio.IncompleteReadError):
            await asyncio.gather(*ways)
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while answer := await reader.read(CHUNK_BYTES):
        writer.write(answer)
    writer.close()


class _Requests:
    """What one connection asks."""

    def __init__(
        self, counter: TripCounter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._counter = counter
        self._reader = reader
        self._writer = writer
        self._prepared: dict[bytes, str] = {}
        self._said: list[str] = []

    async def pass_on(self) -> None:
        try:
            self._writer.write(await self._read())
            while True:
                kind = await self._reader.readexactly(1)
                message = await self._read()
                self._writer.write(kind + message)
                self._follow(kind, message[LENGTH_BYTES:])
        finally:
            self._writer.close()

    async def _read(self) -> bytes:
        length = await self._reader.readexactly(LENGTH_BYTES)
        return length + await self._reader.readexactly(int.from_bytes(length, "big") - LENGTH_BYTES)

    def _follow(self, kind: bytes, message: bytes) -> None:
        first, _, rest = message.partition(b"\0")
        if kind == PARSE:
            sql = rest.partition(b"\0")[0]
            self._prepared[first] = self._counter.name(first.decode(), sql.decode())
            self._said.append(self._prepared[first])
        elif kind == BIND:
            self._said.append(self._prepared[rest.partition(b"\0")[0]])
        elif kind == COMMAND:
            self._said.append(first.decode())
        if kind in ASKING:
            self._counter.note(ASKING[kind] + " + ".join(dict.fromkeys(self._said)))
            self._said.clear()


@asynccontextmanager
async def counted(url: str) -> AsyncIterator[tuple[TripCounter, str]]:
    """A counter, and the address that leads through it."""
    counter = TripCounter(url)
    async with await asyncio.start_server(counter.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        parts = urlsplit(url)
        yield (
            counter,
            parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query="sslmode=disable").geturl(),
        )


async def measure(folder: Path, url: str, rounds: int = way.ROUNDS) -> dict[str, list[TripCount]]:
    """The windows of each kind of message."""
    async with counted(url) as (counter, through):
        library = await _turns(counter, f"{through}&schema=library_{uuid4().hex}", rounds)
        confirmed = await _confirmations(counter, f"{through}&schema=confirm_{uuid4().hex}", rounds)
        async with way.opened(
            folder, counter, f"{through}&schema=gateway_{uuid4().hex}&pool={POOL}"
        ) as gateway:
            for number in range(WARM):  # what each connection prepares once
                await gateway.send(f"warm-{number // 2}", "hello")
            first = [await gateway.send(f"chat-{number}", "hello") for number in range(rounds)]
            second = [await gateway.send(f"chat-{number}", "hello") for number in range(rounds)]
    return {
        way.LIBRARY: library,
        "a message": second,
        "the first message of a chat": first,
        way.CONFIRMATION: confirmed,
    }


async def _turns(counter: TripCounter, url: str, rounds: int) -> list[TripCount]:
    async with await SessionStore.open(url, ours.CONFIG) as store:
        return await way.repeated(counter, lambda _: ours.turn(store, ours.source_of("1")), rounds)


async def _confirmations(counter: TripCounter, url: str, rounds: int) -> list[TripCount]:
    store: Store = await plugins.load_store(url)(url)
    found = await way.repeated(counter, confirmations.cycle_of(store), rounds)
    await store.close()
    return found


def least(windows: list[TripCount]) -> TripCount:
    """The window with the fewest: what happens by the clock falls into others, where the machine is busy."""
    return min(windows, key=lambda window: window.figures["round trips"])


async def counts(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """One line for each kind of message."""
    with postgres.running() as server:
        measured = await measure(folder, server.url, way.ROUNDS // 2 if quick else way.ROUNDS)
    for what, windows in measured.items():
        found, ceiling = least(windows).figures["round trips"], CEILINGS[what]
        name = f"PostgreSQL, {what}: round trips"
        yield Result(name, f"{found:g}", f"≤ {ceiling}", found, GOALS.get(what, ceiling), unit="")


def main() -> int:
    options = _options()
    with (
        postgres.running() as server,
        tempfile.TemporaryDirectory(prefix="frontdesk-trips-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,  # as the program does
    ):
        measured = runner.run(measure(Path(folder), server.url, options.rounds))
    for what, windows in measured.items():
        print(f"{what:<46} {least(windows).figures['round trips']:g} round trips")
        if options.list:
            for trip, times in least(windows).trips.items():
                print(f"    {times:4} {trip}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trips", description="Count how often a message waits for PostgreSQL."
    )
    parser.add_argument("--list", action="store_true", help="say what is asked in each round trip")
    parser.add_argument(
        "--rounds", type=int, default=way.ROUNDS, help="messages of each kind (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
