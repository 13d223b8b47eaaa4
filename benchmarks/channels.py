"""Every chat platform configured at once: how soon the gateway is ready, what it weighs, what one adds."""

import asyncio
import itertools
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import httpx
import psutil

from benchmarks.gateway import CHATS, TOKEN, Chats
from benchmarks.table import Result, millis, rank_of
from benchmarks.wire import in_turns
from frontdesk.testing.discord import DiscordApi
from frontdesk.testing.slack import TeamCall, Workspace
from frontdesk.testing.telegram import ApiCall, BotApi, Member
from frontdesk.testing.wire import HttpReply, HttpRequest, HttpServer

PATIENCE_SECONDS = 60.0
IDLE_SECONDS = 5.0
STARTS = 3
MESSAGES_PER_SECOND = 20
"""A bot may answer 30 at most."""
MIB = 1024 * 1024
FILE = """
[agent]
driver = "scripted"
[server]
port = 0
[session_reset]
mode = "none"
max_messages = 0
[channels.api_server.tokens_env]
bench = "BENCH_TOKEN"
"""
DESK = "@desk:bench.test"
SAID = re.compile(r"message (\d+)")


class Peer(Protocol):
    """A platform as far as a channel needs it to be connected, and then to be quiet."""

    connected: asyncio.Event
    environ: dict[str, str]
    """The secrets that its channel needs."""

    @property
    def settings(self) -> str: ...

    async def close(self) -> None: ...


class TelegramPeer:
    def __init__(self) -> None:
        self.api = BotApi()
        self.environ = {"BOT_TOKEN": self.api.token}
        self.connected = asyncio.Event()
        self.arrived: dict[int, float] = {}
        self._numbers = itertools.count()
        self.api.weather = self._note

    @property
    def settings(self) -> str:
        url = self.api.url
        return f'[channels.telegram]\ntoken_env = "BOT_TOKEN"\napi_url = "{url}"\nallow = ["*"]\n'

    async def open(self) -> None:
        await self.api.wire.listen()

    def _note(self, call: ApiCall) -> None:
        if call.method == "getUpdates":
            self.connected.set()
        if call.method == "sendMessage" and (found := SAID.search(str(call.fields.get("text")))):
            self.arrived.setdefault(int(found[1]), time.perf_counter())

    async def turn(self) -> float:
        """Somebody writes, and is answered."""
        number, start = next(self._numbers), time.perf_counter()
        self.api.say(Member(id=100 + number % CHATS), f"message {number} {'x' * 480}")
        await self.api.until(lambda: number in self.arrived)
        return self.arrived[number] - start

    async def close(self) -> None:
        await self.api.wire.close()


class MatrixPeer:
    """A homeserver where nothing happens. Each gateway is a device of its own there, with its keys."""

    def __init__(self) -> None:
        self.devices: dict[str, object] = {}
        self.device = ""
        self.server = HttpServer(self._answer)
        self.environ = {"BENCH_TOKEN": TOKEN}
        self.connected = asyncio.Event()

    @property
    def settings(self) -> str:
        url = f"http://127.0.0.1:{self.server.port}"
        told = f'homeserver = "{url}"\naccess_token_env = "BENCH_TOKEN"\n'
        return f"[channels.matrix]\n{told}"

    async def open(self) -> None:
        await self.server.listen()

    async def _answer(self, request: HttpRequest) -> HttpReply:
        said: dict[str, object] = {}
        if request.path.endswith("/whoami"):
            self.device = f"BENCH{len(self.devices)}"
            said = {"user_id": DESK, "device_id": self.device}
        elif request.path.endswith("/keys/upload"):
            if "device_keys" in request.fields:
                self.devices[self.device] = json.loads(request.fields["device_keys"])
            said = {"one_time_key_counts": {"signed_curve25519": 50}}
        elif request.path.endswith("/keys/query"):
            said = {"device_keys": {DESK: self.devices}}
        elif request.path.endswith("/filter"):
            said = {"filter_id": "1"}
        elif request.path.endswith("/sync"):
            if self.connected.is_set():
                await asyncio.sleep(int(request.fields.get("timeout", 0)) / 1000)
            self.connected.set()
            said = {"next_batch": "s1"}
        return HttpReply(body=json.dumps(said).encode())

    async def close(self) -> None:
        await self.server.close()


class SlackPeer:
    """A workspace where nobody writes."""

    def __init__(self) -> None:
        self.team = Workspace()
        self.connected = asyncio.Event()
        self.team.weather = self._note
        self.environ = {"SLACK_BOT_TOKEN": self.team.bot_token, "SLACK_APP_TOKEN": self.team.app_token}

    @property
    def settings(self) -> str:
        tokens = 'bot_token_env = "SLACK_BOT_TOKEN"\napp_token_env = "SLACK_APP_TOKEN"\n'
        return f'[channels.slack]\napi_url = "{self.team.url}"\n{tokens}'

    async def open(self) -> None:
        await self.team.listen()

    def _note(self, call: TeamCall) -> None:
        if call.method == "apps.connections.open":
            self.connected.set()

    async def close(self) -> None:
        await self.team.refuse()


