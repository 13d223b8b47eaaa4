"""How much is answered in one chat: counted in the store, once for each event, whichever node asks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest

from frontdesk import Platform, SessionSource, plugins
from frontdesk.model import turns
from frontdesk.model.chats import Allowance, Quota
from frontdesk.stores.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOURLY, DAILY = Quota(most=3, seconds=3600), Quota(most=5, seconds=24 * 3600)


def source(chat: str = "ann@a.test", thread: str = "<1@a.test>") -> SessionSource:
    return SessionSource(platform=Platform.EMAIL, chat_id=chat, user_id=chat, thread_id=thread)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with AsyncExitStack() as opened:
        made: Store = await plugins.load_store(store_url)(store_url)
        opened.push_async_callback(made.close)
        yield made


async def take(store: Store, event: str, minutes: float = 0, at: SessionSource | None = None) -> Allowance:
    now = NOW + timedelta(minutes=minutes)
    return await store.people.take_quota(at or source(), event, (HOURLY, DAILY), now)


async def test_enough_is_said_once_and_only_in_that_chat(store: Store) -> None:
    threads = [source(thread=f"<{number}@a.test>") for number in range(6)]
    found = [await take(store, f"e{number}", at=each) for number, each in enumerate(threads)]
    assert found == [Allowance.WITHIN] * 3 + [Allowance.FULL] + [Allowance.OVER] * 2
    assert await take(store, "e0", at=source("bob@b.test")) is Allowance.WITHIN


async def test_same_event_counts_once_and_one_that_is_here_always_passes(store: Store) -> None:
    assert [await take(store, "e1") for _ in range(9)] == [Allowance.WITHIN] * 9
    turn = turns.Turn(id="t1", session_key="k", source=source(), text="hi", event_id="known", received_at=NOW)
    await store.turns.accept(turn, lambda *_: turns.Admission())
    for event in ("e2", "e3", "e4"):
        await take(store, event)
    assert await take(store, "e5") is Allowance.OVER
    assert await take(store, "known") is Allowance.WITHIN
    assert await take(store, "e1") is Allowance.WITHIN


async def test_time_makes_room_until_the_longer_bound_is_reached(store: Store) -> None:
    for event in ("e1", "e2", "e3"):
        assert await take(store, event) is Allowance.WITHIN
    assert await take(store, "e4", 59) is Allowance.FULL
    assert await take(store, "e5", 61) is Allowance.WITHIN
    assert await take(store, "e6", 130) is Allowance.OVER
    assert await take(store, "e7", 25 * 60) is Allowance.WITHIN


async def test_many_at_once_share_one_bound(store: Store) -> None:
    found = await asyncio.gather(*(take(store, f"e{number}") for number in range(12)))
    assert sorted(found) == [Allowance.FULL] + [Allowance.OVER] * 8 + [Allowance.WITHIN] * 3
