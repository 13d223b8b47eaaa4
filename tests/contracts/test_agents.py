"""Every driver that needs no model keeps the contract of an agent."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontdesk.agents import command, python, scripted
from frontdesk.agents.bounds import Bounded
from frontdesk.contracts.agents import Agent, Line
from frontdesk.model import events, messages
from frontdesk.testing.agents import AgentContract

EXAMPLE = Path(__file__).parents[2] / "examples" / "command_agent.py"


async def generator(turn: events.Assignment, line: Line) -> AsyncIterator[events.Event | str]:
    text = messages.text_of(turn.input)
    yield "You said: "
    if text == "slow":
        await asyncio.Event().wait()
    yield events.Text(text=text)


async def coroutine(turn: events.Assignment, line: Line) -> str:
    text = messages.text_of(turn.input)
    if text == "slow":
        await asyncio.Event().wait()
    return f"You said: {text}"


def plain(turn: events.Assignment, line: Line) -> str:
    text = messages.text_of(turn.input)
    while text == "slow" and not line.stopping:
        time.sleep(0.01)  # what a function does that blocks
    return f"You said: {text}"


class Echoing(AgentContract):
    def expected(self, text: str) -> str | None:
        return f"You said: {text}"


class TestScripted(AgentContract):
    slow = "!say one; !hang"
    slow_speaks = True

    def expected(self, text: str) -> str | None:
        return f"echo: {text}"

    @pytest.fixture
    async def agent(self) -> AsyncIterator[Agent]:
        driver = scripted.Driver(scripted.Options())
        yield driver
        await driver.close()


class TestBounded(TestScripted):
    @pytest.fixture
    async def agent(self) -> AsyncIterator[Agent]:
        driver = Bounded(scripted.Driver(scripted.Options()))
        yield driver
        await driver.close()


class TestCommand(Echoing):
    slow = "count 100000"
    slow_speaks = True
    keep = False

    @pytest.fixture
    async def agent(self) -> AsyncIterator[Agent]:
        program = (sys.executable, "-X", "utf8", str(EXAMPLE))
        driver = command.Driver(command.Options(command=program, keep=self.keep))
        yield driver
        await driver.close()


class TestCommandKept(TestCommand):
    keep = True


class TestPythonGenerator(Echoing):
    slow = "slow"
    slow_speaks = True
    target = "generator"

    @pytest.fixture
    async def agent(self) -> AsyncIterator[Agent]:
        driver = python.Driver(python.Options(target=f"{__name__}:{self.target}"))
        yield driver
        await driver.close()


class TestPythonCoroutine(TestPythonGenerator):
    slow_speaks = False
    target = "coroutine"


class TestPythonFunction(Echoing):
    slow = "slow"

    @pytest.fixture
    async def agent(self) -> AsyncIterator[Agent]:
        driver = python.Driver(python.Options(target=f"{__name__}:plain", stops=True))
        yield driver
        await driver.close()