class DiscordPeer:
    """A server where nobody writes."""

    def __init__(self) -> None:
        self.api = DiscordApi()
        self.connected = asyncio.Event()
        self.api.weather = self._note
        self.environ = {"DISCORD_TOKEN": self.api.token}

    @property
    def settings(self) -> str:
        where = f'api_url = "{self.api.url}"\ngateway_url = "{self.api.gateway_url}"\n'
        return f'[channels.discord]\ntoken_env = "DISCORD_TOKEN"\n{where}'

    async def open(self) -> None:
        self.api.channel("1001")
        await self.api.start()

    def _note(self, _: str, path: str) -> None:
        if path.startswith("/applications/"):  # commands are offered on a line that stands
            self.connected.set()

    async def close(self) -> None:
        await self.api.close()


class EmailPeer:
    """An empty mailbox."""

    def __init__(self) -> None:
        self.environ = {"BENCH_TOKEN": TOKEN}
        self.connected = asyncio.Event()

    @property
    def settings(self) -> str:
        port = self.server.sockets[0].getsockname()[1]
        names = "".join(
            f'{kind}_host = "127.0.0.1"\n{kind}_port = {port}\n{kind}_security = "none"\n'
            for kind in ("imap", "smtp")
        )
        return f'[channels.email]\naddress = "desk@bench.test"\npassword_env = "BENCH_TOKEN"\n{names}'

    async def open(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        while line := await reader.readline():
            tag, _, command = line.decode().strip().partition(" ")
            match command.upper().split():
                case ["CAPABILITY"]:
                    writer.write(b"* CAPABILITY IMAP4rev1 IDLE\r\n")
                case ["SELECT" | "EXAMINE", *_]:
                    writer.write(b"* 0 EXISTS\r\n* OK [UIDVALIDITY 1] .\r\n* OK [UIDNEXT 1] .\r\n")
                case ["UID", "SEARCH", *_]:
                    writer.write(b"* SEARCH\r\n")
                case ["IDLE"]:
                    self.connected.set()
                    writer.write(b"+ idling\r\n")
                    await reader.readline()
            writer.write(f"{tag} OK done\r\n".encode())
        writer.close()

    async def close(self) -> None:
        self.server.close()


async def platforms(folder: Path, quick: bool) -> AsyncIterator[Result]:
    """The gateway as a process of its own, with everything that it can be connected to here."""
    telegram = TelegramPeer()
    peers = (telegram, MatrixPeer(), SlackPeer(), DiscordPeer(), EmailPeer())
    for peer in peers:
        await peer.open()
    starts = []
    for number in range(STARTS):
        for peer in peers:
            peer.connected.clear()
        async with running(folder / str(number), peers) as (_, _, ready, connected):
            starts.append((ready, connected))
    names = f"with {len(peers)} platforms"
    for what, figure, most in zip(
        ("ready", "all connected"), map(min, zip(*starts, strict=True)), (1.0, 6.0), strict=True
    ):
        yield Result(f"{names}, from the start until {what}", millis(figure), "-", figure, most, unit="s")
    for peer in peers:
        peer.connected.clear()
    async with running(folder / "idle", peers) as (pid, url, _, _):
        await asyncio.sleep(IDLE_SECONDS)
        memory = psutil.Process(pid).memory_info().rss / MIB
        yield Result(f"{names}, idle memory", f"{memory:,.0f} MiB", "-", memory, 200, unit="MiB")
        yield await _added(Chats(url.port or 0), telegram, MESSAGES_PER_SECOND * (5 if quick else 20))
    for peer in peers:
        await peer.close()


async def _added(chats: Chats, telegram: TelegramPeer, count: int) -> Result:
    """Messages of people beside requests of a program, in turns: by how much each took longer than its
    request."""

    def in_pairs(pairs: int) -> Awaitable[list[list[float]]]:
        return in_turns([chats.turn, telegram.turn], pairs, lambda: 1 / MESSAGES_PER_SECOND / 2)

    await in_pairs(MESSAGES_PER_SECOND)  # warms both up
    requests, messages = await in_pairs(count)
    chats.lines.close()
    ours, bare = rank_of(messages, 0.5), rank_of(requests, 0.5)
    differences = [message - request for message, request in zip(messages, requests, strict=True)]
    added = rank_of(differences, 0.5)
    what = f"what a channel adds to a turn over HTTP, {MESSAGES_PER_SECOND} turns/s, p50 of the differences"
    return Result(what, millis(ours), millis(bare), added * 1e3, 5, unit="ms")


@asynccontextmanager
async def running(home: Path, peers: tuple[Peer, ...]) -> AsyncIterator[tuple[int, httpx.URL, float, float]]:
    """A gateway at work: its process and address, and how long it took until it was ready, and connected."""
    _configure(home, peers)
    program = str(Path(sys.executable).with_name("frontdesk"))
    environ = os.environ | {"FRONTDESK_HOME": str(home), "BENCH_TOKEN": TOKEN}
    for peer in peers:
        environ |= peer.environ
    start = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        program, "run", "--log-level", "warning", env=environ, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = re.search(r"http://[\d.:]+", (await process.stdout.readline()).decode())
            assert found, "the gateway did not start"
            ready = time.perf_counter() - start
            await asyncio.gather(*(peer.connected.wait() for peer in peers))
            connected = time.perf_counter() - start
        yield process.pid, httpx.URL(found[0]), ready, connected
    finally:
        process.terminate()
        await process.wait()


def _configure(home: Path, peers: tuple[Peer, ...]) -> None:
    home.mkdir()
    (home / "frontdesk.toml").write_text(FILE + "".join(peer.settings for peer in peers))
