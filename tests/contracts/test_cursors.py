"""How far a platform was read is stored with what came of it, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from frontdesk import Platform, SessionSource, errors, plugins
from frontdesk.model import turns
from frontdesk.model.chats import Cursor
from frontdesk.stores.store import Store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLATFORM, ACCOUNT = "webhook", "shop"


def make_turn(number: int, chat: str = "c1") -> turns.Turn:
    source = SessionSource(platform=Platform.WEBHOOK, chat_id=chat, user_id="u1", account=ACCOUNT)
    key = f"agent:main:webhook@shop:dm:{chat}"
    return turns.Turn(
        id=f"t{number}", session_key=key, source=source, text="hi", event_id=f"e{number}", received_at=NOW
    )


def queue(_running: turns.Turn | None, _waiting: int, _crowd: int) -> turns.Admission:
    return turns.Admission()


def refuse(_running: turns.Turn | None, waiting: int, _crowd: int) -> turns.Admission:
    raise errors.TooManyWaiting(waiting=waiting)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    async with AsyncExitStack() as opened:
        made: Store = await plugins.load_store(store_url)(store_url)
        opened.push_async_callback(made.close)
        yield made


async def test_cursor_moves_with_the_message_and_with_one_that_comes_again(store: Store) -> None:
    await store.turns.accept(make_turn(1), queue, Cursor(value="10"))
    again = await store.turns.accept(make_turn(1), queue, Cursor(value="11"))
    assert again.repeated
    assert await store.cursors.of_account(PLATFORM, ACCOUNT) == {"": "11"}


async def test_cursor_stays_where_the_message_was_refused(store: Store) -> None:
    await store.turns.accept(make_turn(1), queue, Cursor(value="10"))
    with pytest.raises(errors.TooManyWaiting):
        await store.turns.accept(make_turn(2), refuse, Cursor(value="11"))
    assert await store.cursors.of_account(PLATFORM, ACCOUNT) == {"": "10"}


async def test_accounts_and_chats_have_their_own_cursors(store: Store) -> None:
    await store.cursors.move(PLATFORM, ACCOUNT, Cursor(value="stream"))
    await store.cursors.move(PLATFORM, None, Cursor(value="another account"))
    await store.cursors.move(PLATFORM, ACCOUNT, Cursor(value="a chat", chat="c1"))
    assert await store.cursors.of_account(PLATFORM, ACCOUNT) == {"": "stream", "c1": "a chat"}


async def test_cursors_of_messages_that_are_taken_in_together_all_move(store: Store) -> None:
    accepting = [
        store.turns.accept(
            make_turn(number, f"c{number}"), queue, Cursor(value=str(number), chat=f"c{number}")
        )
        for number in range(20)
    ]
    await asyncio.gather(*accepting)
    expected = {f"c{number}": str(number) for number in range(20)}
    assert await store.cursors.of_account(PLATFORM, ACCOUNT) == expected


@pytest.mark.parametrize(
    "fields", [{"value": "x" * 10_001}, {"value": "a\0b"}, {"value": "", "chat": "c" * 501}]
)
def test_cursor_that_could_not_be_kept_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidInput):
        Cursor(**fields)
