"""What a turn says on one node is heard on another one, while it is said."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from frontdesk.model import events, turns
from frontdesk.model.running import Running
from tests.flow.harness import PATIENCE_SECONDS, House, open_house
from tests.flow.test_drafting import Dictated

LONG = '"quoted" \\ \0 \u2028 é 🙂 ' * 400


class Listener:
    """Somebody who follows a turn on a node."""

    def __init__(self, house: House, turn_id: str) -> None:
        self.said: list[events.Event] = []
        self.end: turns.Turn | None = None
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._follow(house, turn_id))

    async def _follow(self, house: House, turn_id: str) -> None:
        async with aclosing(house.gateway.desk.follow(turn_id)) as steps:
            async for step in steps:
                if isinstance(step, turns.Turn):
                    self.end = step
                else:
                    self.said.append(step)
                self._came.set()

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.said if isinstance(each, events.Text))

    async def hears(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self.text.endswith(text):
                await self._came.wait()
                self._came.clear()

    async def hears_the_end(self) -> turns.TurnState:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._task
        assert self.end
        return self.end.state


@asynccontextmanager
async def node(url: str, agent: Dictated) -> AsyncIterator[House]:
    async with open_house(url, agent=agent, running=Running(drain_seconds=0.1)) as house:
        yield house


async def test_answer_grows_on_a_node_where_it_is_not_written(shared_url: str) -> None:
    agent = Dictated()
    async with node(shared_url, agent) as here:
        receipt = await here.say("hello")
        await here.until(receipt.turn_id, turns.TurnState.RUNNING)
        async with node(shared_url, Dictated()) as there:
            early = Listener(there, receipt.turn_id)
            agent.say("One")
            await early.hears("One")
            agent.say(LONG)
            await early.hears(LONG)
            late = Listener(there, receipt.turn_id)
            await late.hears(LONG)
            agent.do(events.Text(text=" two"), events.Done())
            assert await early.hears_the_end() is await late.hears_the_end() is turns.TurnState.DONE
            assert early.text == late.text == f"One{LONG} two"


async def test_who_comes_when_others_have_left_hears_it_from_the_beginning(shared_url: str) -> None:
    agent = Dictated()
    async with node(shared_url, agent) as here:
        receipt = await here.say("hello")
        await here.until(receipt.turn_id, turns.TurnState.RUNNING)
        async with node(shared_url, Dictated()) as there:
            agent.say("One")
            async with aclosing(there.gateway.desk.follow(receipt.turn_id)) as steps:
                assert await anext(steps) == events.Text(text="One")
            after = Listener(there, receipt.turn_id)
            await after.hears("One")
            agent.do(events.Text(text=" two"), events.Done())
            assert await after.hears_the_end() is turns.TurnState.DONE
            assert after.text == "One two"


async def test_who_follows_is_told_that_a_turn_begins_anew_on_another_node(shared_url: str) -> None:
    first, second = Dictated(), Dictated()
    async with AsyncExitStack() as opened:
        here = await opened.enter_async_context(node(shared_url, first))
        receipt = await here.say("hello")
        await here.until(receipt.turn_id, turns.TurnState.RUNNING)
        async with node(shared_url, second) as there:
            heard = Listener(there, receipt.turn_id)
            first.say("One")
            await heard.hears("One")
            await here.gateway.close()
            second.do(events.Text(text="Two"), events.Done())
            assert await heard.hears_the_end() is turns.TurnState.DONE
            assert events.Restarted() in heard.said
            since = heard.said[heard.said.index(events.Restarted()) :]
            assert "".join(each.text for each in since if isinstance(each, events.Text)) == "Two"


async def test_who_follows_hears_a_turn_that_is_tried_again_where_it_failed(shared_url: str) -> None:
    agent = Dictated()
    async with node(shared_url, agent) as here:
        receipt = await here.say("hello")
        await here.until(receipt.turn_id, turns.TurnState.RUNNING)
        async with node(shared_url, agent) as there:
            heard = Listener(there, receipt.turn_id)
            agent.say("One")
            await heard.hears("One")
            agent.do(events.Failed(message="Later.", retryable=True), events.Text(text="Two"))
            await heard.hears("Two")
            agent.do(events.Done())
            assert await heard.hears_the_end() is turns.TurnState.DONE
            assert events.Restarted() in heard.said
