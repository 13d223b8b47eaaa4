"""A gateway on Discord, as a user starts it: what a person does there, and what kills, cuts and waits do."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk.testing.discord import DiscordApi, DiscordFault, visible
from tests import counts, patience
from tests.acceptance import killing, program

TEAM, THREAD = "1001", "3001"
ADA, BOB, EVE = "7", "8", "9"
AGENT = """
[agent]
driver = "scripted"

[server]
port = 0

[gateway]
tell_times = false
"""
SETTINGS = """
[channels.discord]
token_env = "DISCORD_TOKEN"
api_url = "{api}"
gateway_url = "{gateway}"
"""
TROUBLES = killing.Troubles(
    waits=DiscordFault(status=429, retry_after=1.0),
    cut_before=DiscordFault(),
    cut_after=DiscordFault(taken=True),
    failed_after=DiscordFault(status=502, taken=True),
)
TROUBLED = re.compile(r"POST /channels/\d+/messages|GET /channels/\d+(/messages)?")


def settings(api: DiscordApi) -> str:
    return SETTINGS.format(api=api.url, gateway=api.gateway_url)


def private(person: str) -> str:
    return f"200{person}"


class Town:
    """A program that runs on Discord; Ada may talk to it, Bob decides, Eve is a stranger."""

    def __init__(self, api: DiscordApi, home: Path) -> None:
        self.api = api
        self.home = home
        folder = home / ".frontdesk"
        folder.mkdir()
        people = f'allow = ["{ADA}"]\napprovers = ["{BOB}"]\n'
        (folder / "frontdesk.toml").write_text(AGENT + settings(api) + people)
        api.channel(private(ADA), guild_id=None)
        api.channel(TEAM)

    def texts(self, chat: str) -> list[str]:
        return [visible(each["content"]) for each in self.api.ours(chat)]

    async def until(self, holds: Callable[[], object]) -> None:
        await self.api.until(holds, patience.PATIENCE_SECONDS)

    async def says(self, chat: str, words: str) -> dict[str, Any]:
        """The message of ours that has the words in it, once there is one."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found[:] = [each for each in self.api.ours(chat) if words in visible(each["content"])]
            return bool(found)

        await self.until(is_there)
        return found[0]

    async def press(self, person: str, token: str, card: dict[str, Any]) -> None:
        """A press, until it is stored; on a busy machine the platform no longer hears that."""
        number = await self.api.press(person, token, card)
        heard = ("POST", f"/interactions/{number}/token-{number}/callback")
        await self.until(lambda: heard in self.api.calls)


@asynccontextmanager
async def town(home: Path) -> AsyncIterator[Town]:
    async with DiscordApi.open() as api:
        made = Town(api, home)
        log = ("--log-level", "warning")
        with program.start(home, "run", *log, terminal=False, DISCORD_TOKEN=api.token) as process:
            await asyncio.to_thread(program.read_until, process, "agent is")
            await made.until(lambda: api.gateway.live)
            yield made


