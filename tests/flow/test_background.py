"""Work that goes on beyond a turn, and what is told in one chat alone, through a whole gateway."""

import sys

import msgspec

from frontdesk.agents import command
from frontdesk.model.running import Running
from tests.flow.harness import open_house
from tests.flow.test_rotation import current, limited, rotated, spent


async def test_agent_says_that_work_goes_on_beyond_its_turn(store_url: str) -> None:
    config = limited(max_messages=2)
    async with open_house(store_url, config=config) as house:
        await house.ask("!background build 600; one")
        first = await current(house)
        assert "Work goes on in the background" in await house.ask("/status")
    async with open_house(store_url, config=config) as house:
        await house.ask("two", event_id="two")
        assert (await current(house)).id == first.id
        await house.ask("!background build ended; three", event_id="three")
        assert (await rotated(house, first)).parent_id == first.id


async def test_background_work_that_makes_no_sense_does_not_stop_the_turn(store_url: str) -> None:
    async with open_house(store_url) as house:
        assert await house.ask("!background build -1; ok") == "echo: ok"
        assert not await house.sessions.is_busy(await house.key())


PROGRAM = """\
import json, sys
turn = json.loads(sys.stdin.readline())
print(json.dumps({"type": "background", "name": "build", "seconds": 60}))
print(json.dumps({"type": "text", "text": "begun"}))
print(json.dumps({"type": "done"}), flush=True)
"""


async def test_program_says_that_work_goes_on_beyond_its_turn(store_url: str) -> None:
    agent = command.Driver(command.Options(command=(sys.executable, "-c", PROGRAM)))
    async with open_house(store_url, agent=agent) as house:
        assert await house.ask("hello") == "begun"
        assert await house.sessions.is_busy(await house.key())


# instructions of a chat


async def test_instructions_of_a_chat_and_its_topic_are_given_in_every_session(store_url: str) -> None:
    bound = {"matrix:chat-ann": "Speak of boats.", "matrix:chat-ann:7": "Be brief.", "matrix:other": "No."}
    config = msgspec.structs.replace(limited(max_messages=2), instructions=bound)
    running = Running(extra_prompt="And smile.", drain_seconds=1.0)
    async with open_house(store_url, config=config, running=running) as house:
        for _ in range(2):
            told = await house.ask("!show system")
            assert "Speak of boats.\n\nAnd smile." in told
            assert "Be brief." not in told
            await rotated(house, await spent(house, "next"))
        told = await house.ask("!show system", source=house.source(thread_id="7"))
        assert "Speak of boats.\n\nBe brief.\n\nAnd smile." in told
        hanging = house.source(chat="sub", parent_chat_id="chat-ann")
        assert "Speak of boats." in await house.ask("!show system", source=hanging)
