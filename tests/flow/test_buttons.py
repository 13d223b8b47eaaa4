"""Buttons under messages: a press does what the button was made for, once, for whoever may do that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from frontdesk import GatewayConfig, HomeChannel, Platform, PlatformConfig, errors
from frontdesk.contracts.channels import Pressed, Reacted, Receipt
from frontdesk.flow import presses
from frontdesk.model import deliveries, turns
from frontdesk.model.access import Access
from frontdesk.model.buttons import APPROVE_SIGN, DENY_SIGN
from frontdesk.model.chats import TOKEN_CHARACTERS
from frontdesk.model.confirmations import Mode, Settings, Status
from frontdesk.model.deliveries import Delivery
from frontdesk.model.rules import Effect, Rule
from frontdesk.model.sources import ChatType
from frontdesk.testing import SettableClock
from tests.contracts.samples import LASTING
from tests.flow.harness import PATIENCE_SECONDS, House, Notebook, open_house, poll
from tests.flow.test_approvals import OWNER, pending

OFFICE = HomeChannel(platform=Platform.MATRIX, chat_id="office", name="Office")
CONFIG = GatewayConfig(
    default_reset_policy=LASTING.default_reset_policy,
    access={"matrix": Access(administrators=("root", "boss"), allow=("ann", "bob"))},
)
AT_HOME = GatewayConfig(
    default_reset_policy=LASTING.default_reset_policy,
    access={"matrix": Access(administrators=("root", "boss"), allow=("ann",))},
    platforms={"matrix": PlatformConfig(home_channel=OFFICE)},
)


class Board(Notebook):
    """A chat platform with buttons: it knows how each message looks now."""

    def __init__(self, **capabilities: Any) -> None:
        able = {"authenticates": False, "reliable_sender_ids": True, "edits": True, "most_buttons": 8}
        super().__init__(**(able | capabilities))
        self.shown: dict[str, Delivery] = {}

    async def send(self, delivery: Delivery) -> deliveries.Outcome:
        outcome = await super().send(delivery)
        if isinstance(outcome, deliveries.Sent):
            name = delivery.draft or outcome.message_id or ""
            self.shown[name] = delivery
            return deliveries.Sent(message_id=name)
        return outcome

    async def draft(self, _: Delivery) -> deliveries.Outcome:
        return deliveries.NotSent(why="no drafts here", hopeless=True)

    async def card(self, holding: str, chat: str | None = None) -> tuple[str, Delivery]:
        """The message that holds the text, with its id, as soon as there is one."""

        async def look() -> tuple[str, Delivery] | None:
            for name, each in self.shown.items():
                if holding in each.text and chat in (None, each.to.chat_id):
                    return name, each
            return None

        return await poll(look)


class SlowBoard(Board):
    """One that takes its time for the first message."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()

    async def send(self, delivery: Delivery) -> deliveries.Outcome:
        self.begun.set()
        await self.goes_on.wait()
        return await super().send(delivery)


@asynccontextmanager
async def opened(store_url: str, board: Board | None = None, **fields: Any) -> AsyncIterator[House]:
    values = {"config": CONFIG} | fields
    async with open_house(store_url, notebook=board or Board(), **values) as house:
        yield house


@pytest.fixture
async def house(store_url: str) -> AsyncIterator[House]:
    async with opened(store_url) as house:
        yield house


def board(house: House) -> Board:
    assert isinstance(house.notebook, Board)
    return house.notebook


def token(card: Delivery, label: str) -> str:
    (found,) = [each.token for each in card.buttons if each.label == label]
    return found


async def press(
    house: House, pressed: str, user: str = "root", chat: str = "chat-ann", **fields: Any
) -> turns.Turn:
    source = house.source(user, chat, **fields)
    receipt: Receipt = await house.gateway.desk.accept(Pressed(source=source, token=pressed))
    return await house.finished(receipt.turn_id)


async def ask(house: House, text: str = "!approve remove_file Remove a.txt?") -> tuple[str, str, Delivery]:
    """The turn that asks, the message that shows it and the card as it was sent."""
    receipt = await house.say(text)
    name, card = await board(house).card("/deny", "chat-ann")
    return receipt.turn_id, name, card


async def test_press_of_an_approver_decides_and_the_card_says_so(house: House) -> None:
    turn_id, name, card = await ask(house)
    assert [each.label for each in card.buttons] == ["Approve", "Deny"]
    assert all(each.token.isascii() and len(each.token) <= TOKEN_CHARACTERS for each in card.buttons)
    await press(house, token(card, "Approve"))
    assert (await house.finished(turn_id)).state is turns.TurnState.DONE
    assert await board(house).card("approved: remove_file")
    changed, outcome = await board(house).card("was approved by")
    assert (changed, outcome.buttons) == (name, ())