async def test_person_gets_an_answer_that_grows_and_a_card_that_only_an_approver_decides(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as here:
        api, direct = here.api, private(ADA)
        asked = '!say This is the beginning.; !approve tidy_up {"folder": "attic"} please'
        await api.say(ADA, f"<@{api.me['id']}> {asked}", TEAM, mentions=[api.me])
        begun = await here.says(TEAM, "This is the beginning.")
        card = await here.says(TEAM, "tidy_up")
        yes, *_ = (button["custom_id"] for row in card["components"] for button in row["components"])
        for stranger in (EVE, ADA):
            await here.press(stranger, yes, card)
        await here.says(TEAM, '"user-7" (discord:7): discord:7 may not do this')
        await api.command(ADA, "status", direct)
        await here.says(direct, "nothing is running")
        assert "status" in [each["name"] for each in api.commands]
        assert begun["content"] == "This is the beginning."
        assert card["components"]
        await here.press(BOB, yes, card)
        await here.until(lambda: visible(begun["content"]) == "This is the beginning.approved: tidy_up")
        await here.until(lambda: "was approved by discord:8" in card["content"])
        assert not card["components"]
        assert len(api.ours(TEAM)) == 3


async def test_bot_is_connected_says_hello_and_is_looked_after(tmp_path: Path) -> None:
    async with DiscordApi.open() as api:
        api.channel(TEAM)
        token = tmp_path / "token"
        token.write_text(api.token)
        where = ("--api-url", api.url, "--gateway-url", api.gateway_url)
        people = ("--allow", ADA, "--home", TEAM)
        asked = ("connect", "discord", "--token-file", str(token), *where, *people, "--json")
        done = await asyncio.to_thread(program.run, tmp_path, *asked)
        assert done.returncode == 0, done.stderr
        assert [(each["channel_id"], each["content"][:5]) for each in api.ours()] == [(TEAM, "Hello")]
        assert json.loads(done.stdout)["findings"][0]["text"] == "desk (id 900)"
        for written, verdict in ((api.token, "ok"), (f"{api.token[:-1]}x", "failed")):
            token.write_text(written)
            looked = await asyncio.to_thread(program.run, tmp_path, "doctor", "--json")
            found = [each for each in json.loads(looked.stdout) if each["check"] == "platforms"]
            assert (found[0]["verdict"], found[0]["text"][:8]) == (verdict, "discord:")


class DiscordCrowd:
    """Some write alone, others in a channel and a thread of a server."""

    def __init__(self, api: DiscordApi, weather: killing.Weather[DiscordFault]) -> None:
        self._api = api
        self._weather = weather
        self.environ = {"DISCORD_TOKEN": api.token}
        self.settings = settings(api) + 'allow = ["*"]\n'
        self._chats = [(ADA, private(ADA)), (BOB, private(BOB)), (ADA, TEAM), (EVE, THREAD)]
        for _, chat in self._chats[:2]:
            api.channel(chat, guild_id=None)
        api.channel(TEAM)
        api.channel(THREAD, type=11, parent_id=TEAM)
        api.weather = self._trouble

    def _trouble(self, method: str, path: str) -> DiscordFault | None:
        called = f"{method} {path}"
        if not TROUBLED.fullmatch(called):
            return None
        return self._weather.draw(re.sub(r"\d+", "…", called))

    async def greet(self) -> None:
        """Of a direct chat the platform tells nothing before its first message."""
        await self._api.until(lambda: self._api.gateway.live, patience.PATIENCE_SECONDS)
        for person, chat in self._chats:
            await self._say(person, "Hello", chat)
        await self._api.until(lambda: len(self.texts()) == len(self._chats), patience.PATIENCE_SECONDS)

    async def write(self, text: str) -> None:
        person, chat = random.choice(self._chats)
        await self._say(person, text, chat)
        if random.random() < 0.1:
            await self._api.gateway.cut()
            if random.random() < 0.3:
                self._api.gateway.forget()

    async def _say(self, person: str, text: str, chat: str) -> None:
        await self._api.say(person, f"<@{self._api.me['id']}> {text}", chat, mentions=[self._api.me])

    def texts(self) -> list[str]:
        return [visible(each["content"]) for each in self._api.ours()]

    async def until(self, holds: Callable[[], object], seconds: float) -> None:
        await self._api.until(holds, seconds)


@pytest.mark.prove
async def test_nothing_is_lost_or_doubled_by_kills_cuts_and_waits(tmp_path: Path, tell: counts.Tell) -> None:
    weather = killing.Weather(TROUBLES)
    async with DiscordApi.open() as api:
        await killing.KilledGateway(tmp_path, DiscordCrowd(api, weather), weather).kill_often(tell)
        tell("lines of Discord's", api.gateway.identified)
        tell("lines of Discord's that went on", api.gateway.resumed)
