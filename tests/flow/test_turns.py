"""Turns through a whole gateway: answered once, in order, whatever the agent does."""

import asyncio
import gc
import math
import sys
import weakref
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from frontdesk import GatewayConfig, ResetMode, SessionResetPolicy, errors
from frontdesk.agents import command, scripted
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.flow.crew import Place
from frontdesk.flow.runner import RunningTurn
from frontdesk.model import deliveries, events, turns
from frontdesk.model.running import Running
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, Resting, open_house, poll


async def test_message_is_answered(house: House) -> None:
    assert await house.ask("hello") == "echo: hello"
    assert await house.notebook.wait_for(1) == ["echo: hello"]
    assert [row["content"] for row in await house.transcript()] == ["hello", "echo: hello"]


async def test_turn_that_is_over_is_freed_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[weakref.ref[RunningTurn]] = []
    run = RunningTurn.run

    async def noted(turn: RunningTurn, place: Place) -> None:
        begun.append(weakref.ref(turn))
        await run(turn, place)

    async def left() -> bool | None:
        return True if begun and not any(each() for each in begun) else None

    monkeypatch.setattr(RunningTurn, "run", noted)
    gc.disable()  # what refers to itself would wait for the collector, with all that was said
    try:
        await house.ask("hello")
        assert await poll(left)
    finally:
        gc.enable()


async def test_repeated_event_is_answered_once(house: House) -> None:
    first = await house.say("hello", event_id="same")
    again = await house.say("hello", event_id="same")
    assert (again.turn_id, again.repeated) == (first.turn_id, True)
    await house.finished(first.turn_id)
    await house.ask("next")
    assert await house.notebook.wait_for(2) == ["echo: hello", "echo: next"]


async def test_what_a_turn_came_to_is_kept(house: House) -> None:
    await house.ask("!tool look; !toolerror look; !tokens 30 12 0.5; done")
    (day,) = await house.gateway.parts.store.usage.days(date(2000, 1, 1), date(2100, 1, 1))
    assert (day.turns, day.messages, day.tools, day.failures) == (1, 6, 2, 1)
    assert (day.input_tokens, day.output_tokens, day.cost_usd) == (30, 12, 0.5)


async def test_messages_of_a_conversation_are_answered_in_order(house: House) -> None:
    receipts = [await house.say(f"!sleep 0.01; number {number}") for number in range(10)]
    for receipt in receipts:
        await house.finished(receipt.turn_id)
    replies = await house.notebook.wait_for(10)
    assert [reply.split()[-1] for reply in replies] == [str(number) for number in range(10)]


async def test_hanging_turn_of_one_person_does_not_hold_up_another(house: House) -> None:
    await house.say("!hang", user="ann")
    assert await house.ask("hello", user="bob") == "echo: hello"


async def test_sender_is_told_that_a_message_waits(house: House) -> None:
    await house.say("!hang")
    receipt = await house.say("next")
    assert receipt.waiting == 1
    assert "queued" in (await house.notebook.wait_for(1, "notice"))[0]


async def test_failed_turn_is_told_and_next_one_runs(house: House) -> None:
    said = await house.ask("!fail")
    assert "not answered" in said
    assert await house.ask("hello") == "echo: hello"


async def test_retryable_failure_is_tried_again(house: House) -> None:
    receipt = await house.say("!fail retryable 1")
    turn = await house.finished(receipt.turn_id)
    assert (turn.state, turn.attempts) == (turns.TurnState.DONE, 2)


async def test_agent_that_raises_ends_in_a_notice(house: House) -> None:
    assert "not answered" in await house.ask("!raise")
    assert await house.ask("hello") == "echo: hello"


async def test_tool_calls_are_written_with_their_results(house: House) -> None:
    await house.ask('!tool look {"path": "a"}; done')
    roles = [row["role"] for row in await house.transcript()]
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_tool_call_without_result_is_closed(house: House) -> None:
    await house.ask("!call look")
    tool = next(row for row in await house.transcript() if row["role"] == "tool")
    assert "interrupted" in tool["content"]


async def test_usage_is_added_to_the_session(house: House) -> None:
    await house.ask("!tokens 10 5 0.25; ok")
    entry = await house.sessions.get_session(await house.key())
    assert entry is not None
    assert (entry.input_tokens, entry.output_tokens, entry.estimated_cost_usd) == (10, 5, 0.25)


async def test_stopped_turn_keeps_its_text_and_frees_the_lane(house: House) -> None:
    receipt = await house.say("!say half; !hang")
    await house.until(receipt.turn_id, turns.TurnState.RUNNING)
    await house.rows(1)
    await house.store.turns.request_stop(await house.key(), house.gateway.parts.clock.now())
    turn = await house.finished(receipt.turn_id)
    assert turn.state is turns.TurnState.INTERRUPTED
    assert [row["content"] for row in await house.transcript()][-1] == "half"
    assert await house.ask("hello") == "echo: hello"


