"""A gateway on Telegram, as a user starts it, killed in the middle of its traffic."""

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

from frontdesk.testing.telegram import ApiCall, ApiFault, BotApi, Member
from tests import counts
from tests.acceptance import program

CONFIGURATION = """
[agent]
driver = "scripted"

[server]
port = 0

[confirm]
enabled = false

[channels.telegram]
token_env = "BOT_TOKEN"
api_url = "{url}"
poll_seconds = 2
timeout_seconds = 2
allow = ["*"]
"""
PEOPLE = [Member(id=100 + number, first_name=f"Ada {number}") for number in range(4)]
WAIT = ApiFault(status=429, description="Too Many Requests: retry after 1", retry_after=1)
CUT_BEFORE = ApiFault(cut=True)
CUT_AFTER = ApiFault(cut=True, taken=True)
LOST_ANSWER = ApiFault(status=502, description="Bad Gateway", taken=True)

MOST_PENDING = 40
"""People who are not answered write no more."""
ANSWER = re.compile(r"echo: .*message (\d+)")
MESSAGE = re.compile(r"message (\d+)")

pytestmark = pytest.mark.prove


class Weather:
    """Troubles by chance: waits, and connections that are cut before or after a call was carried out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.met: Counter[str] = Counter()
        self.calm = False

    def __call__(self, call: ApiCall) -> ApiFault | None:
        if self.calm or call.method not in ("getUpdates", "sendMessage"):
            return None
        chance = self.random.random()
        for below, name, fault in (
            (0.06, "waits", WAIT),
            (0.12, "cut before", CUT_BEFORE),
            (0.20, "cut after", CUT_AFTER),
            (0.23, "failed after", LOST_ANSWER),
        ):
            if chance < below and not (name == "waits" and call.method == "getUpdates"):
                self.met[f"{call.method}: {name}"] += 1
                return fault
        return None


@contextmanager
def running(home: Path, api: BotApi) -> Iterator[Popen[bytes]]:
    config = home / "frontdesk.toml"
    config.write_text(CONFIGURATION.format(url=api.url))
    with program.start(home, "--config", str(config), "run", BOT_TOKEN=api.token) as process:
        yield process


def deliveries(home: Path) -> list[dict[str, str]]:
    told = program.run(
        home,
        "--config",
        str(home / "frontdesk.toml"),
        "deliveries",
        "list",
        "--limit",
        "10000",
        "--json",
        BOT_TOKEN="x",
    )
    assert told.returncode == 0, told.stderr
    listed: list[dict[str, str]] = json.loads(told.stdout)
    return listed


async def test_nothing_is_lost_or_doubled_by_kills_cuts_and_waits(tmp_path: Path, tell: counts.Tell) -> None:
    kills, messages = counts.count(3, 40), 0
    async with BotApi.open() as api:
        weather = api.weather = Weather(random.randrange(2**32))

        async def write() -> None:
            nonlocal messages
            while not weather.calm:
                if len(api.pending) < MOST_PENDING:
                    api.say(random.choice(PEOPLE), f"message {messages}")
                    messages += 1
                await asyncio.sleep(random.choice((0, 0.1, 0.2)))

        writing = asyncio.create_task(write())
        for _ in range(kills):
            with running(tmp_path, api) as process:
                enough = len(api.posts) + random.randrange(6)
                await api.until(partial(has_more, api, enough), 60)
                process.kill()
                process.wait()
        weather.calm = True
        with running(tmp_path, api):
            await writing
            await api.until(lambda: not api.pending, 60)
            unknown = await settled(tmp_path, api, set(range(messages)))
    answers = Counter(answered(post.text for post in api.posts))
    assert set(answers) <= set(range(messages))
    assert {number: copies for number, copies in answers.items() if copies > 1} == {}
    missing = set(range(messages)) - set(answers)
    assert missing <= unknown
    assert len(missing) <= weather.met["sendMessage: cut before"] + kills * len(PEOPLE)
    assert len(api.impatient) <= kills * len(PEOPLE)  # what we were told to wait dies with the process
    tell("messages answered once", len(answers))
    tell("of which nobody knows, or every attempt broke off: somebody is told", len(missing))
    for name, count in weather.met.items():
        tell(name, count)


def has_more(api: BotApi, posts: int) -> bool:
    return len(api.posts) > posts


def answered(texts: Iterable[str]) -> list[int]:
    """The numbers of the messages that are answered; notices are passed over."""
    return [int(found[1]) for found in map(ANSWER.fullmatch, texts) if found]


def set_aside(home: Path) -> set[int]:
    """The numbers of the messages whose turns were cut off each time."""
    return {int(each[1]) for each in map(MESSAGE.fullmatch, program.set_aside(home)) if each}


async def settled(home: Path, api: BotApi, messages: set[int]) -> set[int]:
    """Wait until each message is answered, or the owner is told that nobody knows, or its sender that every
    attempt broke off; gives the latter two."""
    async with asyncio.timeout(60):
        while True:
            listed = await asyncio.to_thread(deliveries, home)
            unknown = set(answered(each["text"] for each in listed if each["state"] == "unknown"))
            unknown |= await asyncio.to_thread(set_aside, home)
            if messages <= unknown | set(answered(post.text for post in api.posts)):
                return unknown
            await asyncio.sleep(0.2)
