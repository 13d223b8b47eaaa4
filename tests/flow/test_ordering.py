"""What comes next: in a conversation as its sender says, whatever is set; among people evenly."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frontdesk import ChatType, errors
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.contracts.channels import Receipt
from frontdesk.flow import intake
from frontdesk.model import events, turns
from frontdesk.model.running import Running
from frontdesk.model.turns import Busy
from tests.flow.harness import House, Resting, open_house, poll


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


FLOOD = 40
PLACES = 4


class Queueing:
    """An agent whose turns end when they are told to, each by its text."""

    abilities = Abilities()

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        text = " ".join(str(turn.input["content"]).split()[-2:])  # in a group, a name stands before it
        self.begun.append(text)
        await self._ends.setdefault(text, asyncio.Event()).wait()
        yield events.Text(text="done")

    def end(self, *texts: str) -> None:
        for text in texts:
            self._ends.setdefault(text, asyncio.Event()).set()

    async def release(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        pass

    async def has_begun(self, count: int) -> list[str]:
        """What was begun, as soon as it is so much."""

        async def look() -> list[str] | None:
            return self.begun if len(self.begun) >= count else None

        return await poll(look)

    def people(self) -> Counter[str]:
        """How much of whom was begun."""
        return Counter(text.split()[0] for text in self.begun)


async def write(house: House, who: str, chats: Sequence[int]) -> list[Receipt]:
    """A message of somebody in each of these chats of theirs."""
    sources = [house.source(who, f"{who}-{chat}") for chat in chats]
    return [
        await house.say(f"{who} {chat}", source=source) for chat, source in zip(chats, sources, strict=True)
    ]


async def take_every_place(house: House, agent: Queueing, who: str) -> None:
    """One after the other is begun, so that none of them waits."""
    for chat in range(PLACES):
        await write(house, who, [chat])
        await agent.has_begun(chat + 1)


def evenly(**settings: Any) -> Running:
    return Running(turns_at_once=PLACES, drain_seconds=0.0, stop_seconds=0.0, **settings)


async def test_one_person_has_every_place_until_another_writes_who_comes_next(store_url: str) -> None:
    agent = Queueing()
    async with open_house(store_url, running=evenly(), agent=agent) as house:
        await write(house, "ann", range(FLOOD))
        first = list(await agent.has_begun(PLACES))
        await write(house, "bob", [0])
        agent.end(first[0])
        assert (await agent.has_begun(PLACES + 1))[PLACES] == "bob 0"
        assert (await house.store.turns.counts())["queued"] == FLOOD - PLACES
        agent.end("bob 0")  # and then nobody else waits: all of it is hers again
        assert (await agent.has_begun(PLACES + 2))[-1].startswith("ann")


async def test_newcomer_comes_before_everybody_who_has_a_part(store_url: str) -> None:
    agent = Queueing()
    async with open_house(store_url, running=evenly(), agent=agent) as house:
        for chat in range(FLOOD // 4):
            for who in ("ann", "bob", "cid"):
                await write(house, who, [chat])
        first = list(await agent.has_begun(PLACES))
        await write(house, "dan", [0])
        agent.end(*first)
        assert "dan 0" in (await agent.has_begun(2 * PLACES))[: 2 * PLACES]


async def test_people_take_turns_at_the_only_place(store_url: str) -> None:
    agent, one = Queueing(), replace(evenly(), turns_at_once=1)
    async with open_house(store_url, running=one, agent=agent) as house:
        await write(house, "ann", range(FLOOD))
        await agent.has_begun(1)
        await write(house, "bob", range(3))
        for count in range(2, 8):
            agent.end(agent.begun[-1])
            await agent.has_begun(count)
        assert [text.split()[0] for text in agent.begun] == ["ann", "bob", "ann", "bob", "ann", "bob", "ann"]


async def test_places_are_shared_anew_after_a_restart(store_url: str) -> None:
    async with open_house(store_url, running=evenly(), agent=(agent := Queueing())) as house:
        await write(house, "ann", range(FLOOD))
        await agent.has_begun(PLACES)
        await write(house, "bob", [0])
    async with open_house(store_url, running=evenly(), agent=(agent := Queueing())) as house:
        await agent.has_begun(PLACES)
        assert agent.people() == {"ann": PLACES - 1, "bob": 1}


async def test_threads_of_a_group_are_one_party_beside_a_person(store_url: str) -> None:
    agent = Queueing()
    async with open_house(store_url, running=evenly(), agent=agent) as house:
        for thread in range(FLOOD // 2):
            source = house.source(f"u{thread}", "group", thread_id=str(thread), chat_type=ChatType.GROUP)
            await house.say(f"group {thread}", source=source)
        first = list(await agent.has_begun(PLACES))
        await write(house, "bob", range(PLACES))
        agent.end(*first)
        await agent.has_begun(2 * PLACES)
        running = Counter(text.split()[0] for text in agent.begun[PLACES:])
        assert running["bob"] >= PLACES // 2


async def test_message_of_somebody_with_too_many_in_all_their_chats_is_refused(store_url: str) -> None:
    agent = Queueing()
    async with open_house(store_url, running=evenly(most_waiting_per_person=3), agent=agent) as house:
        await take_every_place(house, agent, "ann")
        await write(house, "ann", [10, 11, 12])
        with pytest.raises(errors.TooManyOfOne, match="3 messages"):
            await write(house, "ann", [13])
        assert await house.ask("/status")
        assert [each.waiting for each in await write(house, "bob", [1, 2, 3])] == [0, 0, 0]
        agent.end("ann 0")
        await agent.has_begun(PLACES + 1)
        await write(house, "bob", [4])


async def test_no_more_of_one_person_are_taken_in_when_they_come_at_once(tmp_path: Path) -> None:
    agent, url = Queueing(), f"sqlite:///{tmp_path}/state.db"
    async with open_house(url, running=evenly(most_waiting_per_person=3), agent=agent) as house:
        await take_every_place(house, agent, "bob")
        said = [write(house, "ann", [chat]) for chat in range(FLOOD)]
        outcomes = await asyncio.gather(*said, return_exceptions=True)
        assert sum(not isinstance(each, BaseException) for each in outcomes) == 3
