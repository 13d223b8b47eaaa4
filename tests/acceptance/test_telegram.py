"""A gateway on Telegram, as a user starts it, killed in the middle of its traffic."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from frontdesk.testing.telegram import ApiCall, ApiFault, BotApi, Member
from tests import counts
from tests.acceptance import killing

PEOPLE = [Member(id=100 + number, first_name=f"Ada {number}") for number in range(4)]
TROUBLES = killing.Troubles(
    waits=ApiFault(status=429, description="Too Many Requests: retry after 1", retry_after=1),
    cut_before=ApiFault(cut=True),
    cut_after=ApiFault(cut=True, taken=True),
    failed_after=ApiFault(status=502, description="Bad Gateway", taken=True),
)

pytestmark = pytest.mark.prove


class TelegramCrowd:
    def __init__(self, api: BotApi, weather: killing.Weather[ApiFault]) -> None:
        self._api = api
        self._weather = weather
        self.environ = {"BOT_TOKEN": api.token}
        self.settings = f"""
[channels.telegram]
token_env = "BOT_TOKEN"
api_url = "{api.url}"
poll_seconds = 2
timeout_seconds = 2
allow = ["*"]
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
