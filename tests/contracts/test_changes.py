"""An edit and a deletion of a message race with whoever begins its turn: one of them is first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from frontdesk import Platform, SessionSource, plugins
from frontdesk.model import lanes, turns
from frontdesk.model.deliveries import Delivery
from frontdesk.stores.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
CHATS = 24
GATHER = turns.Gathering(seconds=10)


def source(chat: int, message: int) -> SessionSource:
    return SessionSource(
        platform=Platform.SIGNAL, chat_id=f"c{chat}", user_id="u", message_id=f"m{chat}-{message}"
    )


def make_turn(chat: int, message: int, text: str = "old") -> turns.Turn:
    return turns.Turn(
        id=f"t{chat}-{message}",
        session_key=f"agent:main:signal:dm:c{chat}",
        source=source(chat, message),
        text=text,
        event_id=f"e{chat}-{message}",
        received_at=NOW,
    )


def queue(_running: turns.Turn | None, _waiting: int, _crowd: int) -> turns.Admission:
    return turns.Admission()


def edit(subject: turns.Turn | None, _delivery: Delivery | None, waits: bool) -> turns.Alteration:
    assert subject
    return turns.Alteration(amended=replace(subject, text="new")) if waits else turns.Alteration()


def withdraw(subject: turns.Turn | None, _delivery: Delivery | None, waits: bool) -> turns.Alteration:
    assert subject
    return turns.Alteration(amended=replace(subject, withdrawn=True)) if waits else turns.Alteration()


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with AsyncExitStack() as opened:
        made: Store = await plugins.load_store(store_url)(store_url)
        opened.push_async_callback(made.close)
        yield made


@pytest.fixture
async def node(store: Store) -> int:
    return await store.nodes.join("test", NOW)


async def claim_all(store: Store, node: int) -> dict[str, turns.Turn]:
    claimed: dict[str, turns.Turn] = {}
    for _ in range(CHATS * 2):
        claims = await store.turns.claim(node, lanes.LaneKind.TURN, 3, LATER, lambda _: [])
        claimed |= {claim.turn.id: claim.turn for claim in claims}
        await asyncio.sleep(0)
    return claimed


async def test_turn_that_is_begun_has_the_edits_that_counted_and_no_others(store: Store, node: int) -> None:
    for chat in range(CHATS):
        for message in range(2):
            await store.turns.accept(make_turn(chat, message), queue, None, GATHER)
    edits = (
        store.turns.change(replace(make_turn(chat, 1), id=f"x{chat}", event_id=f"x{chat}"), edit)
        for chat in reversed(range(CHATS))
    )
    claiming = asyncio.create_task(claim_all(store, node))
    changed = await asyncio.gather(*edits)
    claimed = await claiming | await claim_all(store, node)
    assert len(claimed) == CHATS
    for chat, counted in zip(reversed(range(CHATS)), changed, strict=True):
        assert claimed[f"t{chat}-0"].text == ("old\nnew" if counted else "old\nold")


async def test_message_is_withdrawn_or_begun_and_never_both(store: Store, node: int) -> None:
    for chat in range(CHATS):
        await store.turns.accept(make_turn(chat, 0), queue)
    withdrawals = (
        store.turns.change(replace(make_turn(chat, 0), id=f"x{chat}", event_id=f"x{chat}"), withdraw)
        for chat in reversed(range(CHATS))
    )
    claiming = asyncio.create_task(claim_all(store, node))
    changed = await asyncio.gather(*withdrawals)
    claimed = await claiming | await claim_all(store, node)
    for chat, counted in zip(reversed(range(CHATS)), changed, strict=True):
        assert (f"t{chat}-0" in claimed) is (counted is None)


async def test_repeated_edit_does_not_bring_back_what_a_newer_one_changed(store: Store, node: int) -> None:
    await store.turns.accept(make_turn(1, 0), queue)
    first = replace(make_turn(1, 0), id="x1", event_id="x1")
    await store.turns.change(first, edit)
    await store.turns.change(
        replace(first, id="x2", event_id="x2"),
        lambda subject, *_: turns.Alteration(amended=subject and replace(subject, text="newest")),
    )
    again = await store.turns.change(replace(first, id="x3"), edit)
    assert again
    assert again.repeated
    assert (await claim_all(store, node))["t1-0"].text == "newest"
