"""``python -m benchmarks.way``: what one message costs in calls, statements and transactions. No times.

A gateway runs in this process as ``frontdesk run --log-level warning`` would run it, on a real file and over
real HTTP. A signed message is posted, and what happens until its callback is settled is counted: calls into
frontdesk's own code on every thread, statements of every connection, write transactions, how often the log is
forced to disk and how many pages are written to it, files that were entered, statements that SQLite has to
prepare. A message is the second one of
its chat, so that what came before is always as long. What happens by the clock falls into some of the windows
and not into others, into most where the machine is busy: so what three of four messages cost at least counts.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx
import uvloop

from benchmarks import confirmations, disk, ours
from benchmarks.counters import Count, Counters, Window
from benchmarks.table import Result
from frontdesk import SessionStore, config, plugins
from frontdesk.app import build
from frontdesk.app.confirmations import prepare_keys
from frontdesk.formats import webhooks
from frontdesk.stores.store import Store
from frontdesk.web import server
from frontdesk.web.confirmations.serving import make_served, serving_beside

T = TypeVar("T")

ROUNDS = 11
IDLE_SECONDS = 10.0
QUIET_SECONDS = 0.06
"""So long after the callback everything that it causes has happened."""
CALLBACK_SECONDS = 10.0
IDLE = "an idle second"
SECRET = "whsec_c2l4dGVlbiBieXRlcyBvciBtb3JlIG9mIGl0"
FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[confirm]
port = 0
[store]
url = "{store}"
[channels.webhook]
callback_url = "http://127.0.0.1:{port}/answers"
secret_env = "WAY_SECRET"
"""
LIBRARY = "a turn of the library"
CONFIRMATION = "a confirmation, asked, decided and carried out"
CEILINGS = {
    LIBRARY: {"calls": 140, "statements": 7, "write transactions": 2, "syncs": 2, "pages": 11},
    "a message": {
        "calls": 392,
        "statements": 23,
        "prepared": 0,
        "write transactions": 3,
        "files": 62,
        "syncs": 3,
        "pages": 37,
    },
    "the first message of a chat": {
        "calls": 602,
        "statements": 41,
        "prepared": 0,
        "syncs": 5,
        "pages": 57,
    },
    "/resume": {"calls": 596, "statements": 33, "syncs": 4, "pages": 40},
    CONFIRMATION: {
        "calls": 340,
        "statements": 27,
        "prepared": 0,
        "write transactions": 3,
        "syncs": 3,
        "pages": 27,
    },
    IDLE: {"statements": 2, "syncs": 0},
}
"""Nothing may cost more."""
GOALS = {
    LIBRARY: {"statements": 6},
    "a message": {"calls": 350},
}
"""What is still to be reached."""


class Receiver:
    """Whoever gets the callbacks: as little HTTP as will do."""

    def __init__(self) -> None:
        self.got = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
                )
                await reader.readexactly(int(length.split(b":")[1]))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                self.got.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Way(Generic[T]):
    """A running gateway, and somebody who writes to it."""

    def __init__(self, counters: Window[T], receiver: Receiver, client: httpx.AsyncClient) -> None:
        self._counters = counters
        self._receiver = receiver
        self._client = client
        self._sent = 0

    async def send(self, chat: str, text: str) -> T:
        """Post a message and wait until its callback is settled."""
        self._sent += 1
        told = {"id": f"event-{self._sent}", "chat_id": chat, "user_id": f"user-{chat}", "text": text}
        body = json.dumps(told).encode()
        headers = webhooks.signed_headers(SECRET, f"msg-{self._sent}", datetime.now(UTC), body)
        self._receiver.got.clear()
        self._counters.begin()
        answer = await self._client.post("/channels/webhook", content=body, headers=headers)
        answer.raise_for_status()
        async with asyncio.timeout(CALLBACK_SECONDS):
            await self._receiver.got.wait()
        await asyncio.sleep(QUIET_SECONDS)
        return self._counters.end()

    async def idle(self, seconds: float) -> T:
        await asyncio.sleep(1.0)
        self._counters.begin()
        await asyncio.sleep(seconds)
        return self._counters.end()


@asynccontextmanager
async def opened(folder: Path, counters: Window[T], store: str) -> AsyncIterator[Way[T]]:
    """A gateway with a webhook, as the program has it."""
    receiver = Receiver()
    callbacks = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    os.environ["WAY_SECRET"] = SECRET
    (folder / "frontdesk.toml").write_text(
        FILE.format(store=store, port=callbacks.sockets[0].getsockname()[1])
    )
    loaded = config.load(folder / "frontdesk.toml", {**os.environ, "FRONTDESK_HOME": str(folder)})
    async with callbacks, build.open_gateway(loaded) as gateway:
        service, keys = gateway.parts.confirmations, prepare_keys(loaded.home)
        served = make_served(service, keys, loaded.confirm.people, service.settings.page_url)
        serving = server.serving(gateway, host="127.0.0.1", port=0, confirmations=served)
        async with serving as address, serving_beside(gateway, served, loaded):
            await gateway.start()
            async with httpx.AsyncClient(base_url=address.url, trust_env=False) as client:
                yield Way(counters, receiver, client)
            await gateway.close()


