"""Answers that are shown while they are written: one message, whatever happens on the way."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from frontdesk import Platform, SessionSource, errors, plugins
from frontdesk.channels import webhook
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.model import deliveries, events, lanes, turns
from frontdesk.model.running import Running
from tests import loopback
from tests.flow.harness import House, Notebook, open_house, poll

LONG = "This sentence is long enough to be shown."
MORE = " And this one comes after it, a while later."
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Editor(Notebook):
    """A channel of a platform where messages can be changed; it remembers what people see."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**({"edits": True, "edit_pause_seconds": 0.01} | capabilities))
        self.drafts: list[deliveries.Delivery] = []
        self.draft_outcomes: list[deliveries.Outcome | Exception] = []
        self.open = asyncio.Event()
        """Whether the platform answers to drafts."""
        self.open.set()
        self.messages: dict[str, str] = {}
        self.history: list[tuple[str, str]] = []

    async def draft(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        self.drafts.append(delivery)
        await self.open.wait()
        outcome = self.draft_outcomes.pop(0) if self.draft_outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or deliveries.Sent(message_id=self._show(delivery))

    async def send(self, delivery: deliveries.Delivery) -> deliveries.Outcome:
        outcome = await super().send(delivery)
        return deliveries.Sent(message_id=self._show(delivery)) if delivery in self.sent else outcome

    def _show(self, delivery: deliveries.Delivery) -> str:
        message_id = delivery.draft or f"message {len(self.messages) + 1}"
        self.messages[message_id] = delivery.text
        self.history.append((message_id, delivery.text))
        return message_id

    async def shown(self, text: str) -> str:
        """The message that shows a text, as soon as one does."""

        async def look() -> str | None:
            return next((key for key, value in self.messages.items() if value == text), None)

        return await poll(look)

    async def tried(self, count: int) -> None:
        async def look() -> bool | None:
            return len(self.drafts) >= count or None

        await poll(look)


class Dictated:
    """An agent that says what the test tells it to."""

    abilities = Abilities()

    def __init__(self) -> None:
        self._events: asyncio.Queue[events.Event] = asyncio.Queue()

    def say(self, text: str) -> None:
        self.do(events.Text(text=text))

    def do(self, *happened: events.Event) -> None:
        for event in happened:
            self._events.put_nowait(event)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        while True:
            event = await self._events.get()
            yield event
            if isinstance(event, events.Done | events.Failed):
                return

    async def release(self, session_id: str) -> None:
        pass

    async def close(self) -> None:
        pass


class Stage:
    def __init__(self, house: House, editor: Editor, agent: Dictated) -> None:
        self.house, self.editor, self.agent = house, editor, agent

    async def finish(self, turn_id: str) -> dict[str, str]:
        """The agent is done; what people see in the end."""
        self.agent.do(events.Done())
        await self.house.finished(turn_id)
        await self.delivered(turn_id)
        return self.editor.messages

    async def delivered(self, turn_id: str) -> None:
        async def look() -> bool | None:
            said = await self.house.store.deliveries.of_turn(turn_id)
            return all(each.state is deliveries.DeliveryState.SENT for each in said) or None

        await poll(look)


@asynccontextmanager
async def stage(
    url: str, editor: Editor | None = None, agent: Dictated | None = None, **running: Any
) -> AsyncIterator[Stage]:
    editor, agent = editor or Editor(), agent or Dictated()
    bounds = Running(**({"drain_seconds": 0.1} | running))
    async with open_house(url, notebook=editor, agent=agent, running=bounds) as house:
        yield Stage(house, editor, agent)


async def test_answer_is_shown_while_it_is_written_and_ends_in_the_same_message(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.agent.say(MORE)
        assert await on.editor.shown(LONG + MORE) == message_id
        on.agent.say(" The end.")
        assert await on.finish(receipt.turn_id) == {message_id: f"{LONG}{MORE} The end."}
        (answer,) = on.editor.sent
        assert (answer.draft, answer.final, answer.kind) == (message_id, True, deliveries.DeliveryKind.REPLY)


async def test_drafts_are_no_deliveries_of_the_turn(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello", event_id="e9")
        on.agent.say(LONG)
        await on.editor.shown(LONG)
        assert await on.house.store.deliveries.of_turn(receipt.turn_id) == []
        on.agent.say(MORE)
        await on.editor.shown(LONG + MORE)
        first, second = on.editor.drafts
        assert (first.kind, first.final, first.event_id) == (deliveries.DeliveryKind.DRAFT, False, "e9")
        assert (first.draft, second.draft) == (None, "message 1")
        assert first.id == f"{receipt.turn_id}-draft-1-1"
        assert first.id != second.id
        await on.finish(receipt.turn_id)


async def test_short_text_is_shown_when_nothing_follows(store_url: str) -> None:
    async with stage(store_url) as on:
        await on.house.say("hello")
        on.agent.say("Hm.")
        assert await on.editor.shown("Hm.")


async def test_text_after_tool_calls_goes_on_in_the_same_message(store_url: str) -> None:
    async with stage(store_url, progress=False) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.agent.do(events.Calls(calls=(events.Call(id="c1", name="look"),)))
        on.agent.do(events.Result(id="c1", content="found"))
        await on.house.rows(3)
        assert on.editor.messages == {message_id: LONG}
        on.agent.say("Found it, in the second drawer.")
        assert await on.editor.shown("Found it, in the second drawer.") == message_id
        assert await on.finish(receipt.turn_id) == {message_id: "Found it, in the second drawer."}


async def test_long_draft_stops_growing_where_the_answers_first_piece_ends(store_url: str) -> None:
    async with stage(store_url, Editor(text_limit=50)) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.agent.say(MORE + MORE)
        beginning = f"{LONG} And this"
        assert await on.editor.shown(beginning) == message_id
        seen = await on.finish(receipt.turn_id)
        pieces = [each.text for each in on.editor.sent]
        assert list(seen.values()) == pieces
        assert (seen[message_id], len(pieces)) == (beginning, 3)
        assert [each.draft for each in on.editor.sent] == [message_id, None, None]


async def test_draft_that_raises_does_not_hurt_the_answer(store_url: str) -> None:
    async with stage(store_url) as on:
        on.editor.draft_outcomes = [RuntimeError("a fault in the channel")]
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        await on.editor.tried(1)
        on.agent.say(MORE)
        assert await on.finish(receipt.turn_id) == {"message 1": LONG + MORE}
        assert len(on.editor.drafts) == 1
        assert on.editor.sent[0].extra == {}


@pytest.mark.parametrize(
    "outcome",
    [
        deliveries.Unknown(why="cut off"),
        deliveries.NotSent(why="forbidden", hopeless=True),
        deliveries.Sent(message_id=None),
    ],
)
async def test_first_draft_that_may_be_lost_is_not_followed_by_another(
    store_url: str, outcome: deliveries.Outcome
) -> None:
    async with stage(store_url) as on:
        on.editor.draft_outcomes = [outcome]
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        await on.editor.tried(1)
        on.agent.say(MORE)
        assert await on.finish(receipt.turn_id) == {"message 1": LONG + MORE}
        assert len(on.editor.drafts) == 1


async def test_draft_that_was_not_sent_is_tried_again(store_url: str) -> None:
    async with stage(store_url) as on:
        on.editor.draft_outcomes = [deliveries.NotSent(why="too many", retry_after_seconds=0.02)] * 2
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        assert len(on.editor.drafts) == 3
        assert await on.finish(receipt.turn_id) == {message_id: LONG}


async def test_change_of_unknown_outcome_is_made_again(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.editor.draft_outcomes = [deliveries.Unknown(why="cut off")]
        on.agent.say(MORE)
        assert await on.editor.shown(LONG + MORE) == message_id
        assert await on.finish(receipt.turn_id) == {message_id: LONG + MORE}


async def test_platform_that_hangs_does_not_hold_up_the_answer(store_url: str) -> None:
    async with stage(store_url, send_seconds=0.2) as on:
        on.editor.open.clear()
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        await on.editor.tried(1)
        assert await on.finish(receipt.turn_id) == {"message 1": LONG}


async def test_answer_waits_for_the_draft_under_way_and_takes_its_place(store_url: str) -> None:
    async with stage(store_url) as on:
        on.editor.open.clear()
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        await on.editor.tried(1)
        on.agent.do(events.Text(text=MORE), events.Done())
        async with aclosing(on.house.gateway.desk.follow(receipt.turn_id)) as happens:
            async for event in happens:
                if isinstance(event, events.Done):
                    on.editor.open.set()
        await on.delivered(receipt.turn_id)
        assert on.editor.history == [("message 1", LONG), ("message 1", LONG + MORE)]


async def test_failure_is_told_in_the_place_of_the_draft(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.agent.do(events.Failed(message="the model is gone"))
        await on.house.finished(receipt.turn_id)
        await on.delivered(receipt.turn_id)
        assert list(on.editor.messages) == [message_id]
        assert "the model is gone" in on.editor.messages[message_id]


async def test_second_attempt_goes_on_in_the_same_message(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.agent.do(events.Failed(message="overloaded", retryable=True))
        on.agent.say("Another beginning, as long.")
        assert await on.editor.shown("Another beginning, as long.") == message_id
        assert await on.finish(receipt.turn_id) == {message_id: "Another beginning, as long."}
        assert len({each.id for each in on.editor.drafts}) == len(on.editor.drafts)


async def test_stopped_turn_ends_in_the_message_of_its_draft(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        await on.house.ask("/stop")
        await on.delivered(receipt.turn_id)
        (answer,) = await on.house.store.deliveries.of_turn(receipt.turn_id)
        assert (answer.text, answer.draft) == (LONG, message_id)


async def test_draft_is_known_after_a_restart(store_url: str) -> None:
    editor = Editor()
    async with stage(store_url, editor) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await editor.shown(LONG)
    async with stage(store_url, editor) as on:
        on.agent.say("Where was I? Here, of course.")
        assert await editor.shown("Where was I? Here, of course.") == message_id
        assert await on.finish(receipt.turn_id) == {message_id: "Where was I? Here, of course."}


async def test_answer_without_a_draft_takes_the_place_of_one_from_before_the_restart(store_url: str) -> None:
    editor = Editor()
    async with stage(store_url, editor) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await editor.shown(LONG)
    async with stage(store_url, editor) as on:
        on.agent.say("Done.")
        assert await on.finish(receipt.turn_id) == {message_id: "Done."}


async def test_next_answer_is_a_message_of_its_own(store_url: str) -> None:
    async with stage(store_url) as on:
        for number, text in enumerate((LONG, LONG + MORE), 1):
            receipt = await on.house.say("hello")
            on.agent.say(text)
            await on.editor.shown(text)
            assert len(await on.finish(receipt.turn_id)) == number


async def test_answer_of_unknown_outcome_is_sent_again_where_it_changes_a_message(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.editor.outcomes = [deliveries.Unknown(why="cut off")]
        assert await on.finish(receipt.turn_id) == {message_id: LONG}
        assert len(on.editor.sent) == 1


async def test_channel_that_cannot_edit_gets_answers_alone(store_url: str) -> None:
    async with stage(store_url, Editor(edits=False)) as on:
        receipt = await on.house.say("hello")
        on.agent.do(events.Text(text=LONG), events.Calls(calls=(events.Call(id="c1", name="look"),)))
        on.agent.do(events.Result(id="c1", content="found"))
        await on.house.rows(3)
        on.agent.say(MORE)
        await on.finish(receipt.turn_id)
        assert (on.editor.drafts, [each.extra for each in on.editor.sent]) == ([], [{}])
        turn = await on.house.store.turns.find(receipt.turn_id)
        assert turn
        assert turn.draft is None


async def test_webhook_gets_drafts_and_the_answer_that_replaces_them(store_url: str) -> None:
    agent = Dictated()
    async with loopback.receiver() as receiver:
        options = webhook.Options(
            callback_url=receiver.url, secrets=(lambda: "a secret of some length",), stream=True
        )
        channel = cast("Notebook", webhook.Channel(options))
        async with open_house(store_url, notebook=channel, agent=agent) as house:
            receipt = await house.say("hello", event_id="e9")
            agent.say(LONG)
            await posted(receiver, 1)
            agent.do(events.Text(text=MORE), events.Done())
            await posted(receiver, 2)
    draft, reply = [json.loads(each.body) for each in receiver.received]
    assert receiver.received[0].headers["webhook-id"] == f"{receipt.turn_id}-draft-1-1"
    assert (draft["kind"], draft["final"], draft["text"]) == ("draft", False, LONG)
    assert (reply["kind"], reply["final"], reply["text"]) == ("reply", True, LONG + MORE)
    assert draft["draft"] == reply["draft"] == receipt.turn_id
    assert draft["in_reply_to"] == reply["in_reply_to"] == "e9"


async def posted(receiver: loopback.Receiver, count: int) -> None:
    async def look() -> bool | None:
        return len(receiver.received) >= count or None

    await poll(look)


SOURCE = SessionSource(platform=Platform.MATRIX, chat_id="c1", user_id="u1")


async def test_draft_outlives_the_lease_that_it_was_kept_under(store_url: str) -> None:
    store = await plugins.load_store(store_url)(store_url)
    try:
        node = await store.nodes.join("test", NOW)
        turn = turns.Turn(id="t1", session_key="k1", source=SOURCE, text="hello", received_at=NOW)
        await store.turns.accept(turn, lambda *_: turns.Admission())
        (lost,) = await store.turns.claim(node, lanes.LaneKind.TURN, 1, NOW, lambda _: [])
        await store.turns.keep_draft(lost, "message 1")
        await store.turns.recover(node, lambda *_: None, NOW)
        with pytest.raises(errors.LeaseLost):
            await store.turns.keep_draft(lost, "message 2")
        (again,) = await store.turns.claim(node, lanes.LaneKind.TURN, 1, NOW, lambda _: [])
        assert (again.turn.draft, again.turn.attempts) == ("message 1", 2)
    finally:
        await store.close()


GONE = deliveries.NotSent(why="somebody deleted it", gone=True)


async def test_answer_whose_message_was_deleted_is_sent_as_one_of_its_own(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        del on.editor.messages[message_id]
        on.editor.outcomes = [GONE]
        assert await on.finish(receipt.turn_id) == {"message 1": LONG}
        (answer,) = on.editor.sent
        assert (answer.draft, answer.attempts, answer.extra) == (None, 2, {})


async def test_answer_whose_message_was_deleted_is_not_repeated_when_its_outcome_is_unknown(
    store_url: str,
) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        await on.editor.shown(LONG)
        on.editor.outcomes = [GONE, deliveries.Unknown(why="cut off")]
        on.agent.do(events.Done())
        await on.house.finished(receipt.turn_id)
        (answer,) = await on.house.troubled()
        assert (answer.state, on.editor.sent) == (deliveries.DeliveryState.UNKNOWN, [])


async def test_draft_whose_message_was_deleted_goes_on_in_another(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        first = await on.editor.shown(LONG)
        on.editor.messages[first] = "deleted"
        on.editor.draft_outcomes = [GONE]
        on.agent.say(MORE)
        second = await on.editor.shown(LONG + MORE)
        assert await on.finish(receipt.turn_id) == {first: "deleted", second: LONG + MORE}
