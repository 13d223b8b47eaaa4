"""Buttons on every store: written with their message, used up by one press, found by what stands for them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from frontdesk import errors, plugins
from frontdesk.model import turns
from frontdesk.model.buttons import KEYCAP, Chooses, LiveButton, new_token
from frontdesk.model.chats import TOKEN_CHARACTERS, Button
from frontdesk.model.deliveries import Delivery, DeliveryKind, DeliveryState, Settlement
from frontdesk.stores.store import Store
from tests.contracts.test_pipeline import KEY, NOW, SOURCE, make_delivery, make_turn, queue

LATER = NOW + timedelta(minutes=10)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with await plugins.load_store(store_url)(store_url) as opened:
        yield opened


def button(label: str, number: int | None = None, **fields: object) -> LiveButton:
    sign = f"{number}{KEYCAP}" if number else None
    values = {"label": label, "token": new_token(), "sign": sign, "does": Chooses(text=label)} | fields
    return LiveButton(**({"until": LATER} | values))  # type: ignore[arg-type]


async def offered(store: Store, name: str = "d1", *buttons: LiveButton) -> Delivery:
    """A message with buttons that has arrived, and its platform calls it m-d1."""
    delivery = make_delivery(name, buttons=buttons or (button("Red", 1), button("Blue", 2)), session_key=KEY)
    await store.deliveries.add([delivery])
    node = await store.nodes.join("test", NOW)
    (claim,) = await store.deliveries.claim(node, 1, NOW)
    settled = Settlement(state=DeliveryState.SENT, platform_message_id=f"m-{name}")
    await store.deliveries.settle(claim, settled, NOW)
    found = await store.deliveries.find(name)
    assert found
    return found


async def press(store: Store, token: str, number: int = 1) -> turns.Accepted | None:
    chosen = make_turn(100 + number)
    return await store.buttons.choose(token, make_turn(number), chosen, queue, NOW)


async def test_channel_gets_labels_and_tokens_and_nothing_else(store: Store) -> None:
    red = button("Red")
    kept = await offered(store, "d1", red)
    assert kept.buttons == (Button(label="Red", token=red.token),)
    assert red.token.isascii()
    assert len(red.token) <= TOKEN_CHARACTERS


async def test_message_that_is_told_again_has_the_buttons_that_it_had(store: Store) -> None:
    first = await offered(store)
    again = make_delivery("d1", buttons=(button("Green"),))
    await store.deliveries.add([again])
    assert await store.buttons.find(again.buttons[0].token) is None
    assert await store.buttons.find(first.buttons[0].token)


async def test_of_presses_at_once_one_becomes_a_message(store: Store) -> None:
    card = await offered(store)
    tokens = [each.token for each in card.buttons] * 4
    accepted = await asyncio.gather(*[press(store, token, place) for place, token in enumerate(tokens)])
    assert sum(each is not None for each in accepted) == 1
    assert [await press(store, token, 50) for token in tokens] == [None] * 8
    assert len(await store.turns.open_turns(KEY, 100)) == 1


async def test_press_that_was_refused_uses_nothing_up(store: Store) -> None:
    card = await offered(store)

    def full(_running: turns.Turn | None, waiting: int, _crowd: int) -> turns.Admission:
        raise errors.TooManyWaiting(waiting=waiting)

    token = card.buttons[0].token
    with pytest.raises(errors.TooManyWaiting):
        await store.buttons.choose(token, make_turn(1), make_turn(2), full, NOW)
    assert await press(store, token)


async def test_button_whose_time_is_over_does_nothing(store: Store) -> None:
    card = await offered(store)
    late = await store.buttons.choose(card.buttons[0].token, make_turn(1), make_turn(2), queue, LATER)
    assert late is None


async def test_number_answers_a_choice_until_something_else_was_said(store: Store) -> None:
    card = await offered(store)

    async def chosen(number: str, chat: str = "c1", key: str = KEY) -> str | None:
        return await store.buttons.by_number(replace(SOURCE, chat_id=chat), key, number, NOW)

    assert await chosen("2") == card.buttons[1].token
    assert [await chosen("3"), await chosen("2", "c2"), await chosen("2", key="another")] == [None] * 3
    await store.deliveries.add([make_delivery("n1", kind=DeliveryKind.NOTICE)])
    assert await chosen("2") == card.buttons[1].token
    await store.deliveries.add([make_delivery("d2")])
    assert await chosen("2") is None


async def test_old_buttons_are_forgotten_some_at_a_time(store: Store) -> None:
    card = await offered(store)
    assert await store.buttons.prune(LATER, 10) == 0
    assert [await store.buttons.prune(LATER + timedelta(days=1), 1) for _ in range(3)] == [1, 1, 0]
    assert await store.buttons.find(card.buttons[0].token) is None
