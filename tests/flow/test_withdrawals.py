"""A turn that ends while it waits for a person: nobody is asked any longer, and nothing is carried out."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from frontdesk import GatewayConfig, HomeChannel, Platform, PlatformConfig, errors
from frontdesk.contracts.agents import Line
from frontdesk.model import audit, events, turns
from frontdesk.model.confirmations import Confirmation, Status
from tests.contracts.samples import LASTING
from tests.counts import count
from tests.flow.harness import House, open_house, poll
from tests.flow.test_approvals import CONFIG, OWNER, Silent, house, kinds, pending, reliable

__all__ = ["house"]


async def waiting(house: House, text: str = "!approve remove_file") -> tuple[str, Confirmation]:
    """A turn that waits for a person, and what for."""
    receipt = await house.say(text)
    asked = await pending(house)
    await house.until(receipt.turn_id, turns.TurnState.WAITING)
    return receipt.turn_id, asked


async def withdrawn(house: House, asked: Confirmation) -> Confirmation | None:
    found = await house.gateway.parts.confirmations.find(asked.id)
    return found if found.is_withdrawn else None


async def test_stop_withdraws_what_the_turn_asked_for(house: House) -> None:
    turn_id, asked = await waiting(house)
    assert "Stopped" in await house.ask("/stop")
    found = await house.gateway.parts.confirmations.find(asked.id)
    assert (found.status, found.resolved_by) == (Status.EXPIRED, "system:withdrawn")
    assert (await house.finished(turn_id)).state is turns.TurnState.INTERRUPTED
    assert await kinds(house) == [audit.AuditKind.SUBMITTED, audit.AuditKind.WITHDRAWN]
    assert await house.gateway.parts.confirmations.pending_count() == 0


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_decision_after_a_stop_is_told_that_it_was_withdrawn(house: House, verb: str) -> None:
    _, asked = await waiting(house)
    await house.ask("/stop")
    assert f"{asked.id} was withdrawn" in await house.ask(f"/{verb} {asked.id}", user="root")
    assert "approved: remove_file" not in house.notebook.replies
    assert (await kinds(house))[-1] is audit.AuditKind.WITHDRAWN


async def test_chat_that_was_asked_is_told_that_it_is_asked_no_longer(house: House) -> None:
    _, asked = await waiting(house)
    await house.ask("/stop")
    notices = await house.notebook.wait_for(3, "notice")
    assert f'{asked.id} ("remove_file") was withdrawn' in notices[1]


async def test_home_channel_is_told_that_it_is_asked_no_longer(store_url: str) -> None:
    home = HomeChannel(platform=Platform.MATRIX, chat_id="the-office", name="Office")
    config = GatewayConfig(
        default_reset_policy=LASTING.default_reset_policy,
        access=CONFIG.access,
        platforms={"matrix": PlatformConfig(home_channel=home)},
    )
    async with open_house(store_url, config=config, notebook=reliable()) as house:
        _, asked = await waiting(house)
        await house.ask("/stop")
        await house.notebook.wait_for(4, "notice")
        told = [each.text for each in house.notebook.sent if each.to.chat_id == "the-office"]
        assert f"/approve {asked.id}" in told[0]
        assert f'{asked.id} ("remove_file") was withdrawn' in told[1]


async def test_new_conversation_withdraws_what_the_old_one_asked_for(house: House) -> None:
    turn_id, asked = await waiting(house)
    await house.ask("/new")
    assert (await house.finished(turn_id)).state is turns.TurnState.INTERRUPTED
    assert await withdrawn(house, asked)


async def test_next_turn_may_ask_for_the_same_again(house: House) -> None:
    _, asked = await waiting(house)
    await house.ask("/stop")
    turn_id, again = await waiting(house)
    assert again.id != asked.id
    await house.gateway.parts.confirmations.approve(again.id, OWNER)
    assert (await house.finished(turn_id)).state is turns.TurnState.DONE
    assert "approved: remove_file" in await house.notebook.wait_for(2)


async def test_stop_after_a_restart_withdraws_what_was_asked_before_it(store_url: str) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as first:
        turn_id, asked = await waiting(first)
    async with open_house(store_url, config=CONFIG, notebook=reliable()) as second:
        assert (await pending(second)).id == asked.id
        await second.until(turn_id, turns.TurnState.WAITING)
        await second.ask("/stop", event_id="the stop")
        assert await withdrawn(second, asked)


class Changeable(Silent):
    """An agent that asks at first, and when it is begun again has something else in mind."""

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        if turn.attempt == 1:
            yield events.Approval(id="1", action="remove_file", description="Please")
            await line.receive()
        yield events.Text(text="never mind")


async def test_what_only_an_earlier_attempt_asked_for_is_withdrawn(store_url: str) -> None:
    async with open_house(store_url, config=CONFIG, notebook=reliable(), agent=Changeable()) as first:
        turn_id, asked = await waiting(first, "go")
    async with open_house(store_url, config=CONFIG, notebook=reliable(), agent=Changeable()) as second:
        assert (await second.finished(turn_id)).state is turns.TurnState.DONE
        assert await withdrawn(second, asked)


async def test_request_of_a_turn_that_ended_elsewhere_is_withdrawn(house: House) -> None:
    """By whoever looks: a node may have died between the two."""
    turn_id, asked = await waiting(house)
    turn = await house.store.turns.find(turn_id)
    assert turn
    ending = turns.Ending(state=turns.TurnState.INTERRUPTED)
    assert await house.store.turns.break_off(turn, ending, house.gateway.parts.clock.now())
    await poll(lambda: withdrawn(house, asked))


async def test_turn_that_was_told_to_stop_does_not_use_its_grant(house: House) -> None:
    """The approval may come before anybody here has heard of the stop."""
    for number in range(count(3, 50)):
        turn_id, asked = await waiting(house, f"!approve remove_{number}")
        now = house.gateway.parts.clock.now()
        assert await house.store.turns.request_stop(await house.key(), now)
        decision = house.gateway.parts.confirmations.approve(asked.id, OWNER)
        (decided,) = await asyncio.gather(decision, return_exceptions=True)
        # The agent may have heard of the refusal before the stop.
        assert (await house.finished(turn_id)).state in (turns.TurnState.INTERRUPTED, turns.TurnState.DONE)
        found = await house.gateway.parts.confirmations.find(asked.id)
        assert found.redeemed_at is None
        assert isinstance(decided, errors.Withdrawn) == found.is_withdrawn
    assert not any(reply.startswith("approved: ") for reply in house.notebook.replies)


async def test_of_an_approval_and_a_stop_at_once_one_wins(house: House) -> None:
    for number in range(count(3, 50)):
        turn_id, asked = await waiting(house, f"!approve remove_{number}")
        decision = house.gateway.parts.confirmations.approve(asked.id, OWNER)
        decided, _ = await asyncio.gather(decision, house.ask("/stop"), return_exceptions=True)
        ended = await house.finished(turn_id)
        found = await house.gateway.parts.confirmations.find(asked.id)
        if found.is_withdrawn:
            assert isinstance(decided, errors.Withdrawn)
            assert ended.state is turns.TurnState.INTERRUPTED
        else:
            assert isinstance(decided, Confirmation)
            assert found.status is Status.APPROVED
        if found.redeemed_at is None:  # the agent may have heard of the refusal before the stop
            assert ended.state in (turns.TurnState.INTERRUPTED, turns.TurnState.DONE)
            assert f"approved: remove_{number}" not in house.notebook.replies
    told = await kinds(house)
    ends = (audit.AuditKind.APPROVED, audit.AuditKind.WITHDRAWN)
    assert sum(told.count(kind) for kind in ends) == told.count(audit.AuditKind.SUBMITTED)