async def measure(folder: Path, rounds: int = ROUNDS, idle_seconds: float = IDLE_SECONDS) -> dict[str, Any]:
    """The windows of each kind of message, and of an idle gateway."""
    counters, store = Counters(), f"sqlite:///{folder}/state.db?vfs={disk.NAME}"
    with counters.installed():
        async with opened(folder, counters, store) as way:
            for number in range(3):  # what is loaded and opened once
                await way.send("warm", f"hello {number}")
            first = [await way.send(f"chat-{number}", "hello") for number in range(rounds)]
            second = [await way.send(f"chat-{number}", "hello") for number in range(rounds)]
            resumed = [await resume(way, number) for number in range(rounds)]
            idle = await way.idle(idle_seconds)
    return {
        LIBRARY: await turns(folder, rounds),
        CONFIRMATION: await confirmed(folder, rounds),
        "a message": second,
        "the first message of a chat": first,
        "/resume": resumed,
        IDLE: [idle],
    }


async def turns(folder: Path, rounds: int) -> list[Count]:
    """A message and its answer, by whoever has the store in their own program."""
    counters, url = Counters(), f"sqlite:///{folder}/library.db?vfs={disk.NAME}"
    with counters.installed():
        async with await SessionStore.open(url, ours.CONFIG) as store:
            return await repeated(counters, lambda _: ours.turn(store, ours.source_of("1")), rounds)


async def confirmed(folder: Path, rounds: int) -> list[Count]:
    """An action that people are asked about, and that is carried out then."""
    counters, url = Counters(), f"sqlite:///{folder}/confirmations.db?vfs={disk.NAME}"
    with counters.installed():
        store: Store = await plugins.load_store(url)(url)
        found = await repeated(counters, confirmations.cycle_of(store), rounds)
        await store.close()
    return found


async def repeated(
    counters: Window[T], run: Callable[[int], Awaitable[object]], rounds: int, warm: int = 2
) -> list[T]:
    """The windows of something that is done again and again, but for what is made and loaded once."""
    found = []
    for number in range(warm + rounds):
        counters.begin()
        await run(number)
        found.append(counters.end())
    return found[warm:]


async def resume(way: Way[Count], number: int) -> Count:
    """Back to a titled conversation from the one after it."""
    chat, title = f"back-{number}", f"Before {number}"
    for text in ("hello", f"/title {title}", "/new", "hello"):
        await way.send(chat, text)
    return await way.send(chat, f"/resume {title}")


def figures(windows: list[Count], seconds: float = 1.0) -> dict[str, float]:
    """What three of four windows have at least, of each figure."""
    found = [window.figures for window in windows]
    quarter = len(found) // 4
    return {name: sorted(each[name] for each in found)[quarter] / seconds for name in found[0]}


def typical(windows: list[Count]) -> Count:
    """The window that is nearest to the figures."""
    usual = figures(windows)
    return min(windows, key=lambda window: sum(abs(window.figures[name] - usual[name]) for name in usual))


async def counts(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """One line for each figure that has a bound."""
    seconds = IDLE_SECONDS / 2 if quick else IDLE_SECONDS
    measured = await measure(folder, ROUNDS // 2 if quick else ROUNDS, seconds)
    for what, windows in measured.items():
        found = figures(windows, seconds if what == IDLE else 1.0)
        for name, ceiling in CEILINGS[what].items():
            goal = GOALS.get(what, {}).get(name, ceiling)
            yield Result(f"{what}: {name}", f"{found[name]:g}", f"≤ {ceiling}", found[name], goal, unit="")


def main() -> int:
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="frontdesk-way-", dir=options.folder) as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,  # as the program does
    ):
        measured = runner.run(measure(Path(folder), options.rounds, options.idle_seconds))
    found = {
        what: figures(windows, options.idle_seconds if what == IDLE else 1.0)
        for what, windows in measured.items()
    }
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for what, usual in found.items():
        print(f"{what:<28} " + ", ".join(f"{value:g} {name}" for name, value in usual.items()))
        if options.list:
            _show(typical(measured[what]))
    return 0


def _show(window: Count) -> None:
    for title, counted in (("statements", window.statements), ("calls", window.calls)):
        print(f"  {title}:")
        for name, times in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
            print(f"    {times:4} {name}")
    print("  files:", *sorted(window.files), sep="\n    ")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.way", description="Count what a message costs: calls, statements, files."
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--list", action="store_true", help="name every statement, call and file")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="messages of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--idle-seconds",
        type=float,
        default=IDLE_SECONDS,
        help="how long the idle gateway is watched (default: %(default)s)",
    )
    parser.add_argument(
        "--folder", type=Path, help="where to put the database (default: the temporary folder)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
