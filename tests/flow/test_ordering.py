"""/queue and /steer: the sender says what becomes of a message while a turn runs, whatever is set."""

import pytest

from frontdesk.flow import intake
from frontdesk.model import turns
from frontdesk.model.running import Running
from frontdesk.model.turns import Busy
from tests.flow.harness import House, Resting, open_house


def steerable() -> Resting:
    return Resting(steers=True)


def running(mode: Busy) -> Running:
    return Running(busy_mode=mode, busy_notice=False, drain_seconds=1.0)


async def begun(house: House, text: str) -> str:
    receipt = await house.say(text)
    await house.until(receipt.turn_id, turns.TurnState.RUNNING)
    return receipt.turn_id


@pytest.mark.parametrize("mode", Busy)
async def test_steered_message_reaches_the_running_turn_whatever_the_mode(store_url: str, mode: Busy) -> None:
    async with open_house(store_url, running=running(mode), agent=steerable()) as house:
        first = await begun(house, "!steer")
        second = await house.say("/steer to the left")
        assert (await house.finished(first)).state is turns.TurnState.DONE
        assert (await house.finished(second.turn_id)).state is turns.TurnState.DONE
        assert "steered: to the left" in (await house.notebook.wait_for(1))[0]
        assert house.notebook.notices == [intake.BUSY_NOTICES[Busy.STEER]]
        rows = await house.transcript()
        assert [row["content"] for row in rows if row["role"] == "user"] == ["!steer", "to the left"]


@pytest.mark.parametrize("mode", Busy)
async def test_queued_message_waits_for_the_running_turn_whatever_the_mode(
    store_url: str, mode: Busy
) -> None:
    agent = steerable()
    async with open_house(store_url, running=running(mode), agent=agent) as house:
        first = await begun(house, "!rest; slept")
        second = await house.say("/queue then this")
        agent.may_go_on.set()
        assert (await house.finished(second.turn_id)).state is turns.TurnState.DONE
        assert (await house.finished(first)).state is turns.TurnState.DONE
        assert await house.notebook.wait_for(2) == ["echo: slept", "echo: then this"]
        assert house.notebook.notices == [intake.BUSY_NOTICES[Busy.QUEUE]]


async def test_steering_while_nothing_runs_is_a_message_and_that_is_said(house: House) -> None:
    assert await house.ask("/steer hello") == "echo: hello"
    await house.notebook.wait_for(1)
    assert house.notebook.notices == [intake.NOTHING_TO_STEER]


async def test_queueing_while_nothing_runs_is_a_message(house: House) -> None:
    assert await house.ask("/queue hello") == "echo: hello"
    await house.notebook.wait_for(1)
    assert house.notebook.notices == []


async def test_agent_that_cannot_be_steered_gets_the_message_next_and_that_is_said(store_url: str) -> None:
    agent = Resting()
    async with open_house(store_url, running=running(Busy.STEER), agent=agent) as house:
        await begun(house, "!rest; slept")
        await house.say("/steer then this")
        agent.may_go_on.set()
        assert await house.notebook.wait_for(2) == ["echo: slept", "echo: then this"]
        assert house.notebook.notices == [intake.CANNOT_STEER]


async def test_message_behind_others_is_told_so(store_url: str) -> None:
    agent = Resting()
    async with open_house(store_url, agent=agent) as house:
        await begun(house, "!rest; slept")
        await house.say("one")
        two = await house.say("/steer two")
        agent.may_go_on.set()
        await house.finished(two.turn_id)
        await house.notebook.wait_for(3)
        assert "behind 2 others" in house.notebook.notices[-1]


@pytest.mark.parametrize("command", ["/queue", "/steer"])
async def test_order_without_a_message_asks_for_one(house: House, command: str) -> None:
    assert f"{command} and the text" in await house.ask(command)


async def test_text_after_the_order_is_taken_as_it_is(house: House) -> None:
    text = "first line\n\n  second, " + "long " * 500
    assert await house.ask(f"/queue {text}") == f"echo: {text.strip()}"


@pytest.mark.parametrize("mode", Busy)
async def test_command_that_has_to_wait_says_so(store_url: str, mode: Busy) -> None:
    agent = Resting()
    bounds = Running(busy_mode=mode, drain_seconds=1.0)
    async with open_house(store_url, running=bounds, agent=agent) as house:
        first = await begun(house, "!rest; !say done")
        second = await house.say("/export")
        agent.may_go_on.set()
        assert (await house.finished(second.turn_id)).state is turns.TurnState.DONE
        assert (await house.finished(first)).state is turns.TurnState.DONE
        assert (await house.notebook.wait_for(1, "notice"))[0] == intake.BUSY_NOTICES[Busy.QUEUE]
