"""A clock that is set back costs nobody more than a moment, through a whole gateway."""

import asyncio
import threading
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from frontdesk import GatewayConfig, ResetMode, SessionResetPolicy
from frontdesk.agents import scripted
from frontdesk.model import deliveries, turns
from frontdesk.model.running import Running
from frontdesk.testing import SettableClock
from tests.flow.harness import Notebook, Resting, open_house, poll

HOUR = timedelta(hours=1)
ONE_AT_A_TIME = Running(turns_at_once=1, drain_seconds=1.0)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


async def test_messages_that_wait_are_answered_after_the_clock_was_set_back(
    store_url: str, clock: SettableClock
) -> None:
    agent = Resting()
    async with open_house(store_url, clock=clock, running=ONE_AT_A_TIME, agent=agent) as house:
        await house.until((await house.say("!rest")).turn_id, turns.TurnState.RUNNING)
        await house.say("second")
        await house.say("another chat", user="bob")
        clock.advance(-HOUR)
        await house.say("third")
        agent.may_go_on.set()
        assert set(await house.notebook.wait_for(4)) >= {"echo: second", "echo: third", "echo: another chat"}
        assert [text for text in house.notebook.replies if text in ("echo: second", "echo: third")] == [
            "echo: second",
            "echo: third",
        ]


async def test_answer_that_waits_to_be_sent_again_is_sent_after_the_clock_was_set_back(
    store_url: str, clock: SettableClock
) -> None:
    notebook = Notebook()
    notebook.outcomes = [deliveries.NotSent(why="busy")]
    async with open_house(store_url, clock=clock, notebook=notebook) as house:
        receipt = await house.say("hello")

        async def refused() -> bool | None:
            (said,) = await house.store.deliveries.of_turn(receipt.turn_id) or (None,)
            return bool(said and said.error) or None

        await poll(refused)
        clock.advance(-HOUR)
        assert await notebook.wait_for(1) == ["echo: hello"]


async def test_what_waits_is_done_after_a_restart_with_an_earlier_clock(
    store_url: str, clock: SettableClock
) -> None:
    """Nobody was there when the clock was set back."""
    notebook = Notebook()
    notebook.outcomes = [deliveries.NotSent(why="busy", retry_after_seconds=200.0)]
    async with AsyncExitStack() as opened:
        running = Running(turns_at_once=1, drain_seconds=0.0)
        first = await opened.enter_async_context(
            open_house(store_url, clock=clock, running=running, notebook=notebook)
        )
        receipt = await first.say("hello")
        await first.finished(receipt.turn_id)
        await first.until((await first.say("!sleep 30", user="bob")).turn_id, turns.TurnState.RUNNING)
        await first.say("waits", user="cyd")
        await asyncio.wait_for(opened.aclose(), 60)
    clock.advance(-HOUR)
    agent = scripted.Driver(scripted.Options())
    async with open_house(store_url, clock=clock, notebook=notebook, agent=agent):
        assert set(await notebook.wait_for(2)) == {"echo: hello", "echo: waits"}


async def test_clock_that_goes_on_hastens_nothing(store_url: str, clock: SettableClock) -> None:
    notebook = Notebook()
    notebook.outcomes = [deliveries.NotSent(why="busy", retry_after_seconds=200.0)] * 2
    async with open_house(store_url, clock=clock, notebook=notebook) as house:
        await house.say("hello")
        await house.say("hello", user="bob")
        await poll(lambda: _done(len(notebook.outcomes) == 0))
        clock.advance(seconds=100)
        assert await house.ask("again", user="cyd") == "echo: again"
        await notebook.wait_for(1)
        assert notebook.replies == ["echo: again"]


async def _done(happened: bool) -> bool | None:
    return happened or None


class HouseClock:
    """Only the gateway's own thread looks at it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self.strangers = 0

    def now(self) -> datetime:
        self.strangers += threading.get_ident() != self._thread
        return datetime.now(UTC)


async def test_what_is_decided_in_a_transaction_is_given_the_time(store_url: str) -> None:
    clock = HouseClock()
    config = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=2))
    async with open_house(store_url, clock=clock, config=config) as house:
        running = await house.say("!hang")
        await house.until(running.turn_id, turns.TurnState.RUNNING)
        for text in ("waits", "/steer now", "/queue later", "/stop"):
            await house.say(text)

        async def rotated() -> bool | None:
            return any("New session" in text for text in house.notebook.notices) or None

        assert await poll(rotated)
    assert clock.strangers == 0
