"""A gateway on Slack, as a user starts it, killed in the middle of its traffic."""

import asyncio
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from frontdesk.testing.slack import TeamCall, TeamFault, Workspace
from tests import counts
from tests.acceptance import killing, program

PEOPLE = [f"U0ADA{number}" for number in range(8)]
TROUBLES = killing.Troubles(
    waits=TeamFault(status=429, retry_after=1),
    cut_before=TeamFault(cut=True),
    cut_after=TeamFault(cut=True, taken=True),
    failed_after=TeamFault(error="internal_error", taken=True),
)
TROUBLED = ("chat.postMessage", "conversations.history", "apps.connections.open")

pytestmark = pytest.mark.prove


class SlackCrowd:
    def __init__(self, team: Workspace, weather: killing.Weather[TeamFault]) -> None:
        self._team = team
        self._weather = weather
        self.environ = {"BOT_TOKEN": team.bot_token, "APP_TOKEN": team.app_token}
        self.settings = f"""
[channels.slack]
bot_token_env = "BOT_TOKEN"
app_token_env = "APP_TOKEN"
api_url = "{team.url}"
timeout_seconds = 2
allow = ["*"]
"""
        team.weather = self._trouble

    def _trouble(self, call: TeamCall) -> TeamFault | None:
        return self._weather.draw(call.method) if call.method in TROUBLED else None

    async def greet(self) -> None:
        await self._team.until(lambda: self._team.connected, 60)

    async def write(self, text: str) -> None:
        person = random.choice(PEOPLE)
        await self._team.say(person, text, self._team.direct(person))
        if random.random() < 0.1:
            await self._team.hang_up()

    def texts(self) -> list[str]:
        return [post.shown for post in self._team.posts]

    async def until(self, holds: Callable[[], object], seconds: float) -> None:
        await self._team.until(holds, seconds)


async def test_nothing_is_lost_or_doubled_by_kills_cuts_and_waits(tmp_path: Path, tell: counts.Tell) -> None:
    weather = killing.Weather(TROUBLES)
    async with Workspace.open() as team:
        gateway = killing.KilledGateway(tmp_path, SlackCrowd(team, weather), weather)
        toll = await gateway.kill_often(tell)
    assert len(toll.missing) <= toll.kills * len(PEOPLE)
    tell("connects", team.connects)


async def test_stream_that_a_kill_cuts_off_is_shown_once_and_whole(tmp_path: Path, tell: counts.Tell) -> None:
    """Killed as soon as a stream is seen, mostly before the gateway knows of it, or in its middle."""
    kills, cut = counts.count(1, 40), 0
    async with Workspace.open() as team:
        chat, weather = team.direct(PEOPLE[0]), killing.Weather(TROUBLES)
        gateway = killing.KilledGateway(tmp_path, SlackCrowd(team, weather), weather)
        async with gateway.running():
            await team.until(lambda: team.connected, 60)
        for number in range(kills):
            root = team.written(PEOPLE[0], "root", chat, bot_id="B0OTHER")["ts"]
            told = f"!say beginning of answer {number}, and; !hang 1; !say end of answer {number}"
            async with gateway.running() as process:
                await team.until(lambda: team.connected, 60)
                await team.say(PEOPLE[0], told, chat, thread_ts=root)
                await team.until(partial(streams_in, team, root), 60)
                await asyncio.sleep(random.choice((0, 0, 0.05, 1)))
                process.kill()
                process.wait()
            cut += streams_in(team, root)
            async with gateway.running():
                await team.until(partial(ended_in, team, root, f"end of answer {number}"), 60)
    answers = [post for post in team.posts if "answer" in post.shown]
    assert [post.streams for post in answers] == [False] * kills
    assert len({post.thread_ts for post in answers}) == kills
    tell("streams cut off", cut)


def streams_in(team: Workspace, root: str) -> bool:
    return any(post.streams for post in team.posts if post.thread_ts == root)


def ended_in(team: Workspace, root: str, end: str) -> bool:
    """Whether the answer stands there, and nothing of it grows."""
    return not streams_in(team, root) and any(
        post.shown.endswith(end) for post in team.posts if post.thread_ts == root
    )


async def test_app_is_connected_says_hello_and_is_looked_after(tmp_path: Path) -> None:
    async with Workspace.open() as team:
        bot, app = tmp_path / "bot", tmp_path / "app"
        bot.write_text(team.bot_token)
        app.write_text(team.app_token)
        secrets = ("--bot-token-file", str(bot), "--app-token-file", str(app))
        people = ("--allow", "U0ADA", "--home", team.direct("U0ADA"))
        asked = ("connect", "slack", *secrets, "--api-url", team.url, *people, "--json")
        done = await asyncio.to_thread(program.run, tmp_path, *asked)
        assert done.returncode == 0, done.stderr
        assert [(post.channel, post.shown[:6]) for post in team.posts] == [("DU0ADA", "Hello!")]
        assert json.loads(done.stdout)["findings"][0]["text"] == "@frontdesk in Team"
        for written, verdict in ((team.bot_token, "ok"), ("xoxb-revoked-token", "failed")):
            bot.write_text(written)
            looked = await asyncio.to_thread(program.run, tmp_path, "doctor", "--json")
            found = [each for each in json.loads(looked.stdout) if each["check"] == "platforms"]
            assert (found[0]["verdict"], found[0]["text"][:6]) == (verdict, "slack:")
