"""Requests with an idempotency key, on every store: how many of one sender are known."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from frontdesk import plugins
from frontdesk.model import repeats
from frontdesk.model.repeats import KeyedCall
from frontdesk.stores import keyed
from frontdesk.stores.store import Store

NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with await plugins.load_store(store_url)(store_url) as opened:
        yield opened


def call(who: str, key: object) -> KeyedCall:
    return KeyedCall(id=repeats.call_id(who, str(key)), request="asked")


async def test_oldest_keys_of_a_sender_give_way_to_their_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed, "MOST_OF_ONE", 3)
    calls = store.keyed_calls
    assert await calls.claim(call("matrix:bob", 0), NOW - timedelta(hours=1)) is None
    for number in range(6):
        assert await calls.claim(call("matrix:ann", number), NOW + timedelta(seconds=number)) is None
        await calls.answer(repeats.call_id("matrix:ann", str(number)), 200, b"{}")
    later = NOW + timedelta(minutes=1)
    assert await calls.claim(call("matrix:bob", 0), later) is not None
    known = await calls.claim(call("matrix:ann", 5), later)
    assert known is not None
    assert (known.status, known.answer) == (200, b"{}")
    assert await calls.claim(call("matrix:ann", 2), later) is None


async def test_keys_of_a_day_ago_are_forgotten(store: Store) -> None:
    calls = store.keyed_calls
    assert await calls.claim(call("matrix:ann", 0), NOW) is None
    assert await calls.claim(call("matrix:ann", 0), NOW + timedelta(hours=23)) is not None
    assert await calls.claim(call("matrix:ann", 0), NOW + timedelta(hours=25)) is None