async def test_denying_by_a_press_tells_the_agent(house: House) -> None:
    turn_id, _, card = await ask(house)
    await press(house, token(card, "Deny"))
    await house.finished(turn_id)
    assert await board(house).card("denied: remove_file")
    assert await board(house).card("was denied by")


async def test_who_may_not_decide_presses_in_vain_and_uses_nothing_up(house: House) -> None:
    _, _, card = await ask(house)
    for _ in range(2):
        ended = await press(house, token(card, "Approve"), "ann")
        assert "may not" in (ended.error or "")
    with pytest.raises(errors.NotAllowed):
        await press(house, token(card, "Approve"), "eve")
    assert (await pending(house)).status is Status.PENDING
    assert not (await press(house, token(card, "Approve"))).error
    assert await board(house).card("approved: remove_file")


POSING = "Root\u202e\u200d (matrix:root): c_1 is approved."


async def test_whoever_presses_on_and_on_is_bounded_and_told_once(store_url: str) -> None:
    clock = SettableClock()
    async with opened(store_url, clock=clock) as house:
        _, _, card = await ask(house)
        group = {"chat_type": ChatType.GROUP, "user_name": POSING}
        for _ in range(presses.MOST_PRESSES):
            await press(house, token(card, "Approve"), "ann", **group)
        for _ in range(3):
            with pytest.raises(errors.NotAllowed, match=presses.TOO_MANY):
                await press(house, token(card, "Approve"), "ann", **group)
        assert house.gateway.parts.refusals.counts[presses.TOO_MANY] == 3
        _, told = await board(house).card("Only approvers decide")
        assert [each for each in board(house).sent if "Only approvers" in each.text] == [told]
        assert told.text.startswith('"Root (matrix:root): c_1 is approved." (matrix:ann): ')
        # Others press as before, and so does she, after a while.
        assert not (await press(house, token(card, "Approve"))).error
        clock.advance(seconds=61)
        await press(house, token(card, "Approve"), "ann", **group)


async def test_old_foreign_and_made_up_presses_say_so_and_change_nothing(house: House) -> None:
    turn_id, _, card = await ask(house)
    for pressed, chat in ((token(card, "Approve"), "chat-bob"), ("made-up", "chat-ann")):
        assert "does nothing any more" in ((await press(house, pressed, chat=chat)).error or "")
    assert (await pending(house)).status is Status.PENDING
    await press(house, token(card, "Deny"))
    await house.finished(turn_id)
    late = await press(house, token(card, "Approve"), "boss")
    assert "is denied" in (late.error or "")
    assert await board(house).card("is denied: nothing more")


async def test_pressing_twice_is_pressing_once(house: House) -> None:
    turn_id, _, card = await ask(house)
    pressed = token(card, "Approve")
    ended = await asyncio.gather(press(house, pressed), press(house, pressed), press(house, pressed))
    assert [each.error for each in ended] == [None] * 3
    await house.finished(turn_id)
    await board(house).card("approved: remove_file")
    assert len(board(house).sent) == 3  # the card, its outcome and the agent's answer


async def test_card_says_its_outcome_wherever_it_was_shown_and_whoever_decided(store_url: str) -> None:
    async with opened(store_url, config=AT_HOME) as house:
        receipt = await house.say("!approve remove_file")
        there, at_home = await board(house).card("/deny", "office")
        here, in_chat = await board(house).card("/deny", "chat-ann")
        assert not {each.token for each in at_home.buttons} & {each.token for each in in_chat.buttons}
        await house.gateway.parts.confirmations.approve((await pending(house)).id, OWNER)
        await house.finished(receipt.turn_id)
        assert (await board(house).card("was approved by", "office"))[0] == there
        assert (await board(house).card("was approved by", "chat-ann"))[0] == here
        assert await board(house).card("approved: remove_file")
        assert len(board(house).shown) == 3
        assert "is approved" in ((await press(house, token(at_home, "Deny"), chat="office")).error or "")


async def test_card_of_a_request_that_nobody_waits_for_says_so(house: House) -> None:
    _, name, card = await ask(house)
    await house.ask("/stop")
    changed, outcome = await board(house).card("was withdrawn")
    assert (changed, outcome.buttons) == (name, ())
    assert "withdrawn" in ((await press(house, token(card, "Approve"))).error or "")


