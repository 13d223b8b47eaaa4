"""A receiver that was away and is back: what waited for it goes out."""

from datetime import UTC, datetime

from frontdesk.model import deliveries
from frontdesk.testing import SettableClock
from tests.flow.harness import House, Notebook, open_house, poll

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
AWAY = deliveries.NotSent(why="connection refused")
BUSY = deliveries.NotSent(why="busy", retry_after_seconds=3600)
REFUSED = deliveries.NotSent(why="it answered 500")
POISON = "echo: poison"
PEOPLE = ("ann", "bob", "cem", "dee")


class Picky(Notebook):
    """Takes every answer but one."""

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        return REFUSED if delivery.text == POISON else await super().send(delivery)


async def late_ones(house: House, count: int) -> list[deliveries.Delivery]:
    async def look() -> list[deliveries.Delivery] | None:
        found = await house.store.deliveries.late(100)
        waiting = [each for each in found if each.state is deliveries.DeliveryState.PENDING]
        return waiting if len(waiting) == count else None

    return await poll(look)


async def test_one_answer_that_arrives_makes_the_others_due_at_once(store_url: str) -> None:
    async with open_house(store_url, clock=SettableClock(NOON)) as house:
        house.notebook.outcomes = [AWAY] * len(PEOPLE)
        for person in PEOPLE:
            await house.say("hello", person)
        late = await late_ones(house, len(PEOPLE))
        assert all((each.attempts, each.error) == (1, AWAY.why) for each in late)
        await house.say("are you there?", "eve")
        said = await house.notebook.wait_for(len(PEOPLE) + 1)
        assert sorted(said) == ["echo: are you there?", *["echo: hello"] * len(PEOPLE)]


async def test_wait_that_the_receiver_asked_for_is_kept(store_url: str) -> None:
    async with open_house(store_url, clock=SettableClock(NOON)) as house:
        house.notebook.outcomes = [BUSY]
        await house.say("hello", "ann")
        (busy,) = await late_ones(house, 1)
        await house.say("are you there?", "eve")
        await house.notebook.wait_for(1)
        assert await house.store.deliveries.find(busy.id) == busy


async def test_answer_that_is_refused_while_others_arrive_waits_as_it_would_alone(store_url: str) -> None:
    async with open_house(store_url, clock=SettableClock(NOON), notebook=Picky()) as house:
        await house.say("poison", "ann")
        await late_ones(house, 1)
        for number in range(1, 11):
            await house.say(f"hello {number}", "eve")
            await house.notebook.wait_for(number)
        await house.say("last", "eve")
        await house.notebook.wait_for(11)
        (late,) = await late_ones(house, 1)
        assert late.attempts <= 2
