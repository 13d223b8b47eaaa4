"""What cannot be read or written stops nobody else."""

import threading

import pytest

from frontdesk import GatewayConfig, SessionSource, errors
from frontdesk.contracts.channels import Capabilities
from frontdesk.model import turns
from frontdesk.model.access import Access
from frontdesk.model.running import Running
from tests.contracts.conftest import EditStore, edit_store
from tests.flow.harness import House, Notebook, open_house

__all__ = ["edit_store"]

DAMAGE = "UPDATE turns SET body = CAST('{damaged' AS BLOB) WHERE event_id = 'bad'"
DAMAGE_POSTGRESQL = "UPDATE turns SET body = '{damaged'::bytea WHERE event_id = 'bad'"
BEHIND = Running(drain_seconds=0.1)


async def test_damaged_turn_is_set_aside_and_the_others_run(store_url: str, edit_store: EditStore) -> None:
    async with open_house(store_url, running=BEHIND) as house:
        first = await house.say("!hang 1")
        await house.until(first.turn_id, turns.TurnState.RUNNING)
        damaged = await house.say("lost", event_id="bad")
        third = await house.say("hello")
    await edit_store(DAMAGE, postgresql=DAMAGE_POSTGRESQL)
    async with open_house(store_url) as house:
        assert (await house.finished(third.turn_id)).state is turns.TurnState.DONE
        assert await house.store.turns.find(damaged.turn_id) is None
        assert await house.ask("and on", user="bob", event_id="later") == "echo: and on"


async def test_failure_with_characters_no_database_takes_is_told(house: House) -> None:
    said = await house.ask("!fail bad \0 thing")
    assert "not answered" in said
    assert await house.ask("hello") == "echo: hello"


async def test_event_id_with_nul_is_refused(house: House) -> None:
    with pytest.raises(errors.InvalidMessage, match="NUL"):
        await house.say("hello", event_id="a\0b")


async def test_message_too_many_is_refused_and_the_rest_is_answered(store_url: str) -> None:
    running = Running(most_waiting=3, drain_seconds=0.1)
    config = GatewayConfig(access={"matrix": Access(allow=("*",))})
    notebook = Notebook(authenticates=False)
    async with open_house(store_url, config=config, running=running, notebook=notebook) as house:
        hanging = await house.say("!hang")
        await house.until(hanging.turn_id, turns.TurnState.RUNNING)
        for number in range(3):
            await house.say(f"number {number}")
        for number in range(5):
            with pytest.raises(errors.TooManyWaiting):
                await house.say(f"too many, {number}")
        assert await house.ask("/status")
        told = [each for each in await house.notebook.wait_for(2, "notice") if "take in more" in each]
        assert 1 <= len(told) <= 2  # the clock may pass from one spell to the next
        assert told[0].startswith("3 messages wait")
        await house.ask("/stop")
        assert await house.notebook.wait_for(4)


class Watched(Notebook):
    """Remembers on which threads it was asked what fits into a message."""

    def __init__(self) -> None:
        super().__init__(text_limit=4_000)
        self.threads: set[str] = set()

    def capabilities_in(self, _: SessionSource) -> Capabilities:
        self.threads.add(threading.current_thread().name)
        return self.capabilities


async def test_long_answer_is_parted_beside_the_loop(store_url: str) -> None:
    """Some texts take a minute."""
    notebook = Watched()
    async with open_house(store_url, notebook=notebook) as house:
        await house.say("# a\n" * 2_000)
        assert len(await notebook.wait_for(3)) == 3
        assert notebook.threads == {threading.current_thread().name}
        await house.say("# a\n" * 10_000, user="bob")
        await notebook.wait_for(13)
    assert len(notebook.threads) > 1