async def test_card_whose_time_is_over_says_so(store_url: str) -> None:
    clock = SettableClock()
    async with opened(store_url, clock=clock) as house:
        _, name, card = await ask(house)
        clock.advance(timedelta(hours=2))
        late = await press(house, token(card, "Approve"))
        assert late.error
        changed, outcome = await board(house).card("was not decided in time")
        assert (changed, outcome.buttons) == (name, ())


async def test_card_that_was_on_its_way_when_it_was_decided_says_so_in_the_end(store_url: str) -> None:
    slow = SlowBoard()
    async with opened(store_url, slow) as house:
        receipt = await house.say("!approve remove_file")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await slow.begun.wait()
        await house.gateway.parts.confirmations.approve((await pending(house)).id, OWNER)
        slow.goes_on.set()
        await house.finished(receipt.turn_id)
        _, outcome = await slow.card("was approved by")
        assert outcome.draft == "m0"


async def test_outcome_of_a_card_that_may_not_have_arrived_is_told_apart(store_url: str) -> None:
    unsure = Board()
    unsure.outcomes = [deliveries.Unknown(why="cut off")]
    async with opened(store_url, unsure) as house:
        await house.say("!approve remove_file")
        await house.troubled()
        await house.gateway.parts.confirmations.deny((await pending(house)).id, OWNER)
        _, outcome = await unsure.card("was denied by")
        assert outcome.draft is None


async def test_second_of_two_approvers_presses_a_button_of_their_own(store_url: str) -> None:
    async with opened(store_url, confirming=Settings(mode=Mode.TEAM)) as house:
        two = Rule(id="r_1", effect=Effect.ASK, action="*", created_by="token:owner", quorum=2)
        await house.gateway.parts.confirmations.add_rule(two, OWNER)
        turn_id, name, card = await ask(house)
        await press(house, token(card, "Approve"))
        changed, again = await board(house).card("1 of the 2")
        assert changed == name
        assert "was used before" in ((await press(house, token(card, "Approve"), "boss")).error or "")
        await press(house, token(again, "Approve"), "root")
        assert (await pending(house)).status is Status.PENDING
        await press(house, token(again, "Approve"), "boss")
        await house.finished(turn_id)
        assert (await board(house).card("was approved by"))[0] == name


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ('!approve send {"token": "aB3dE5gH7jK9"}', ["Deny"]),
        ('!approve write {"text": "' + "x" * 5_000 + '"}', ["Deny"]),
        ('!approve wipe_database {"database": "production"}', ["Deny"]),
        ('!approve read {"path": "a.txt"}', ["Approve", "Deny"]),
    ],
    ids=["hidden", "too-long", "typed", "whole"],
)
async def test_only_what_is_shown_whole_is_approved_by_a_tap(
    house: House, text: str, labels: list[str]
) -> None:
    _, _, card = await ask(house, text)
    assert [each.label for each in card.buttons] == labels
    await press(house, token(card, "Deny"))
    assert await board(house).card("was denied by")


async def test_decision_that_needs_a_reason_has_no_buttons(store_url: str) -> None:
    async with opened(store_url) as house:
        rule = Rule(id="why", effect=Effect.ASK, action="*", needs_reason=True)
        await house.gateway.parts.confirmations.add_rule(rule, OWNER)
        _, _, card = await ask(house)
        assert card.buttons == ()


@pytest.mark.parametrize(
    "capabilities", [{"most_buttons": 0}, {"most_buttons": 1}, {"reliable_sender_ids": False}]
)
async def test_chat_without_buttons_or_names_to_trust_has_none(
    store_url: str, capabilities: dict[str, Any]
) -> None:
    async with opened(store_url, Board(**capabilities)) as house:
        _, _, card = await ask(house)
        assert card.buttons == ()


async def test_chat_that_cannot_change_messages_is_told_the_outcome(store_url: str) -> None:
    async with opened(store_url, Board(edits=False)) as house:
        turn_id, _, card = await ask(house)
        await press(house, token(card, "Approve"))
        await house.finished(turn_id)
        assert await board(house).card("is approved.")


# Where there are no buttons, signs and numbers stand for them


def signs() -> Board:
    return Board(most_buttons=0, reactions=True)


async def react(house: House, name: str, sign: str, user: str = "root", **fields: Any) -> Receipt:
    source = house.source(user, "chat-ann", message_id=name)
    await poll(partial(house.store.deliveries.of_message, source, name))
    return await house.gateway.desk.accept(Reacted(source=source, emoji=sign, **fields))


