"""How answers go out: one after the other to a chat, no sooner than its platform wants, and never twice."""

import asyncio
import math
from typing import Any

import pytest

from frontdesk.flow import delivery as sending
from frontdesk.flow import parts
from frontdesk.model import deliveries
from frontdesk.model.deliveries import DeliveryState, NotSent, Outcome, Sent, Unknown
from tests.flow.harness import House, Notebook, open_house, poll

CUT = Unknown(why="cut off")


class Searchable(Notebook):
    """A platform where a message can be looked for by the id of its delivery."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**capabilities)
        self.taken: list[str] = []
        """What the platform has, each as often as it came."""
        self.sends = 0
        self.finds: list[Outcome | None] = []
        """What is found, once each; None, and then: as it is."""
        self.looks = 0

    async def send(self, delivery: deliveries.Delivery) -> Outcome:
        self.sends += 1
        outcome = await super().send(delivery)
        if isinstance(outcome, Sent) or outcome is CUT:
            self.taken.append(delivery.id)
        return outcome

    async def find(self, delivery: deliveries.Delivery) -> Outcome:
        self.looks += 1
        outcome = self.finds.pop(0) if self.finds else None
        if outcome:
            return outcome
        return Sent(message_id="found") if delivery.id in self.taken else NotSent(why="not there")


async def settled(house: House, turn_id: str) -> deliveries.Delivery:
    """The answer, once nothing more is to be done about it."""

    async def look() -> deliveries.Delivery | None:
        said = await house.store.deliveries.of_turn(turn_id)
        final = (DeliveryState.SENT, DeliveryState.UNKNOWN, DeliveryState.DEAD)
        return said[0] if said and said[0].state in final else None

    return await poll(look)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ARRIVAL_SECONDS", 0.02)
    monkeypatch.setattr(sending, "FIRST_PAUSE_SECONDS", 0.02)


async def test_answer_that_arrived_unseen_is_found_and_not_sent_again(store_url: str) -> None:
    notebook = Searchable()
    notebook.outcomes = [CUT]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
    assert (answer.state, answer.platform_message_id) == (DeliveryState.SENT, "found")
    assert (len(notebook.taken), notebook.looks) == (1, 1)


async def test_answer_that_is_not_found_is_sent_again(store_url: str) -> None:
    notebook = Searchable()
    notebook.outcomes = [Unknown(why="cut off before it was taken")]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
    assert (answer.state, len(notebook.taken), notebook.looks) == (DeliveryState.SENT, 1, 1)


async def test_search_that_tells_nothing_is_made_again(store_url: str) -> None:
    notebook = Searchable()
    notebook.outcomes, notebook.finds = [CUT], [Unknown(why="away"), Unknown(why="away")]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
    assert (answer.state, len(notebook.taken), notebook.looks) == (DeliveryState.SENT, 1, 3)


async def test_answer_that_nobody_will_ever_know_of_does_not_hold_up_the_next(store_url: str) -> None:
    notebook = Searchable()
    notebook.outcomes, notebook.finds = [CUT], [Unknown(why="nothing is kept", hopeless=True)]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
        assert (answer.state, answer.error) == (DeliveryState.UNKNOWN, "nothing is kept")
        assert (await settled(house, (await house.say("again")).turn_id)).state is DeliveryState.SENT


async def test_answer_that_is_looked_for_in_vain_does_not_hold_up_the_next_for_ever(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SEEK_SECONDS", 0.1)
    monkeypatch.setattr(sending, "SHORT_PAUSE_SECONDS", 0.02)
    notebook = Searchable()
    notebook.outcomes, notebook.finds = [CUT], [Unknown(why="away")] * 1000
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
        assert (answer.state, answer.attempts) == (DeliveryState.UNKNOWN, notebook.looks + 1)
        assert notebook.looks >= 7
        assert (await settled(house, (await house.say("again")).turn_id)).state is DeliveryState.SENT


async def test_answer_is_looked_for_after_the_time_in_which_the_platform_knows_it_again(
    store_url: str,
) -> None:
    notebook = Searchable(idempotent_seconds=0.01)
    notebook.outcomes = [CUT]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
    assert (answer.state, len(notebook.taken), notebook.looks) == (DeliveryState.SENT, 1, 1)


async def test_answer_is_repeated_as_long_as_the_platform_knows_it_again(store_url: str) -> None:
    notebook = Notebook(idempotent_seconds=math.inf)
    notebook.outcomes = [CUT, CUT]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
    assert (answer.state, answer.attempts, len(notebook.sent)) == (DeliveryState.SENT, 3, 1)


async def test_answer_is_not_repeated_once_the_platform_would_not_know_it_again(store_url: str) -> None:
    notebook = Notebook(idempotent_seconds=0.5)
    notebook.outcomes = [CUT, NotSent(why="wait", retry_after_seconds=1.0)]
    async with open_house(store_url, notebook=notebook) as house:
        answer = await settled(house, (await house.say("hello")).turn_id)
        assert (answer.state, notebook.sent) == (DeliveryState.UNKNOWN, [])
        assert answer.error == sending.TOO_LATE.why
        # A person who knows better sends it again.
        notebook.outcomes = []
        assert await house.store.deliveries.revive(answer.id, house.gateway.parts.clock.now())
        assert (await settled(house, answer.turn_id or "")).state is DeliveryState.SENT


async def test_send_under_way_when_the_node_died_is_looked_for(store_url: str) -> None:
    notebook = Searchable()
    async with open_house(store_url, notebook=notebook) as house:
        hangs = asyncio.Event()

        async def take_and_hang(delivery: deliveries.Delivery) -> Outcome:
            notebook.taken.append(delivery.id)
            await hangs.wait()
            return Sent()

        notebook.send, send = take_and_hang, notebook.send  # type: ignore[method-assign]
        receipt = await house.say("hello")

        async def look() -> bool | None:
            return bool(notebook.taken) or None

        await poll(look)
        notebook.send = send  # type: ignore[method-assign]
        parts_, node = house.gateway.parts, house.gateway.node
        assert node is not None
        await house.store.turns.recover(node, parts_.try_again_at, parts_.clock.now())
        answer = await settled(house, receipt.turn_id)
        assert (answer.state, answer.platform_message_id) == (DeliveryState.SENT, "found")
        hangs.set()
    assert (len(notebook.taken), notebook.looks) == (1, 1)


async def test_answer_is_kept_with_the_time_since_which_it_may_have_arrived(store_url: str) -> None:
    notebook = Searchable()
    notebook.outcomes, notebook.finds = [CUT], [Unknown(why="away")] * 1000
    async with open_house(store_url, notebook=notebook) as house:
        receipt = await house.say("hello")

        async def look() -> deliveries.Delivery | None:
            said = await house.store.deliveries.of_turn(receipt.turn_id)
            return said[0] if said and said[0].unsure_since else None

        answer = await poll(look)
        assert answer.unsure_since
        assert (answer.text, answer.unsure_since >= answer.created_at) == ("echo: hello", True)


async def test_chat_that_was_told_to_wait_gets_nothing_and_others_do(store_url: str) -> None:
    notebook = Notebook()
    async with open_house(store_url, notebook=notebook) as house:
        pacing = house.gateway.parts.pacing
        pacing.heed(house.source("ann"), NotSent(why="slow down", retry_after_seconds=3600.0))
        waits = await house.say("hello", "ann")
        assert await house.ask("hello", "bob")
        await notebook.wait_for(1)

        async def look() -> deliveries.Delivery | None:
            said = await house.store.deliveries.of_turn(waits.turn_id)
            return said[0] if said and said[0].error else None

        answer = await poll(look)
        assert (answer.state, answer.attempts, answer.error) == (
            DeliveryState.PENDING,
            0,
            sending.TOLD_TO_WAIT,
        )
        assert answer.due_at
        assert 3500 < (answer.due_at - answer.created_at).total_seconds() <= 3601
        assert [each.to.user_id for each in notebook.sent] == ["bob"]


async def test_wait_that_one_answer_was_told_holds_for_the_next_one_in_another_thread(store_url: str) -> None:
    notebook = Notebook()
    notebook.outcomes = [NotSent(why="slow down", retry_after_seconds=3600.0)]
    async with open_house(store_url, notebook=notebook) as house:
        first = await house.say("one", source=house.source(thread_id="1"))
        await house.finished(first.turn_id)

        async def refused() -> bool | None:
            said = await house.store.deliveries.of_turn(first.turn_id)
            return bool(said[0].error) or None

        await poll(refused)
        second = await house.say("two", source=house.source(thread_id="2"))

        async def put_off() -> deliveries.Delivery | None:
            said = await house.store.deliveries.of_turn(second.turn_id)
            return said[0] if said and said[0].error else None

        assert (await poll(put_off)).error == sending.TOLD_TO_WAIT
        assert notebook.sent == []


async def test_pieces_of_an_answer_keep_the_pause_between_them(store_url: str) -> None:
    notebook = Notebook(send_pause_seconds=0.05, text_limit=10)
    times: list[float] = []
    async with open_house(store_url, notebook=notebook) as house:
        send = notebook.send

        async def timed(delivery: deliveries.Delivery) -> Outcome:
            times.append(house.gateway.parts.elapsed())
            return await send(delivery)

        notebook.send = timed  # type: ignore[method-assign]
        before = house.gateway.parts.elapsed()
        await house.say("one two three four five")
        await notebook.wait_for(3)
    assert all(time - before >= number * 0.05 for number, time in enumerate(times))
