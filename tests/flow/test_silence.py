"""Turns that end without a word because there is nothing to say."""

from frontdesk.model import deliveries, events, turns
from frontdesk.model.feed import FeedKind, FeedPosition
from tests.flow.harness import Notebook, open_house
from tests.flow.test_drafting import LONG, Editor, stage


async def test_silent_turn_sends_nothing_and_keeps_what_was_said(store_url: str) -> None:
    notebook = Notebook()
    async with open_house(store_url, notebook=notebook) as house:
        receipt = await house.say("!say Not for me.; !silent")
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.SILENT
        assert await house.store.deliveries.of_turn(receipt.turn_id) == []
        assert [row["content"] for row in await house.rows(2)][1] == "Not for me."
        told = await house.store.feed.since(FeedPosition(), 100)
        states = [each.state for each in (*told.entries, *told.unsettled) if each.kind is FeedKind.TURN]
        assert states[-1] == "silent"
        assert "To the last message there was nothing to say." in await house.ask("/status")
        assert await house.ask("hello") == "echo: hello"
        assert "nothing to say" not in await house.ask("/status")
    assert [each.turn_id for each in notebook.sent if each.turn_id == receipt.turn_id] == []


async def test_agent_that_says_nothing_without_saying_so_is_not_silent(store_url: str) -> None:
    async with stage(store_url, Editor(edits=False)) as on:
        receipt = await on.house.say("hello")
        await on.finish(receipt.turn_id)
        assert on.editor.notices == ["The agent gave no answer."]


async def test_failed_turn_is_never_silent(store_url: str) -> None:
    async with open_house(store_url, notebook=(notebook := Notebook())) as house:
        receipt = await house.say("!silent; !fail")
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.FAILED
        assert "went wrong" in (await notebook.wait_for(1, "notice"))[0]


async def test_stopped_turn_is_not_silent(store_url: str) -> None:
    async with open_house(store_url) as house:
        receipt = await house.say("!silent; !hang")
        await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        await house.ask("/stop")
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.INTERRUPTED


async def test_message_that_showed_something_says_that_there_is_nothing_to_say(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.say(LONG)
        message_id = await on.editor.shown(LONG)
        on.agent.do(events.Done(silent=True))
        await on.house.finished(receipt.turn_id)
        await on.delivered(receipt.turn_id)
        assert on.editor.messages == {message_id: "(There is nothing to say to this.)"}
        (said,) = on.editor.sent
        assert said.kind is deliveries.DeliveryKind.NOTICE
