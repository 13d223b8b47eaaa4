"""What a chat is shown besides messages, and that nothing depends on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import SessionSource
from frontdesk.flow import signs
from frontdesk.model import deliveries, events, turns
from frontdesk.model.chats import ChatSign
from frontdesk.model.deliveries import NotSent, Outcome, Sent
from frontdesk.model.running import Running
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, open_house, poll
from tests.flow.test_drafting import LONG, Editor, stage

TYPING, SEEN, WORKING, DONE, FAILED = ChatSign
IN_TIME = {"typing_seconds": 0.02, "reactions": True}
QUIET_SECONDS = 0.2


class Signer(Notebook):
    """A platform that shows signs; it remembers them."""

    def __init__(self, **capabilities: Any) -> None:
        super().__init__(**(IN_TIME | capabilities))
        self.signs: list[tuple[str | None, ChatSign]] = []
        self.sign_outcomes: list[Outcome | Exception] = []
        self.hangs = False

    async def sign(self, to: SessionSource, sign: ChatSign) -> Outcome:
        self.signs.append((to.message_id, sign))
        if self.hangs:
            await asyncio.Event().wait()
        outcome = self.sign_outcomes.pop(0) if self.sign_outcomes else Sent()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def shown(self, *wanted: ChatSign) -> list[ChatSign]:
        return [sign for _, sign in self.signs if sign in wanted]

    async def until(self, *wanted: ChatSign) -> None:
        """Wait until these were shown, in this order."""

        async def look() -> bool | None:
            return self.shown(*wanted) == list(wanted) or None

        await poll(look)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs, "CALL_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(signs, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(signs, "LOOK_SECONDS", 0.01)


@asynccontextmanager
async def opened(url: str, signer: Signer, **running: Any) -> AsyncIterator[House]:
    bounds = Running(drain_seconds=0.1, **running)
    async with open_house(url, notebook=signer, running=bounds) as house:
        yield house


async def typed(signer: Signer, count: int) -> None:
    async def look() -> bool | None:
        return len(signer.shown(TYPING)) >= count or None

    await poll(look)


async def no_more(signer: Signer) -> int:
    """Wait until for a while no sign has come; how many there are."""

    async def look() -> int | None:
        before = len(signer.signs)
        await asyncio.sleep(QUIET_SECONDS)
        return before if len(signer.signs) == before else None

    return await poll(look)


async def test_typing_is_renewed_while_the_turn_runs_and_ends_with_it(store_url: str) -> None:
    signer = Signer()
    async with opened(store_url, signer) as house:
        receipt = await house.say("!hang")
        await typed(signer, 3)
        await house.ask("/stop")
        await house.finished(receipt.turn_id)
        await no_more(signer)


async def test_nobody_is_shown_typing_while_a_person_is_asked(store_url: str) -> None:
    signer = Signer()
    async with opened(store_url, signer) as house:
        receipt = await house.say("!sleep 0.05; !approve deploy")
        await house.until(receipt.turn_id, turns.TurnState.WAITING)
        assert await no_more(signer) > 0


@pytest.mark.parametrize(
    "outcome", [NotSent(why="no rights here", hopeless=True), RuntimeError("a fault in the channel")]
)
async def test_sign_that_makes_no_sense_is_not_tried_again_and_hurts_nothing(
    store_url: str, outcome: Outcome | Exception
) -> None:
    signer = Signer()
    signer.sign_outcomes = [outcome]
    async with opened(store_url, signer) as house:
        assert await house.ask("!sleep 0.2; !say well") == "well"
    assert len(signer.signs) == 1


async def test_platform_that_hangs_with_a_sign_holds_up_no_answer_and_no_end(store_url: str) -> None:
    signer = Signer()
    signer.hangs = True
    async with opened(store_url, signer, status_reactions=True) as house:
        receipt = await house.say("!sleep 0.05; !say well", source=house.source(message_id="m1"))
        await house.finished(receipt.turn_id)
        assert await signer.wait_for(1) == ["well"]
    assert len(signer.signs) == len({sign for _, sign in signer.signs}) == 2


async def test_no_sign_goes_where_the_platform_said_wait(store_url: str) -> None:
    signer = Signer()
    signer.sign_outcomes = [NotSent(why="slow down", retry_after_seconds=3600.0)]
    async with opened(store_url, signer) as house:
        receipt = await house.say("!sleep 0.2; !say well")
        await house.finished(receipt.turn_id)
        assert house.gateway.parts.pacing.seconds_left(house.source()) > 0
        assert len(signer.signs) == 1
    assert signer.sent == []


async def test_answer_goes_when_the_platform_has_been_waited_for(store_url: str) -> None:
    signer = Signer()
    signer.sign_outcomes = [NotSent(why="slow down", retry_after_seconds=1.0)]
    async with opened(store_url, signer) as house:
        await house.say("!sleep 0.2; !say well")
        assert await signer.wait_for(1) == ["well"]
        assert house.gateway.parts.pacing.seconds_left(house.source()) == 0


@pytest.mark.parametrize(("says", "last"), [("hello", DONE), ("!fail", FAILED), ("!silent", DONE)])
async def test_reactions_show_how_far_a_message_is(store_url: str, says: str, last: ChatSign) -> None:
    signer = Signer(typing_seconds=None)
    async with opened(store_url, signer, status_reactions=True) as house:
        await house.say(f"!sleep 0.05; {says}", source=house.source(message_id="m1"))
        await signer.until(WORKING, last)
    assert {message for message, _ in signer.signs} == {"m1"}


async def test_message_that_waits_was_seen(store_url: str) -> None:
    signer = Signer(typing_seconds=None)
    async with opened(store_url, signer, status_reactions=True) as house:
        first = await house.say("!hang", source=house.source(message_id="m1"))
        await house.until(first.turn_id, turns.TurnState.RUNNING)
        await house.say("hello", source=house.source(message_id="m2"))

        async def look() -> bool | None:
            return ("m2", SEEN) in signer.signs or None

        await poll(look)
        await house.ask("/stop")
        await signer.until(WORKING, DONE, WORKING, DONE)
    assert [sign for message, sign in signer.signs if message == "m2"] == [SEEN, WORKING, DONE]


@pytest.mark.parametrize(
    ("setting", "able", "message_id"), [(False, True, "m1"), (True, False, "m1"), (True, True, None)]
)
async def test_no_reactions_where_nobody_wants_them_or_they_cannot_be_put(
    store_url: str, setting: bool, able: bool, message_id: str | None
) -> None:
    signer = Signer(typing_seconds=None, reactions=able)
    async with opened(store_url, signer, status_reactions=setting) as house:
        await house.ask("hello", source=house.source(message_id=message_id))
        await signer.wait_for(1)
    assert signer.signs == []


async def test_of_signs_that_wait_the_latest_is_shown(store_url: str) -> None:
    signer = Signer(typing_seconds=None)
    async with opened(store_url, signer) as house:
        source = house.source(message_id="m1")
        for sign in (WORKING, DONE, SEEN):
            house.gateway.parts.signs.show(source, sign)
        await signer.until(DONE)
    assert signer.signs == [("m1", DONE)]


def calls(*names: str) -> events.Calls:
    return events.Calls(calls=tuple(events.Call(id=name, name=name) for name in names))


async def test_tools_are_named_in_one_line_that_goes_with_the_answer(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.do(calls("look"))
        message_id = await on.editor.shown("⏳ `look`")
        on.agent.do(events.Result(id="look", content="found"))
        on.agent.say(LONG)
        await on.editor.shown(LONG)
        on.agent.do(calls("read`it", "a\nb", "c" * 99, "d", "e"))
        await on.editor.shown(f"{LONG}\n\n⏳ `read'it`, `a b`, `{'c' * 37}...` and 2 more")
        assert await on.finish(receipt.turn_id) == {message_id: LONG}


async def test_line_of_tools_is_left_out_where_it_has_no_room(store_url: str) -> None:
    async with stage(store_url, Editor(text_limit=len(LONG) + 5)) as on:
        await on.house.say("hello")
        on.agent.say(LONG)
        on.agent.do(calls("look"))
        assert await on.editor.shown(LONG)
        on.agent.do(events.Result(id="look", content="found"))
        await on.house.rows(3)
        assert set(on.editor.messages.values()) == {LONG}


@pytest.mark.parametrize(("edits", "setting"), [(False, True), (True, False)])
async def test_nothing_is_said_of_tools_where_nobody_wants_it_or_nothing_can_be_changed(
    store_url: str, edits: bool, setting: bool
) -> None:
    async with stage(store_url, Editor(edits=edits), progress=setting) as on:
        receipt = await on.house.say("hello")
        on.agent.do(calls("look"), events.Result(id="look", content="found"))
        await on.house.rows(3)
        on.agent.say("Found it.")
        await on.finish(receipt.turn_id)
        assert not any("look" in text for _, text in on.editor.history)
        assert [each.text for each in on.editor.sent] == ["Found it."]


async def test_silent_turn_that_showed_its_tools_ends_with_a_word(store_url: str) -> None:
    async with stage(store_url) as on:
        receipt = await on.house.say("hello")
        on.agent.do(calls("look"))
        message_id = await on.editor.shown("⏳ `look`")
        on.agent.do(events.Result(id="look", content="nothing"), events.Done(silent=True))
        await on.house.finished(receipt.turn_id)
        await on.delivered(receipt.turn_id)
        assert on.editor.messages == {message_id: "(There is nothing to say to this.)"}
        assert on.editor.sent[0].kind is deliveries.DeliveryKind.NOTICE
