"""A gateway on Telegram, as a user starts it, killed in the middle of its traffic."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from frontdesk.testing.telegram import ApiCall, ApiFault, BotApi, Member
from tests import counts
from tests.acceptance import killing
from tests.loopback import free_port

PEOPLE = [Member(id=100 + number, first_name=f"Ada {number}") for number in range(4)]
TROUBLES = killing.Troubles(
    waits=ApiFault(status=429, description="Too Many Requests: retry after 1", retry_after=1),
    cut_before=ApiFault(cut=True),
    cut_after=ApiFault(cut=True, taken=True),
    failed_after=ApiFault(status=502, description="Bad Gateway", taken=True),
)

CUT_CALLS = 0.08
CHUNK_BYTES = 65_536
SECRET = "s" * 32

pytestmark = pytest.mark.prove


class TelegramCrowd:
    def __init__(
        self, api: BotApi, weather: killing.Weather[ApiFault], more: str = "", port: int = 0
    ) -> None:
        self._api = api
        self._weather = weather
        self.environ = {"BOT_TOKEN": api.token, "SHOWN_SECRET": SECRET, "FRONTDESK_SERVER_PORT": str(port)}
        self.settings = f"""
[channels.telegram]
token_env = "BOT_TOKEN"
api_url = "{api.url}"
poll_seconds = 2
timeout_seconds = 2
allow = ["*"]
{more}
"""
        api.weather = self._trouble

    def _trouble(self, call: ApiCall) -> ApiFault | None:
        if call.method not in ("getUpdates", "sendMessage"):
            return None
        return self._weather.draw(call.method, waits=call.method == "sendMessage")

    async def greet(self) -> None:
        """The platform keeps what comes while nobody asks."""

    async def write(self, text: str) -> None:
        self._api.say(random.choice(PEOPLE), text)

    def texts(self) -> list[str]:
        return [post.text for post in self._api.posts]

    async def until(self, holds: Callable[[], object], seconds: float) -> None:
        await self._api.until(holds, seconds)


async def test_nothing_is_lost_or_doubled_by_kills_cuts_and_waits(tmp_path: Path, tell: counts.Tell) -> None:
    weather = killing.Weather(TROUBLES)
    async with BotApi.open() as api:
        gateway = killing.KilledGateway(tmp_path, TelegramCrowd(api, weather), weather)
        toll = await gateway.kill_often(tell)
        assert not api.pending
    most = toll.kills * len(PEOPLE)  # what goes to a chat, and what we were told to wait, dies there
    assert len(toll.missing) <= weather.met["sendMessage: cut before"] + most
    assert len(api.impatient) <= most


class Doorway:
    """Between Telegram and a gateway that is called: some calls are cut off before they arrive, others
    when the gateway has answered."""

    def __init__(self, gateway_port: int, weather: killing.Weather[ApiFault]) -> None:
        self._port, self._weather = gateway_port, weather
        self.tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        while self.tasks:
            for task in self.tasks:
                task.cancel()
            await asyncio.sleep(0.01)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            inside, outside = await asyncio.open_connection("127.0.0.1", self._port)
            ways = {
                asyncio.create_task(self._pass(reader, outside, "call: cut before")),
                asyncio.create_task(self._pass(inside, writer, "call: cut after")),
            }
            self.tasks |= ways
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            self.tasks -= ways
            outside.close()
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: str) -> None:
        with suppress(OSError):
            while (piece := await reader.read(CHUNK_BYTES)) and not self._breaks(cut):
                writer.write(piece)

    def _breaks(self, name: str) -> bool:
        breaks = not self._weather.calm and random.random() < CUT_CALLS
        self._weather.met[name] += breaks
        return breaks


@asynccontextmanager
async def called(api: BotApi, weather: killing.Weather[ApiFault]) -> AsyncIterator[TelegramCrowd]:
    """People whose messages come to the gateway as calls, through a doorway."""
    port = free_port()
    doorway = Doorway(port, weather)
    server = await asyncio.start_server(doorway.serve, "127.0.0.1", 0)
    outside = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/channels/telegram"
    more = f'public_url = "{outside}"\npublic_secret_env = "SHOWN_SECRET"'
    try:
        yield TelegramCrowd(api, weather, more, port)
    finally:
        server.close()
        await api.stop_pushing()
        await doorway.close()


async def test_nothing_is_lost_or_doubled_where_telegram_calls_us(tmp_path: Path, tell: counts.Tell) -> None:
    weather = killing.Weather(TROUBLES)
    async with BotApi.open() as api, called(api, weather) as crowd:
        toll = await killing.KilledGateway(tmp_path, crowd, weather).kill_often(tell)
        assert not api.pending
    most = toll.kills * len(PEOPLE)
    assert len(toll.missing) <= weather.met["sendMessage: cut before"] + most
    assert len(api.impatient) <= most
