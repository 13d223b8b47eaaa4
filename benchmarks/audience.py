"""Those who follow a gateway's events, in a process of their own: what they take in costs the one who writes
nothing.

``python -m benchmarks.audience PORT COUNT TOKEN…`` follows until its input ends, then prints how many bytes
came to all, and how long after their changes one of them was told.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import msgspec
import uvloop

FOLLOW = (
    "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    "Authorization: Bearer {token}\r\n\r\n"
)
OPENED_AT_ONCE = 50
SEEN_BYTES = 64 * 1024


class Listening(asyncio.BufferedProtocol):
    """Somebody who follows, and throws away what comes."""

    _seen = memoryview(bytearray(SEEN_BYTES))

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.bytes = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self._request)

    def get_buffer(self, _: int) -> memoryview:
        return self._seen

    def buffer_updated(self, size: int) -> None:
        self.bytes += size
        if not self.opened.done() and b"id: " in self._seen[:size].tobytes():
            self.opened.set_result(None)


class Reading(Listening):
    """One that remembers how long after its change each event came."""

    def __init__(self, request: bytes) -> None:
        super().__init__(request)
        self.taken: list[float] = []
        self._unread = b""

    def buffer_updated(self, size: int) -> None:
        now = time.time()
        super().buffer_updated(size)
        *whole, self._unread = (self._unread + self._seen[:size].tobytes()).split(b"\n\n")
        for block in whole:
            _, found, told = block.partition(b"data: ")
            data = msgspec.json.decode(told.split(b"\n", 1)[0]) if found else {}
            if "at" in data:  # a sign of life has none
                self.taken.append(now - data["at"])


class Heard(NamedTuple):
    """What came to all of them, and how late to one."""

    bytes: int
    taken: list[float]


async def listen(port: int, count: int, tokens: list[str]) -> None:
    loop = asyncio.get_running_loop()
    made: list[Listening] = []
    for number in range(count):
        request = FOLLOW.format(token=tokens[number % len(tokens)]).encode()
        kind = Listening if number else Reading
        made.append((await loop.create_connection(partial(kind, request), "127.0.0.1", port))[1])
        if number % OPENED_AT_ONCE == OPENED_AT_ONCE - 1:
            await asyncio.gather(*(each.opened for each in made))
    await asyncio.gather(*(each.opened for each in made))
    print("here", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    first = made[0]
    assert isinstance(first, Reading)
    print(json.dumps(Heard(sum(each.bytes for each in made), first.taken)._asdict()), flush=True)


class Audience:
    """The process, as whoever started it sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.heard = Heard(0, [])

    async def leave(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        told, _ = await self._process.communicate()
        self.heard = Heard(**json.loads(told))


@asynccontextmanager
async def following(port: int, count: int, tokens: list[str]) -> AsyncIterator[Audience]:
    """So many who follow; what they heard is known when they have left."""
    command = (sys.executable, "-m", "benchmarks.audience", str(port), str(count), *tokens)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**26
    )
    try:
        assert process.stdout
        assert await process.stdout.readline() == b"here\n", "nobody can follow"
        audience = Audience(process)
        yield audience
        await audience.leave()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def main() -> None:
    port, count, *tokens = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(listen(int(port), int(count), tokens))


if __name__ == "__main__":
    main()
