"""A node that stood still while others took over: what is over is neither begun nor carried on."""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from frontdesk import SessionStore
from frontdesk.app.gateway import Gateway
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import deliveries, events
from frontdesk.model.lanes import LEASE_SECONDS
from frontdesk.model.running import Running
from frontdesk.model.turns import TurnKind, TurnState
from frontdesk.stores.store import Store
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, open_house, poll


class Acting:
    """An agent that writes down when it is begun and when it goes on: whatever it does there has happened."""

    abilities = Abilities()

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.acted: list[int] = []

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        self.begun.append(turn.attempt)
        yield events.Calls(calls=(events.Call(id="c1", name="look", arguments="{}"),))
        self.acted.append(turn.attempt)
        yield events.Result(id="c1", content="seen")
        yield events.Text(text="done")

    async def release(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        pass


class Still:
    """Stands still once, after a step: others go on, the clock does, and we know nothing of it."""

    def __init__(self, step: str | None = None) -> None:
        self.step = step
        self.reached = asyncio.Event()
        self._seconds = 0.0
        self._awake = asyncio.Event()

    def elapsed(self) -> float:
        return self._seconds

    def wake(self, *, after_seconds: float) -> None:
        self._seconds += after_seconds
        self._awake.set()

    async def take(self, step: str, work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = await work(*arguments, **named)
        if step == self.step and result != []:
            self.step = None
            self.reached.set()
            await self._awake.wait()
        return result


class Room:
    def __init__(self, name: str, inner: object, still: Still) -> None:
        self._name, self._inner, self._still = name, inner, still

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)

        async def take(*arguments: Any, **named: Any) -> Any:
            return await self._still.take(f"{self._name}.{name}", found, *arguments, **named)

        return take


class StillStore:
    def __init__(self, store: Store, still: Still) -> None:
        self._store = store
        self.turns = Room("turns", store.turns, still)
        self.deliveries = Room("deliveries", store.deliveries, still)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@asynccontextmanager
async def standing_still(
    url: str, still: Still, agent: Acting, notebook: Notebook | None = None
) -> AsyncIterator[House]:
    notebook = notebook or Notebook()
    async with await SessionStore.open(url) as opened:
        sessions = SessionStore(cast("Store", StillStore(opened.store, still)), opened.config)
        running = Running(drain_seconds=1.0)
        gateway = Gateway(sessions, agent, [notebook], running=running, elapsed=still.elapsed)
        async with gateway.started():
            yield House(gateway, notebook)


async def taken_over(house: House, still: Still) -> None:
    """Somebody takes what the node has."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await still.reached.wait()
    store, parts = house.store, house.gateway.parts
    await store.turns.recover(house.gateway.node or 0, parts.try_again_at, parts.clock.now())


@pytest.mark.parametrize("step", ["turns.claim", "turns.begin"])
async def test_turn_that_somebody_else_has_is_not_begun_by_a_node_that_wakes_up(
    store_url: str, step: str
) -> None:
    agent, still = Acting(), Still(step)
    async with standing_still(store_url, still, agent) as house:
        turn = await house.bring("hello")
        await taken_over(house, still)
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await house.finished(turn.id)
        assert agent.begun == agent.acted == [2]


async def test_turn_that_somebody_else_has_is_not_begun_by_a_node_that_stood_still_as_it_took_it_in(
    store_url: str,
) -> None:
    agent, still = Acting(), Still()
    async with standing_still(store_url, still, agent) as house:
        await house.ask("before")  # by now the crew waits for a bell, and has room
        still.step = "turns.accept"
        saying = asyncio.create_task(house.say("hello"))
        await taken_over(house, still)
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await house.finished((await saying).turn_id)
        assert agent.begun == agent.acted == [1, 2]


async def test_message_is_answered_though_whoever_brought_it_left_as_it_was_stored(store_url: str) -> None:
    agent, still = Acting(), Still()
    async with standing_still(store_url, still, agent) as house:
        await house.ask("before")  # by now the crew waits for a bell, and has room
        still.step = "turns.accept"
        saying = asyncio.create_task(house.say("hello"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await still.reached.wait()
        saying.cancel()
        await asyncio.wait({saying})
        still.wake(after_seconds=0)
        assert await house.notebook.wait_for(2) == ["done", "done"]
        assert agent.begun == [1, 1]


async def test_message_that_is_stored_as_the_gateway_closes_is_run_or_put_back(store_url: str) -> None:
    agent, still = Acting(), Still()
    async with standing_still(store_url, still, agent) as house:
        await house.ask("before")  # by now the crew waits for a bell, and has room
        still.step = "turns.accept"
        saying = asyncio.create_task(house.say("hello"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await still.reached.wait()
        closing = asyncio.create_task(house.gateway.close())
        still.wake(after_seconds=0)
        await closing
        turn = await house.store.turns.find((await saying).turn_id)
        assert turn
        assert turn.state in (TurnState.QUEUED, TurnState.DONE)
        assert await house.store.turns.held(house.gateway.node or 0) == set()


async def test_turn_that_is_known_to_be_lost_is_not_begun(store_url: str) -> None:
    agent, still = Acting(), Still("turns.begin")
    async with standing_still(store_url, still, agent) as house:
        receipt = await house.say("hello")
        await taken_over(house, still)
        await house.finished(receipt.turn_id)
        still.wake(after_seconds=0)
    assert agent.begun == agent.acted == [2]


async def test_agent_that_was_begun_is_not_asked_to_go_on_with_what_somebody_else_has(store_url: str) -> None:
    agent, still = Acting(), Still("turns.record")
    async with standing_still(store_url, still, agent) as house:
        receipt = await house.say("hello")
        await taken_over(house, still)
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await house.finished(receipt.turn_id)
        assert (agent.begun, agent.acted) == ([1, 2], [2])


@pytest.mark.parametrize("step", ["turns.claim", "turns.begin", "turns.record"])
async def test_turn_that_nobody_took_goes_on_after_the_node_wakes_up(store_url: str, step: str) -> None:
    agent, still = Acting(), Still(step)
    async with standing_still(store_url, still, agent) as house:
        turn = await house.bring("hello")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await still.reached.wait()
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await house.finished(turn.id)
        assert agent.begun == agent.acted == [1]
        assert await house.notebook.wait_for(1) == ["done"]


async def test_command_is_carried_out_by_one_of_two_who_had_it(store_url: str) -> None:
    agent, still = Acting(), Still()
    async with standing_still(store_url, still, agent) as house:
        await house.ask("hello")
        still.step = "turns.claim"
        turn = await house.bring("/new", kind=TurnKind.COMMAND)
        await taken_over(house, still)
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await house.finished(turn.id)
        viewer = await house.sessions.viewer_for(house.source())
        assert len(await house.store.sessions.list_owned(viewer, limit=10)) == 2


@pytest.mark.parametrize(("idempotent", "sent"), [(True, ["done"]), (False, [])])
async def test_answer_that_somebody_else_has_is_not_sent_by_a_node_that_wakes_up(
    store_url: str, idempotent: bool, sent: list[str]
) -> None:
    """Where a second send does harm, it counts as perhaps sent: whoever took it cannot know."""
    agent, still = Acting(), Still("turns.finish")
    notebook = Notebook(idempotent_seconds=math.inf if idempotent else 0.0)
    async with standing_still(store_url, still, agent, notebook) as house:
        receipt = await house.say("hello")
        await taken_over(house, still)
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await house.finished(receipt.turn_id)
        await settled(house, receipt.turn_id)
        assert notebook.replies == sent


async def test_delivery_that_somebody_else_has_is_not_sent_by_a_node_that_wakes_up(store_url: str) -> None:
    agent, still = Acting(), Still("deliveries.claim")
    async with standing_still(store_url, still, agent) as house:
        source, now = house.source(), house.gateway.parts.clock.now()
        told = deliveries.Delivery(
            id="d1", lane="chat:1", to=source, text="told", turn_id="t1", created_at=now, final=False
        )
        await house.store.deliveries.add([told])
        await taken_over(house, still)
        still.wake(after_seconds=LEASE_SECONDS + 1)
        await settled(house, "t1")
        assert len(house.notebook.sent) <= 1


@pytest.mark.parametrize("step", ["turns.finish", "deliveries.claim"])
async def test_answer_that_is_cut_off_before_it_is_sent_waits_for_the_next_start(
    store_url: str, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was only claimed did not arrive for certain, also where a second send would do harm."""
    still, notebook = Still(step), Notebook()
    caplog.set_level(logging.INFO)

    async def nothing_else_is_waited_for() -> bool | None:
        told = [each.getMessage() for each in caplog.records]
        return any("crew_not_drained" in each and "deliveries" in each for each in told) or None

    async with standing_still(store_url, still, Acting(), notebook) as house:
        source, now, turn_id = house.source(), house.gateway.parts.clock.now(), "t1"
        if step == "turns.finish":
            turn_id = (await house.say("hello")).turn_id
        else:
            told = deliveries.Delivery(
                id="d1", lane="chat:1", to=source, text="done", turn_id=turn_id, created_at=now
            )
            await house.store.deliveries.add([told])
        async with asyncio.timeout(PATIENCE_SECONDS):
            await still.reached.wait()
        house.gateway.hurry()
        closing = asyncio.create_task(house.gateway.close())
        await poll(nothing_else_is_waited_for)
        still.wake(after_seconds=0)
        await closing
        (waiting,) = await house.store.deliveries.of_turn(turn_id)
        assert (waiting.state, waiting.attempts) == (deliveries.DeliveryState.PENDING, 0)
    assert notebook.sent == []
    async with open_house(store_url, notebook=notebook):
        assert await notebook.wait_for(1) == ["done"]


async def settled(house: House, turn_id: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            (found,) = await house.store.deliveries.of_turn(turn_id)
            if found.state in (deliveries.DeliveryState.SENT, deliveries.DeliveryState.UNKNOWN):
                return
            await asyncio.sleep(0.01)
