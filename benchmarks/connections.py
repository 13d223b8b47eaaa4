"""What the bounds on connections cost a request, and how soon it is answered in a crowd that says little.

``python -m benchmarks.connections bare`` (or ``bounded``) answers requests, for the first.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import uvloop

from benchmarks.table import Result, micros, millis
from benchmarks.wire import cpu_seconds
from frontdesk.web import bounds, endpoints, ports, public, server
from frontdesk.web.endpoints import Served
from frontdesk.web.middleware import Hosts
from tests.acceptance import crowds

CLIENTS = 16
REQUEST = (
    b"GET /livez HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
    b"Connection: keep-alive\r\nUser-Agent: benchmark\r\n\r\n"
)
PAUSE_SECONDS = 0.1


class Repeating(asyncio.Protocol):
    """Sends a request after each answer."""

    def __init__(self, until: float) -> None:
        self.answers = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._until = until

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        if not data.endswith(b"}"):
            return
        self.answers += 1
        if time.monotonic() < self._until:
            self._transport.write(REQUEST)
        else:
            self._transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        self.ended.set_result(None)


async def _cost(server_of: tuple[int, int], seconds: float) -> float:
    """Seconds of the processor for a request: neighbours change them less than the time that it takes."""
    pid, port = server_of
    before = cpu_seconds(pid)
    until = time.monotonic() + seconds
    loop = asyncio.get_running_loop()
    made = [
        (await loop.create_connection(lambda: Repeating(until), "127.0.0.1", port))[1] for _ in range(CLIENTS)
    ]
    await asyncio.gather(*(each.ended for each in made))
    return (cpu_seconds(pid) - before) / sum(each.answers for each in made)


@contextmanager
def _answering(kind: str) -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-m", "benchmarks.connections", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()


async def bounded(_: Path, quick: bool) -> AsyncIterator[Result]:
    """What a request costs, with the bounds and without."""
    rounds, seconds = (5, 1.0) if quick else (9, 2.0)
    with _answering("bounded") as ours, _answering("bare") as bare:
        costs = [(await _cost(ours, seconds), await _cost(bare, seconds)) for _ in range(rounds)]
    we, they = (statistics.median(each) for each in zip(*costs, strict=True))
    what = "processor time of a request with bounds, to uvicorn without"
    yield Result(what, micros(we), micros(they), we / they, 1.1)


async def crowded(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """How long a request with a token and one of the owner take, the slowest of many."""
    count = 20 if quick else 100
    with crowds.limited_service(folder, bounds.ENOUGH_FILES) as service:
        asking = {"with a token": service.ask_with_token, "of the owner": service.ask_as_owner}
        calm = {who: await _slowest(ask, count) for who, ask in asking.items()}
        for kind in crowds.KINDS:
            with crowds.crowd_at(service.ports, kind):
                for who, ask in asking.items():
                    slowest = await _slowest(ask, count)
                    what = f"request {who} among {crowds.COUNT:,} connections ({kind}), slowest of {count}"
                    yield Result(what, millis(slowest), f"{millis(calm[who])} alone", slowest, 1.0, unit="s")
        mib = float(service.memory_mib)
        yield Result("  most memory", f"{mib:.0f} MiB", "-", mib, 200.0, unit="MiB")


async def _slowest(ask: Callable[[], int], count: int) -> float:
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        assert await asyncio.to_thread(ask) == httpx.codes.OK
        taken.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE_SECONDS)
    return max(taken)


async def _serve(kind: str) -> None:
    app = endpoints.make_app(
        [Served(public.OPERATIONS, None)], Hosts("127.0.0.1"), ("public", "what is measured")
    )
    with ports.listening("127.0.0.1", 0) as listening:
        print(listening.getsockname()[1], flush=True)
        if kind == "bounded":
            async with server.serving_app(app, listening):
                await asyncio.Event().wait()
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(sys.argv[1]))
