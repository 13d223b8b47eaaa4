"""Long transcripts: loaded whole or as much as an agent is given, and nobody waits for all of it."""

import asyncio
import logging
from typing import Any

import pytest

from frontdesk import SessionStore
from frontdesk.model import messages
from frontdesk.stores import loading
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import LASTING, agent_calls, agent_says, direct, tool_answers, user_says

LONG = 6 * loading.SLICE_ROWS


async def tell(service: SessionStore, rows: list[dict[str, Any]]) -> str:
    """A session in which so much was said."""
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, rows)
    return entry.session_id


def broken(store_url: str) -> str:
    return "X'FF7B'" if store_url.startswith("sqlite") else r"'\xFF7B'"


class Others:
    """Something else that is ready to go on all the time, and how often it had its turn when a row was met
    that cannot be read."""

    def __init__(self) -> None:
        self.turns = 0
        self.met: list[int] = []

    async def go_on(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    def note(self, record: logging.LogRecord) -> bool:
        if "message_unreadable" in record.getMessage():
            self.met.append(self.turns)
        return True


async def turns_between(service: SessionStore, session_id: str, how: str = "load_transcript") -> int:
    """How often others had their turn between the first and the last row that could not be read."""
    others, logger = Others(), logging.getLogger("frontdesk.stores.columns")
    logger.addFilter(others.note)
    going_on = asyncio.create_task(others.go_on())
    try:
        await getattr(service, how)(session_id)
    finally:
        going_on.cancel()
        logger.removeFilter(others.note)
    return others.met[-1] - others.met[0]


@pytest.mark.parametrize("how", ["load_transcript", "load_records"])
async def test_others_have_their_turn_after_each_slice_of_many_rows(
    open_session_store: OpenSessionStore, edit_store: EditStore, store_url: str, how: str
) -> None:
    async with await open_session_store(LASTING) as service:
        session_id = await tell(service, [user_says(f"{number}") for number in range(LONG)])
    await edit_store(f"UPDATE messages SET body = {broken(store_url)} WHERE position IN (0, {LONG - 1})")
    service = await open_session_store(LASTING)
    assert await turns_between(service, session_id, how) >= LONG // loading.SLICE_ROWS - 1


async def test_others_have_their_turn_after_each_slice_of_large_rows(
    open_session_store: OpenSessionStore, edit_store: EditStore, store_url: str
) -> None:
    each, count = loading.SLICE_BYTES // 4, 24
    async with await open_session_store(LASTING) as service:
        session_id = await tell(service, [user_says("x" * each) for _ in range(count)])
    await edit_store(f"UPDATE messages SET body = {broken(store_url)} WHERE position IN (0, {count - 1})")
    service = await open_session_store(LASTING)
    assert await turns_between(service, session_id) >= count // 4 - 1


async def test_long_transcript_is_loaded_whole_and_in_order(service: SessionStore) -> None:
    turns = [
        (user_says(f"{n}"), agent_calls(f"c{n}"), tool_answers(f"c{n}", f"{n}!"), agent_says(f"so {n}"))
        for n in range(LONG // 4)
    ]
    rows = [row for turn in turns for row in turn]
    session_id = await tell(service, rows)
    assert await service.load_transcript(session_id) == rows
    assert [{**row, "timestamp": None} for row in await service.load_records(session_id)] == [
        {**row, "timestamp": None} for row in rows
    ]


async def test_result_that_came_slices_later_stands_behind_its_call(service: SessionStore) -> None:
    between = [user_says(f"{number}", observed=True) for number in range(2 * loading.SLICE_ROWS)]
    session_id = await tell(service, [user_says(), agent_calls("c1"), *between, tool_answers("c1", "late")])
    loaded = await service.load_transcript(session_id)
    assert loaded[1:3] == [agent_calls("c1"), tool_answers("c1", "late")]
    assert loaded[3:] == between


async def test_rows_that_a_rewrite_took_out_are_loaded_whole(service: SessionStore) -> None:
    rows = [user_says(f"{number}") for number in range(2 * loading.SLICE_ROWS + 1)]
    session_id = await tell(service, rows)
    await service.rewrite_transcript(session_id, [user_says("anew")])
    assert await service.load_transcript(session_id, revision=1) == rows


# what an agent is given


async def test_short_transcript_is_given_whole(service: SessionStore) -> None:
    rows = [user_says(f"{number}") for number in range(loading.SLICE_ROWS + 1)]
    newest = await service.store.transcripts.load_newest(await tell(service, rows))
    assert (newest.messages, newest.is_whole) == (rows, True)


async def test_empty_transcript_is_whole(service: SessionStore) -> None:
    newest = await service.store.transcripts.load_newest(await tell(service, []))
    assert (newest.messages, newest.is_whole) == ([], True)


def turns_of(count: int, text: str = "") -> list[dict[str, Any]]:
    return [row for n in range(count) for row in (user_says(f"{n}{text}"), agent_says(f"so {n}{text}"))]


async def test_of_many_rows_the_newest_are_given_and_the_others_are_not_read(
    open_session_store: OpenSessionStore,
    edit_store: EditStore,
    store_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = turns_of(loading.GIVEN_ROWS)
    async with await open_session_store(LASTING) as service:
        session_id = await tell(service, rows)
    await edit_store(f"UPDATE messages SET body = {broken(store_url)} WHERE position < {loading.GIVEN_ROWS}")
    service = await open_session_store(LASTING)
    with caplog.at_level(logging.WARNING):
        newest = await service.store.transcripts.load_newest(session_id)
    assert not newest.is_whole
    assert loading.GIVEN_ROWS // 2 <= len(newest.messages) <= loading.GIVEN_ROWS
    assert newest.messages == rows[-len(newest.messages) :]
    assert newest.messages[0]["role"] == "user"
    assert "message_unreadable" not in caplog.text


async def test_of_large_rows_those_are_given_that_fit(service: SessionStore) -> None:
    each = loading.GIVEN_BYTES // 20
    rows = turns_of(20, "x" * each)
    newest = await service.store.transcripts.load_newest(await tell(service, rows))
    assert not newest.is_whole
    assert 10 <= len(newest.messages) <= 20
    assert newest.messages == rows[-len(newest.messages) :]


async def test_message_that_is_larger_than_all_that_fits_is_given(service: SessionStore) -> None:
    huge = user_says("x" * (loading.GIVEN_BYTES + 1))
    session_id = await tell(service, [huge])
    newest = await service.store.transcripts.load_newest(session_id)
    assert (newest.messages == [huge], newest.is_whole) == (True, True)
    await service.record_turn(session_id, [huge])
    newest = await service.store.transcripts.load_newest(session_id)
    assert (newest.messages == [huge], newest.is_whole) == (True, False)


async def test_what_was_given_is_the_beginning_of_what_is_given_next(service: SessionStore) -> None:
    session_id = await tell(service, turns_of(loading.GIVEN_ROWS))
    transcripts = service.store.transcripts
    before = (await transcripts.load_newest(session_id)).messages
    begun_anew = 0
    for number in range(50):
        await service.record_turn(session_id, [user_says(f"more {number}"), agent_says("so")])
        now = (await transcripts.load_newest(session_id)).messages
        begun_anew += now[: len(before)] != before
        before = now
    assert begun_anew <= 1


async def test_turn_that_does_not_fit_begins_with_no_result_of_a_call_that_is_left_out(
    service: SessionStore,
) -> None:
    calls = [f"c{number}" for number in range(loading.GIVEN_ROWS)]
    rows = [user_says("go"), *(row for call in calls for row in (agent_calls(call), tool_answers(call, "!")))]
    newest = await service.store.transcripts.load_newest(await tell(service, rows))
    assert newest.messages[0]["role"] == "assistant"
    assert messages.conversation(newest.messages) == newest.messages == rows[-len(newest.messages) :]


def test_roundest_number_stays_the_same_while_the_numbers_move_on() -> None:
    found = [loading.roundest(low, low + 100) for low in range(1, 1_001)]
    assert all(low <= number <= low + 100 for low, number in enumerate(found, 1))
    assert found == sorted(found)
    assert len(set(found)) <= 1_100 // 64