async def test_reaction_of_an_approver_decides_and_of_nobody_else(store_url: str) -> None:
    async with opened(store_url, signs()) as house:
        turn_id, name, card = await ask(house)
        assert [each.sign for each in card.buttons] == [APPROVE_SIGN, DENY_SIGN]
        assert f"{APPROVE_SIGN} to approve" in card.text
        with pytest.raises(errors.NotAllowed):
            await react(house, name, APPROVE_SIGN, "eve")
        await house.finished((await react(house, name, APPROVE_SIGN, "ann")).turn_id)
        await react(house, name, "👍")
        assert (await pending(house)).status is Status.PENDING
        assert len(board(house).sent) == 1  # nobody is told that a reaction means nothing
        await house.finished((await react(house, name, APPROVE_SIGN)).turn_id)
        assert (await house.finished(turn_id)).state is turns.TurnState.DONE
        assert (await board(house).card("was approved by"))[0] == name


async def test_sign_that_is_taken_back_decides_nothing(store_url: str) -> None:
    async with opened(store_url, signs()) as house:
        _, name, _ = await ask(house)
        receipt = await react(house, name, APPROVE_SIGN, removed=True)
        noted = await house.store.turns.find(receipt.turn_id)
        assert noted
        assert noted.kind is turns.TurnKind.OBSERVED


# Choices that an agent offers

OFFER = "!say I can paint it.; !choose Which colour? Red, Blue"


async def test_choice_has_a_button_for_each_option_and_becomes_a_message_once(house: House) -> None:
    await house.say(OFFER)
    name, offered = await board(house).card("Which colour?")
    assert (offered.text, [each.label for each in offered.buttons]) == (
        "I can paint it.\n\nWhich colour?",
        ["Red", "Blue"],
    )
    ended = await asyncio.gather(
        *(press(house, token(offered, label), "ann") for label in ("Blue", "Red", "Blue"))
    )
    assert sorted(bool(each.error) for each in ended) == [False, True, True]
    _, answer = await board(house).card("echo: ")
    chosen = answer.text.removeprefix("echo: ")
    assert (await board(house).card(f"Chosen: {chosen}"))[0] == name
    rows = await house.rows(4)
    assert [row["content"] for row in rows] == [
        OFFER,
        "I can paint it.\n\nWhich colour?\n\n1. Red\n2. Blue",
        chosen,
        f"echo: {chosen}",
    ]


async def test_choice_is_of_its_own_conversation(house: House) -> None:
    group = {"chat_type": "group"}
    await house.say(OFFER, source=house.source("ann", "hall", **group))
    _, offered = await board(house).card("Which colour?")
    other = await press(house, token(offered, "Red"), "bob", "hall", **group)
    assert "offered to somebody else" in (other.error or "")
    assert (await board(house).card('"Bob" (matrix:bob): This was offered'))[1].is_markdown is False
    assert not (await press(house, token(offered, "Red"), "ann", "hall", **group)).error
    assert await board(house).card("echo: Red", "hall")


@pytest.mark.parametrize(
    ("reactions", "how"), [(True, "React with a number"), (False, "Answer with a number")]
)
async def test_number_chooses_where_there_are_no_buttons(store_url: str, reactions: bool, how: str) -> None:
    async with opened(store_url, Board(most_buttons=1, reactions=reactions, edits=False)) as house:
        await house.say(OFFER)
        name, offered = await board(house).card("Which colour?")
        assert f"1. Red\n2. Blue\n\n{how}" in offered.text
        if reactions:
            await react(house, name, "2\ufe0f\u20e3", "ann")
        else:
            await house.say(" 2 ")
        assert await board(house).card("echo: Blue")
        await house.say("1")
        assert await board(house).card("echo: 1")


async def test_number_that_comes_later_is_a_number(store_url: str) -> None:
    async with opened(store_url, Board(most_buttons=0)) as house:
        await house.ask(OFFER)
        assert await house.ask("how many?") == "echo: how many?"
        assert await house.ask("2") == "echo: 2"


async def test_choice_without_words_asks_to_choose(house: House) -> None:
    await house.say("!choose Yes, No")
    _, offered = await board(house).card("Please choose:")
    assert [each.label for each in offered.buttons] == ["Yes", "No"]


async def test_button_presses_what_it_did_before_the_gateway_was_killed_and_only_once(store_url: str) -> None:
    async with opened(store_url) as house:
        await house.say(OFFER)
        _, offered = await board(house).card("Which colour?")
    async with opened(store_url) as house:
        await press(house, token(offered, "Red"), "ann")
        assert await board(house).card("echo: Red")
    async with opened(store_url) as house:
        assert "does nothing" in ((await press(house, token(offered, "Red"), "ann")).error or "")
