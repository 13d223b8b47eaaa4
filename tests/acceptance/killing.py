"""A gateway that is killed in the middle of its traffic, again and again, in bad weather."""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tests import counts, patience
from tests.acceptance import program

MOST_PENDING = 100
"""People who are not answered write no more."""
LOOK_SECONDS = 0.2
READY = "agent is"
AGENT = """
[agent]
driver = "scripted"

[server]
port = 0

[confirm]
enabled = false
"""
ANSWER = re.compile(r"echo: .*message (\d+)")
MESSAGE = re.compile(r"message (\d+)")
Fault = TypeVar("Fault")


class Troubles(NamedTuple, Generic[Fault]):
    """What a platform's stand-in can do to a call."""

    waits: Fault
    cut_before: Fault
    cut_after: Fault
    failed_after: Fault


class Weather(Generic[Fault]):
    """Troubles by chance: waits, and connections that are cut before or after a call was carried out."""

    def __init__(self, troubles: Troubles[Fault]) -> None:
        waits, cut_before, cut_after, failed_after = troubles
        self.troubles = (
            (0.06, "waits", waits),
            (0.12, "cut before", cut_before),
            (0.20, "cut after", cut_after),
            (0.23, "failed after", failed_after),
        )
        self.met: Counter[str] = Counter()
        self.calm = True

    def draw(self, call: str, *, waits: bool = True) -> Fault | None:
        """What becomes of a call; without ``waits`` the platform never asks for patience."""
        if self.calm:
            return None
        chance = random.random()
        for below, name, fault in self.troubles:
            if chance < below:
                if name == "waits" and not waits:
                    return None
                self.met[f"{call}: {name}"] += 1
                return fault
        return None


class BesetPlatform(Protocol):
    """A stand-in, and the people who write there."""

    @property
    def environ(self) -> dict[str, str]:
        """The secrets that the program needs."""

    @property
    def settings(self) -> str:
        """The tables of its channel in the configuration."""

    async def greet(self) -> None:
        """Wait until the program, which runs for the first time, will miss nothing from now on."""

    async def write(self, text: str) -> None:
        """Somebody writes."""

    def texts(self) -> list[str]:
        """What we said there."""

    async def until(self, holds: Callable[[], object], seconds: float) -> None: ...


class Toll(NamedTuple):
    kills: int
    missing: set[int]
    """Not answered: nobody knows, or every attempt broke off, and somebody is told."""


class KilledGateway:
    def __init__(self, home: Path, platform: BesetPlatform, weather: Weather[Any]) -> None:
        self._home = home
        self._platform = platform
        self._weather = weather
        self._written = 0
        folder = home / ".frontdesk"
        folder.mkdir()
        (folder / "frontdesk.toml").write_text(AGENT + platform.settings)

    async def kill_often(self, tell: counts.Tell) -> Toll:
        """Whatever happens, each message is answered once; or somebody is told that nobody knows."""
        kills, fewest, platform = counts.count(3, 40), counts.count(30, 400), self._platform
        async with self.running():
            await platform.greet()
        self._weather.calm = False
        writing = asyncio.create_task(self._write())
        for _ in range(kills):
            async with self.running() as process:
                enough = len(platform.texts()) + random.randrange(6)
                await self._until(lambda enough=enough: len(platform.texts()) > enough)  # type: ignore[misc]
                process.kill()
                process.wait()
        async with self.running(ready=True):  # who asks it for deliveries before holds the store
            await self._until(lambda: self._written >= fewest)
            self._weather.calm = True
            await writing
            unknown = await self._settled()
        answers, messages = Counter(answered(platform.texts())), set(range(self._written))
        assert set(answers) <= messages
        assert {number: copies for number, copies in answers.items() if copies > 1} == {}
        missing = messages - set(answers)
        assert missing <= unknown
        tell("kills", kills)
        tell("messages answered once", len(answers))
        tell("of which nobody knows, or every attempt broke off: somebody is told", len(missing))
        for name, count in self._weather.met.items():
            tell(name, count)
        return Toll(kills, missing)

    @asynccontextmanager
    async def running(self, *, ready: bool = False) -> AsyncIterator[Popen[bytes]]:
        """The program; once it is ready, if so said."""
        with program.start(self._home, "run", terminal=False, **self._platform.environ) as process:
            if ready:
                await asyncio.to_thread(program.read_until, process, READY)
            with program.drained(process, self._home / "log.txt"):
                yield process

    async def _until(self, holds: Callable[[], object]) -> None:
        await self._platform.until(holds, 5 * patience.PATIENCE_SECONDS)

    async def _write(self) -> None:
        while not self._weather.calm:
            if self._written - len(set(answered(self._platform.texts()))) < MOST_PENDING:
                await self._platform.write(f"message {self._written}")
                self._written += 1
            await asyncio.sleep(random.choice((0, 0.1, 0.2)))

    async def _settled(self) -> set[int]:
        """Wait until each message is answered, or the owner is told that nobody knows, or its sender that
        every attempt broke off; gives the latter two."""
        open_ones: set[int] = set()
        try:
            async with asyncio.timeout(2 * patience.PATIENCE_SECONDS):
                while True:
                    unknown = await asyncio.to_thread(self._given_up)
                    open_ones = set(range(self._written)) - unknown - set(answered(self._platform.texts()))
                    if not open_ones:
                        return unknown
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise AssertionError(f"not answered: {sorted(open_ones)}") from None

    def _given_up(self) -> set[int]:
        asked = ("deliveries", "list", "--limit", "10000", "--json")
        told = program.run(self._home, *asked, **self._platform.environ)
        assert told.returncode == 0, told.stderr
        unknown = {*answered(each["text"] for each in json.loads(told.stdout) if each["state"] == "unknown")}
        aside = map(MESSAGE.fullmatch, program.set_aside(self._home))
        return unknown | {int(found[1]) for found in aside if found}


def answered(texts: Iterable[str]) -> list[int]:
    """The numbers of the messages that are answered; notices are passed over."""
    return [int(found[1]) for found in map(ANSWER.fullmatch, texts) if found]
