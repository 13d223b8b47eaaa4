"""A message that goes on from a certain turn: in its conversation, as long as that has not gone on since."""

import asyncio

import pytest

from frontdesk import errors
from frontdesk.contracts.channels import Receipt
from frontdesk.model.turns import Turn
from tests.flow.harness import House


async def said_until(house: House, turn_id: str) -> list[str]:
    turn = await house.gateway.desk.find(turn_id)
    assert turn
    return [row["content"] for row in await house.gateway.desk.said_until(turn)]


async def ended(house: House, text: str, **fields: str) -> Turn:
    return await house.finished((await house.say(text, **fields)).turn_id)


async def test_message_follows_the_last_turn_and_no_earlier_one(house: House) -> None:
    one = await ended(house, "one")
    two = await ended(house, "two", follows=one.id)
    with pytest.raises(errors.GoneOn):
        await house.say("other", follows=one.id)
    assert (await ended(house, "three", follows=two.id)).follows == two.id
    assert await said_until(house, one.id) == ["one", "echo: one"]
    assert await said_until(house, two.id) == ["one", "echo: one", "two", "echo: two"]


async def test_event_that_comes_again_is_known_though_the_conversation_has_gone_on(house: House) -> None:
    one = await ended(house, "one")
    two = await ended(house, "two", follows=one.id, event_id="again")
    again = await house.say("two", follows=one.id, event_id="again")
    assert (again.turn_id, again.repeated, again.received_at) == (two.id, True, two.received_at)


async def test_of_many_that_follow_the_same_turn_at_once_one_goes_on(house: House) -> None:
    one = await ended(house, "one")
    outcomes = await asyncio.gather(
        *(house.say(f"next {number}", follows=one.id) for number in range(10)), return_exceptions=True
    )
    taken = [each for each in outcomes if isinstance(each, Receipt)]
    assert len(taken) == 1
    assert sum(isinstance(each, errors.GoneOn) for each in outcomes) == 9
    await house.finished(taken[0].turn_id)


async def test_turn_that_still_runs_or_waits_can_be_followed(house: House) -> None:
    running = await house.say("!hang")
    waiting = await house.say("then", follows=running.turn_id)
    with pytest.raises(errors.GoneOn):
        await house.say("other", follows=running.turn_id)
    last = await house.say("at last", follows=waiting.turn_id)
    await house.ask("/stop")
    await house.finished(last.turn_id)


async def test_session_that_people_have_left_is_not_gone_on_with(house: House) -> None:
    one = await ended(house, "one")
    await house.ask("/new")
    with pytest.raises(errors.GoneOn):
        await house.say("two", follows=one.id)
    assert await said_until(house, one.id) == ["one", "echo: one"]


async def test_what_was_taken_back_is_not_given_to_who_goes_on_from_it(house: House) -> None:
    one = await ended(house, "one")
    two = await ended(house, "two", follows=one.id)
    await house.ask("/undo")
    with pytest.raises(errors.GoneOn):
        await house.say("three", follows=two.id)
    assert await said_until(house, two.id) == []
    assert (await ended(house, "three", follows=one.id)).follows == one.id


async def test_what_was_forgotten_is_given_to_nobody(house: House) -> None:
    one = await ended(house, "one")
    await house.ask("/forget yes")
    for _ in range(2):
        with pytest.raises(errors.GoneOn):
            await house.say("two", follows=one.id)
    assert await said_until(house, one.id) == []


async def test_conversation_is_known_once_something_came_in(house: House) -> None:
    desk = house.gateway.desk
    assert not await desk.has_begun(house.source("zoe"))
    await ended(house, "one", user="zoe")
    assert await desk.has_begun(house.source("zoe"))
    assert not await desk.has_begun(house.source("ann"))


async def test_instructions_are_heeded_in_their_turn_alone_and_are_in_no_transcript(house: House) -> None:
    told = await house.ask("!show system", instructions="Answer in verse.")
    later = await house.ask("!show system")
    assert "Answer in verse." in told
    assert "Answer in verse." not in later
    rows = await house.transcript()
    assert not any(row["role"] == "system" for row in rows)
