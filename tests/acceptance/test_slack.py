"""A gateway on Slack, as a user starts it, killed in the middle of its traffic."""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import Popen

import pytest

from frontdesk.testing.slack import TeamCall, TeamFault, Workspace
from tests import counts
from tests.acceptance import program

CONFIGURATION = """
[agent]
driver = "scripted"

[server]
port = 0

[confirm]
enabled = false

[channels.slack]
bot_token_env = "BOT_TOKEN"
app_token_env = "APP_TOKEN"
api_url = "{url}"
timeout_seconds = 2
allow = ["*"]
"""
PEOPLE = [f"U0ADA{number}" for number in range(8)]
MOST_WAITING = 100
"""People who are not answered write no more."""
WAIT = TeamFault(status=429, retry_after=1)
CUT_BEFORE = TeamFault(cut=True)
CUT_AFTER = TeamFault(cut=True, taken=True)
LOST_ANSWER = TeamFault(error="internal_error", taken=True)
TROUBLED = ("chat.postMessage", "conversations.history", "apps.connections.open")
ANSWER = re.compile(r"echo: .*message (\d+)")
MESSAGE = re.compile(r"message (\d+)")

pytestmark = pytest.mark.prove


class Weather:
    """Troubles by chance: waits, and connections that are cut before or after a call was carried out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.met: Counter[str] = Counter()
        self.calm = False

    def __call__(self, call: TeamCall) -> TeamFault | None:
        if self.calm or call.method not in TROUBLED:
            return None
        chance = self.random.random()
        for below, name, fault in (
            (0.06, "waits", WAIT),
            (0.12, "cut before", CUT_BEFORE),
            (0.20, "cut after", CUT_AFTER),
            (0.23, "failed after", LOST_ANSWER),
        ):
            if chance < below:
                self.met[f"{call.method}: {name}"] += 1
                return fault
        return None


@contextmanager
def running(home: Path, team: Workspace) -> Iterator[Popen[bytes]]:
    config = home / "frontdesk.toml"
    config.write_text(CONFIGURATION.format(url=team.url))
    bot, app = team.bot_token, team.app_token
    with (
        program.start(home, "--config", str(config), "run", BOT_TOKEN=bot, APP_TOKEN=app) as process,
        program.drained(process, home / "log.txt"),
    ):
        yield process


def deliveries(home: Path) -> list[dict[str, str]]:
    asked = ("deliveries", "list", "--limit", "10000", "--json")
    config, tokens = str(home / "frontdesk.toml"), {"BOT_TOKEN": "xoxb-none", "APP_TOKEN": "xapp-none"}
    told = program.run(home, "--config", config, *asked, **tokens)
    assert told.returncode == 0, told.stderr
    listed: list[dict[str, str]] = json.loads(told.stdout)
    return listed


async def test_nothing_is_lost_or_doubled_by_kills_cuts_and_waits(tmp_path: Path, tell: counts.Tell) -> None:
    kills, fewest, messages = counts.count(3, 40), counts.count(30, 400), 0
    async with Workspace.open() as team:
        weather = Weather(random.randrange(2**32))
        with running(tmp_path, team):
            await team.until(lambda: team.connected, 60)
        team.weather = weather

        async def write() -> None:
            nonlocal messages
            while not weather.calm:
                if messages - len(set(answered(post.shown for post in team.posts))) < MOST_WAITING:
                    person, messages = random.choice(PEOPLE), messages + 1
                    await team.say(person, f"message {messages - 1}", team.direct(person))
                if random.random() < 0.1:
                    await team.hang_up()
                await asyncio.sleep(random.choice((0, 0.1, 0.2)))

        writing = asyncio.create_task(write())
        for _ in range(kills):
            with running(tmp_path, team) as process:
                enough = len(team.posts) + random.randrange(6)
                await team.until(partial(has_more, team, enough), 60)
                process.kill()
                process.wait()
        before = team.connects
        with running(tmp_path, team):
            await team.until(lambda: team.connects > before and messages >= fewest, 300)
            weather.calm = True
            await writing
            unknown = await settled(tmp_path, team, set(range(messages)))
    answers = Counter(answered(post.shown for post in team.posts))
    assert set(answers) <= set(range(messages))
    assert {number: copies for number, copies in answers.items() if copies > 1} == {}
    missing = set(range(messages)) - set(answers)
    assert missing <= unknown
    assert len(missing) <= kills * len(PEOPLE)
    tell("messages answered once", len(answers))
    tell("of which nobody knows, or every attempt broke off: somebody is told", len(missing))
    tell("connects", team.connects)
    for name, count in weather.met.items():
        tell(name, count)


async def test_stream_that_a_kill_cuts_off_is_shown_once_and_whole(tmp_path: Path, tell: counts.Tell) -> None:
    """Killed as soon as a stream is seen, mostly before the gateway knows of it, or in its middle."""
    kills, cut = counts.count(1, 40), 0
    async with Workspace.open() as team:
        chat = team.direct(PEOPLE[0])
        with running(tmp_path, team):
            await team.until(lambda: team.connected, 60)
        for number in range(kills):
            root = team.written(PEOPLE[0], "root", chat, bot_id="B0OTHER")["ts"]
            told = f"!say beginning of answer {number}, and; !hang 1; !say end of answer {number}"
            with running(tmp_path, team) as process:
                await team.until(lambda: team.connected, 60)
                await team.say(PEOPLE[0], told, chat, thread_ts=root)
                await team.until(partial(streams_in, team, root), 60)
                await asyncio.sleep(random.choice((0, 0, 0.05, 1)))
                process.kill()
                process.wait()
            cut += streams_in(team, root)
            with running(tmp_path, team):
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


def has_more(team: Workspace, posts: int) -> bool:
    return len(team.posts) > posts


def answered(texts: Iterable[str]) -> list[int]:
    """The numbers of the messages that are answered; notices are passed over."""
    return [int(found[1]) for found in map(ANSWER.fullmatch, texts) if found]


def set_aside(home: Path) -> set[int]:
    """The numbers of the messages whose turns were cut off each time."""
    return {int(each[1]) for each in map(MESSAGE.fullmatch, program.set_aside(home)) if each}


async def settled(home: Path, team: Workspace, messages: set[int]) -> set[int]:
    """Wait until each message is answered, or the owner is told that nobody knows, or its sender that every
    attempt broke off; gives the latter two."""
    missing, unknown, listed = messages, set[int](), list[dict[str, str]]()
    try:
        async with asyncio.timeout(100):
            while missing:
                listed = await asyncio.to_thread(deliveries, home)
                unknown = set(answered(each["text"] for each in listed if each["state"] == "unknown"))
                unknown |= await asyncio.to_thread(set_aside, home)
                missing = messages - unknown - set(answered(post.shown for post in team.posts))
                await asyncio.sleep(0.5)
    except TimeoutError:
        waiting = [each for each in listed if each["state"] not in ("sent", "unknown")]
        pytest.fail(f"neither answered nor told of: {sorted(missing)}; still to be sent: {waiting}")
    return unknown