class Streaming(scripted.Driver):
    """Tells what it used once a call to its model is over, as endpoints do."""

    abilities = Abilities(counts=True)


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ("!say half of it; !hang", (100, 4)),
        ("!tool look; !hang", (100, 0)),
        ("!tokens 7 3; !call look; !hang", (7, 3)),
        ("!say one; !tokens 7 3; !tool look; !say two; !hang", (107, 4)),
    ],
)
async def test_what_a_stopped_call_to_the_model_used_is_counted(
    store_url: str, said: str, tokens: tuple[int, int]
) -> None:
    async with open_house(store_url, agent=Streaming(scripted.Options())) as house:
        await house.ask("hello")
        key = await house.key()
        await house.sessions.update_session(key, last_prompt_tokens=100)
        receipt = await house.say(said)
        await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        await house.rows(3)
        async for happened in house.gateway.desk.follow(receipt.turn_id):
            if isinstance(happened, events.Text | events.Result | events.Calls):
                break
        await house.ask("/stop")
        entry = await house.sessions.get_session(key)
        assert entry is not None
        assert (entry.input_tokens, entry.output_tokens) == tokens


async def test_turn_that_is_stopped_before_it_said_anything_gets_its_last_word(house: House) -> None:
    receipt = await house.say("!hang")
    await house.until(receipt.turn_id, turns.TurnState.RUNNING)
    await house.ask("/stop")
    (said,) = await house.store.deliveries.of_turn(receipt.turn_id)
    assert (said.final, said.event_id) == (True, "e1")
    assert said.text == "Stopped before there was an answer."


async def test_turn_that_is_stopped_between_two_attempts_gets_its_last_word(house: House) -> None:
    receipt = await house.say("!call look; !fail retryable")
    await house.rows(2)
    await house.until(receipt.turn_id, turns.TurnState.QUEUED)
    await house.ask("/stop")
    said = await house.store.deliveries.of_turn(receipt.turn_id)
    assert [each.final for each in said] == [True]
    assert (await stored(house))[-1]["role"] == "tool"


async def test_turn_that_is_broken_off_gets_its_last_word_and_its_calls_are_closed(house: House) -> None:
    receipt = await house.say("!call look; !hang")
    await house.rows(2)
    running = await house.until(receipt.turn_id, turns.TurnState.RUNNING)
    parts = house.gateway.parts
    ending = turns.Ending(state=turns.TurnState.INTERRUPTED, deliveries=parts.last_word(running, "over"))
    assert await house.store.turns.break_off(running, ending, parts.clock.now())
    assert [each.text for each in await house.store.deliveries.of_turn(receipt.turn_id)] == ["over"]
    assert (await stored(house))[-1]["role"] == "tool"


async def stored(house: House) -> list[dict[str, Any]]:
    session_id = await house.sessions.peek_session_id(await house.key())
    return await house.sessions.load_transcript(session_id or "", as_stored=True)


@pytest.mark.parametrize("ending", ["!hang", "!fail", "!tokens 1 1"])
async def test_tool_call_is_closed_with_its_turn_in_what_is_stored(house: House, ending: str) -> None:
    receipt = await house.say(f"!say looking; !call look; {ending}")
    await house.rows(2)
    await house.say("/stop")
    await house.finished(receipt.turn_id)
    assert [row["role"] for row in await stored(house)] == ["user", "assistant", "tool"]
    entry = await house.sessions.get_session(await house.key())
    assert entry is not None
    assert entry.message_count == 3


async def test_turn_that_takes_too_long_fails(store_url: str) -> None:
    async with open_house(store_url, running=Running(turn_seconds=0.2, drain_seconds=1.0)) as house:
        assert "0.2 seconds" in await house.ask("!hang")


def steerable() -> scripted.Driver:
    return scripted.Driver(scripted.Options(steers=True))


async def test_message_is_steered_into_running_turn(store_url: str) -> None:
    running = Running(busy_mode=turns.Busy.STEER, drain_seconds=1.0)
    async with open_house(store_url, running=running, agent=steerable()) as house:
        first = await house.say("!steer")
        await house.until(first.turn_id, turns.TurnState.RUNNING)
        second = await house.say("to the left")
        await house.finished(first.turn_id)
        turn = await house.finished(second.turn_id)
        assert turn.state is turns.TurnState.DONE
        assert "steered: to the left" in (await house.notebook.wait_for(1))[0]
        assert [row["role"] for row in await house.transcript()].count("user") == 2


