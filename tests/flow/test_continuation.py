"""Interrupted turns after a start: fresh ones go on by themselves, old ones are told, and nothing is lost."""

from datetime import timedelta

import pytest

from frontdesk import GatewayConfig, ResetMode, SessionResetPolicy
from frontdesk.model import turns
from frontdesk.model.running import Running
from frontdesk.testing import SettableClock
from tests.flow.harness import House, open_house

NEVER = SessionResetPolicy(mode=ResetMode.NONE)
CONFIG = GatewayConfig(default_reset_policy=NEVER)
CUT_OFF = Running(drain_seconds=0.05)
SLOW = "!tool look; !sleep 5; done"
"""Each time that it is asked; the other hangs the first time alone."""


async def interrupted(
    store_url: str, clock: SettableClock, *more: str, text: str = "!tool look; !hang 1; done"
) -> str:
    """A gateway is stopped in the middle of a turn, while more messages wait; that turn."""
    async with open_house(store_url, config=CONFIG, running=CUT_OFF, clock=clock) as house:
        await house.ask("hello")
        receipt = await house.say(text)
        await house.rows(5)
        for each in more:
            await house.say(each)
    return receipt.turn_id


async def ask(house: House, text: str) -> str:
    """Say something that was not said before the restart."""
    return await house.ask(text, event_id=f"later: {text}")


async def contents(house: House, session_id: str) -> list[str]:
    rows = await house.sessions.load_transcript(session_id)
    return [str(row["content"]) for row in rows if row["role"] in ("user", "assistant") and row["content"]]


async def test_turn_that_was_interrupted_an_hour_ago_does_not_go_on_by_itself(store_url: str) -> None:
    clock = SettableClock()
    turn_id = await interrupted(store_url, clock)
    clock.advance(minutes=61)
    async with open_house(store_url, config=CONFIG, clock=clock) as house:
        turn = await house.finished(turn_id)
        assert turn.state is turns.TurnState.INTERRUPTED
        (notice,) = await house.notebook.wait_for(1, "notice")
        assert "1h 1m ago" in notice
        assert notice.endswith("/retry")
        tools = [row["content"] for row in await house.transcript() if row["role"] == "tool"]
        assert len(tools) == 1


async def test_retry_answers_what_was_not_continued_in_its_conversation(store_url: str) -> None:
    clock = SettableClock()
    turn_id = await interrupted(store_url, clock, text=SLOW)
    clock.advance(hours=5)
    async with open_house(store_url, config=CONFIG, clock=clock) as house:
        turn = await house.finished(turn_id)
        assert "/retry goes on" in await ask(house, "/status")
        assert await ask(house, "/retry") == "echo: done"
        assert turn.session_id is not None
        said = await contents(house, turn.session_id)
    assert said == ["hello", "echo: hello", SLOW, "echo: done"]


async def test_next_message_after_that_starts_a_new_conversation(store_url: str) -> None:
    clock = SettableClock()
    turn_id = await interrupted(store_url, clock)
    clock.advance(hours=5)
    async with open_house(store_url, config=CONFIG, clock=clock) as house:
        turn = await house.finished(turn_id)
        assert await ask(house, "and now?") == "echo: and now?"
        entry = await house.sessions.get_session(await house.key())
        assert entry is not None
        assert entry.session_id != turn.session_id


async def test_messages_that_had_not_begun_are_answered_however_late(store_url: str) -> None:
    clock = SettableClock()
    turn_id = await interrupted(store_url, clock, "second", "third", text=SLOW)
    clock.advance(days=3)
    async with open_house(store_url, config=CONFIG, clock=clock) as house:
        turn = await house.finished(turn_id)
        assert await house.notebook.wait_for(2) == ["echo: second", "echo: third"]
        how = f"/resume {turn.session_id} and then /retry"
        assert any(notice.endswith(how) for notice in house.notebook.notices)
        await ask(house, f"/resume {turn.session_id}")
        assert await ask(house, "/retry") == "echo: done"
        assert turn.session_id is not None
        assert (await contents(house, turn.session_id))[-1] == "echo: done"


async def test_fresh_interruption_goes_on_by_itself(store_url: str) -> None:
    clock = SettableClock()
    turn_id = await interrupted(store_url, clock)
    clock.advance(minutes=59)
    async with open_house(store_url, config=CONFIG, clock=clock) as house:
        assert (await house.finished(turn_id)).state is turns.TurnState.DONE


@pytest.mark.parametrize("seconds", [0, -1])
async def test_without_a_window_everything_goes_on_by_itself(store_url: str, seconds: int) -> None:
    clock = SettableClock()
    turn_id = await interrupted(store_url, clock)
    clock.advance(days=2)
    config = GatewayConfig(default_reset_policy=NEVER, auto_continue_freshness_seconds=seconds)
    async with open_house(store_url, config=config, clock=clock) as house:
        assert (await house.finished(turn_id)).state is turns.TurnState.DONE


async def test_turn_of_a_crashed_gateway_is_as_old_as_its_last_sign_of_life(store_url: str) -> None:
    clock = SettableClock()
    async with open_house(store_url, config=CONFIG, running=CUT_OFF, clock=clock) as house:
        receipt = await house.say("!hang; done")
        await house.rows(1)
        assert house.gateway.node is not None
        await house.store.turns.recover(
            house.gateway.node, lambda _, now: now, clock.now() - timedelta(hours=2)
        )
        assert (await house.finished(receipt.turn_id)).state is turns.TurnState.INTERRUPTED