DEAF = """\
import json, sys, time
turn = json.loads(sys.stdin.readline())
if turn["input"]["content"] == "first":
    steer = json.loads(sys.stdin.readline())
    {heed}
print(json.dumps({{"type": "text", "text": "answer to " + turn["input"]["content"]}}))
print(json.dumps({{"type": "done"}}), flush=True)
"""
HEED = 'print(json.dumps({"type": "steered", "id": steer["id"]}))'


@pytest.mark.parametrize(("heed", "replies"), [("pass", 2), (HEED, 1)])
async def test_message_that_the_agent_does_not_heed_is_answered_in_its_own_turn(
    store_url: str, tmp_path: Path, heed: str, replies: int
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(DEAF.format(heed=heed), encoding="utf-8")
    agent = command.Driver(command.Options(command=(sys.executable, str(program)), steers=True))
    running = Running(busy_mode=turns.Busy.STEER, drain_seconds=1.0)
    async with open_house(store_url, running=running, agent=agent) as house:
        first = await house.say("first")
        await house.until(first.turn_id, turns.TurnState.RUNNING)
        second = await house.say("second")
        for receipt in (first, second):
            assert (await house.finished(receipt.turn_id)).state is turns.TurnState.DONE
        wanted = ["answer to first", "answer to second"][:replies]
        assert await house.notebook.wait_for(replies) == wanted
        said = [row["content"] for row in await house.transcript() if row["role"] == "user"]
        assert said == ["first", "second"]


async def test_what_an_agent_wrote_by_accident_is_kept_but_not_told(store_url: str, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text("import sys; sys.exit('key sk-123\\0')", encoding="utf-8")
    agent = command.Driver(command.Options(command=(sys.executable, str(program))))
    async with open_house(store_url, agent=agent) as house:
        receipt = await house.say("hello")
        turn = await house.finished(receipt.turn_id)
        (notice,) = await house.notebook.wait_for(1, "notice")
    assert "the agent ended before it was done" in notice
    assert "sk-123" not in notice
    assert "sk-123" in str(turn.error)
    assert "\0" not in str(turn.error)


async def test_agent_that_never_waits_lets_others_run(store_url: str) -> None:
    class Chatterbox(scripted.Driver):
        """Talks until somebody else had the loop."""

        def __init__(self) -> None:
            super().__init__(scripted.Options())
            self.heard = False

        async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
            asyncio.get_running_loop().call_soon(self._hear)
            for _ in range(10_000):
                if self.heard:
                    break
                yield events.Text(text="x")

        def _hear(self) -> None:
            self.heard = True

    agent = Chatterbox()
    async with open_house(store_url, agent=agent) as house:
        said = await house.ask("hello")
    assert agent.heard
    assert len(said) < 1_000


async def test_message_interrupts_running_turn(store_url: str) -> None:
    running = Running(busy_mode=turns.Busy.INTERRUPT, drain_seconds=1.0)
    async with open_house(store_url, running=running) as house:
        first = await house.say("!hang")
        await house.until(first.turn_id, turns.TurnState.RUNNING)
        assert await house.ask("hello") == "echo: hello"
        assert (await house.finished(first.turn_id)).state is turns.TurnState.INTERRUPTED


async def test_stranger_is_refused_and_nothing_is_stored(store_url: str) -> None:
    async with open_house(store_url, notebook=Notebook("telegram", authenticates=False)) as house:
        with pytest.raises(errors.NotAllowed):
            await house.say("hello")
        assert await house.store.turns.counts() == {}


@pytest.mark.parametrize("text", ["", "   ", "x" * 1_000_001, "\ud800"])
async def test_unusable_message_is_refused(house: House, text: str) -> None:
    with pytest.raises(errors.InvalidMessage):
        await house.say(text)
    assert await house.store.turns.counts() == {}


async def test_send_that_fails_is_tried_again_in_order(house: House) -> None:
    house.notebook.outcomes = [deliveries.NotSent(why="500", retry_after_seconds=0)]
    await house.ask("one")
    await house.ask("two")
    assert await house.notebook.wait_for(2) == ["echo: one", "echo: two"]


async def test_unknown_send_is_marked_and_not_repeated(house: House) -> None:
    house.notebook.outcomes = [deliveries.Unknown(why="timeout")]
    await house.ask("one")
    await house.ask("two")
    assert await house.notebook.wait_for(1) == ["echo: two"]
    (marked,) = await house.store.deliveries.troubled(10)
    assert (marked.text, marked.state) == ("echo: one", deliveries.DeliveryState.UNKNOWN)


async def test_unknown_send_is_repeated_where_the_platform_can_tell(store_url: str) -> None:
    async with open_house(store_url, notebook=Notebook(idempotent_seconds=math.inf)) as house:
        house.notebook.outcomes = [deliveries.Unknown(why="timeout")]
        await house.ask("one")
        assert await house.notebook.wait_for(1) == ["echo: one"]


async def test_hopeless_send_is_a_dead_letter_that_can_be_sent_again(house: House) -> None:
    house.notebook.outcomes = [deliveries.NotSent(why="410", hopeless=True)]
    await house.ask("one")
    dead = await house.troubled()
    assert await house.store.deliveries.revive(dead[0].id, house.gateway.parts.clock.now())
    assert await house.notebook.wait_for(1) == ["echo: one"]


async def test_long_answer_is_split_at_the_platforms_limit(store_url: str) -> None:
    async with open_house(store_url, notebook=Notebook(text_limit=20)) as house:
        await house.ask("word " * 10)
        pieces = await house.notebook.wait_for(3)
        assert all(len(piece) <= 20 for piece in pieces)
        assert " ".join(pieces) == ("echo: " + "word " * 10).strip()


async def test_shared_conversation_names_the_sender(house: House) -> None:
    source = house.source("ann", chat="room", chat_type="group", thread_id="7")
    await house.ask("hello", source=source)
    assert (await house.transcript("ann", chat="room", chat_type="group", thread_id="7"))[0]["content"] == (
        "[Ann] hello"
    )


async def test_overheard_message_is_kept_and_not_answered(house: House) -> None:
    receipt = await house.say("psst", observed=True)
    assert (await house.finished(receipt.turn_id)).state is turns.TurnState.DONE
    (row,) = await house.transcript()
    assert row["observed"] is True
    assert house.notebook.sent == []


async def test_turn_goes_on_after_restart(store_url: str) -> None:
    async with open_house(store_url, running=Running(drain_seconds=0.1)) as house:
        receipt = await house.say("!tool look; !hang 1; done")
        await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        await house.rows(3)
    async with open_house(store_url) as house:
        turn = await house.finished(receipt.turn_id)
        assert turn.state is turns.TurnState.DONE
        roles = [row["role"] for row in await house.transcript()]
        assert roles.count("user") == 1
        assert len(await house.notebook.wait_for(1)) == 1


async def test_session_is_rotated_at_its_limit(store_url: str) -> None:
    config = GatewayConfig(default_reset_policy=SessionResetPolicy(mode=ResetMode.NONE, max_messages=4))
    async with open_house(store_url, config=config) as house:
        await house.ask("first thing")
        before = await house.sessions.get_session(await house.key())
        await house.ask("second thing")
        notice = (await house.notebook.wait_for(1, "notice"))[0]
        assert "reached 4 message limit" in notice
        after = await house.sessions.get_session(await house.key())
        assert before
        assert after
        assert before.session_id != after.session_id
        system = await house.ask("!show system")
        assert "reached" in system
        rows = await house.transcript()
        assert "Hand-over" in rows[0]["content"]
        assert "first thing" in rows[0]["content"]


async def test_what_turns_say_while_the_gateway_stops_is_sent_before_it_ends(store_url: str) -> None:
    notebook = Notebook()
    people = [f"p{number}" for number in range(8)]
    agent, bounds = Resting(), Running(drain_seconds=PATIENCE_SECONDS)
    async with open_house(store_url, running=bounds, notebook=notebook, agent=agent) as house:
        for name in people:
            receipt = await house.say("!rest; done", user=name)
            await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        asyncio.get_running_loop().call_later(0.2, agent.may_go_on.set)
    assert notebook.replies == ["echo: done"] * len(people)


async def test_order_to_stop_is_noted_before_turns_are_drained(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node is gone before its turn has ended: the attempt does not count."""
    async with open_house(store_url, running=Running(drain_seconds=PATIENCE_SECONDS)) as house:
        noted, nodes = asyncio.Event(), house.store.nodes
        announce_stop = nodes.announce_stop

        async def announced(*told: Any) -> None:
            await announce_stop(*told)
            noted.set()

        monkeypatch.setattr(nodes, "announce_stop", announced)
        receipt = await house.say("!hang")
        await house.until(receipt.turn_id, turns.TurnState.RUNNING)
        closing = asyncio.create_task(house.gateway.close())
        async with asyncio.timeout(PATIENCE_SECONDS):
            await noted.wait()
        assert house.gateway.node is not None
        (turn,) = await house.store.turns.recover(house.gateway.node, lambda _, now: now, datetime.now(UTC))
        assert (turn.id, turn.attempts) == (receipt.turn_id, 1)
        found = await house.store.turns.find(receipt.turn_id)
        assert found is not None
        assert found.tries == 0
        house.gateway.hurry()
        await closing
