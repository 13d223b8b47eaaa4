"""What was said: stored once, in order, exactly as it was."""

import asyncio
import logging
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk import SessionEntry, SessionStore, Usage, errors
from frontdesk.testing import SettableClock
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import (
    LASTING,
    UNKNOWN_ID,
    Message,
    agent_calls,
    agent_says,
    direct,
    in_group,
    tool_answers,
    user_says,
)

INTERRUPTED = "[interrupted: the tool call has no result]"


@pytest.fixture
async def session_id(service: SessionStore) -> str:
    return (await service.get_or_create_session(direct())).session_id


async def count(service: SessionStore, session_id: str) -> int:
    entry = await entry_of(service, session_id)
    return entry.message_count


async def entry_of(service: SessionStore, session_id: str) -> SessionEntry:
    entry = await service.lookup_by_session_id(session_id)
    assert entry is not None
    return entry


async def append(service: SessionStore, session_id: str, *messages: Message) -> None:
    for message in messages:
        assert await service.append_to_transcript(session_id, message)


def interrupted(call_id: str) -> Message:
    return tool_answers(call_id, INTERRUPTED)


# what goes in comes out


async def test_messages_come_out_oldest_first_as_they_went_in(service: SessionStore, session_id: str) -> None:
    spoken = [
        {"role": "system", "content": "be kind"},
        user_says("hi", platform_message_id="1", timestamp="2026-01-05T12:00:00Z"),
        agent_calls("c1"),
        {"role": "tool", "tool_call_id": "c1", "tool_name": "look", "content": "seen"},
        agent_says(
            "done",
            reasoning="because",
            reasoning_content="it was so",
            reasoning_details=[{"type": "summary", "text": "…"}],
            codex_reasoning_items=[{"id": "r1", "summary": []}],
            codex_message_items=[{"id": "m1"}],
            token_count=17,
            finish_reason="stop",
        ),
        user_says([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]),
        user_says("overheard", observed=True),
        {"role": "session_meta", "tools": ["look"], "nested": {"a": [1, 2.5, None, True]}},
        {"role": "assistant", "content": ""},
    ]
    await append(service, session_id, *spoken)
    assert await service.load_transcript(session_id) == spoken


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(
    TEXT.filter(
        lambda name: name not in ("role", "content", "message_id", "platform_message_id", "tool_calls")
    ),
    VALUES,
    max_size=3,
)
CONTENT = TEXT | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=3)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["user", "assistant", "system", "session_meta"]))
    return {"role": role, "content": draw(CONTENT), **draw(FIELDS)}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spoken=st.lists(messages(), max_size=5))
async def test_any_message_round_trips_exactly(service: SessionStore, spoken: list[Message]) -> None:
    entry = await service.get_or_create_session(direct(), force_new=True)
    assert await service.record_turn(entry.session_id, spoken) == len(spoken)
    loaded = await service.load_transcript(entry.session_id)
    assert loaded == spoken
    assert repr(loaded) == repr(spoken)
    assert await service.rewrite_transcript(entry.session_id, loaded)
    assert await service.load_transcript(entry.session_id) == spoken


async def test_any_unicode_is_kept(service: SessionStore, session_id: str) -> None:
    for text in ("\x00", "a\x00b\x00", "\u2028\u2029", "\ufeff", "\U0001f600", "é", "\x1b[0m"):
        spoken = [user_says(text, platform_message_id=text), agent_says(text)]
        await append(service, session_id, *spoken)
        assert (await service.load_transcript(session_id))[-2:] == spoken
        assert await service.has_platform_message_id(session_id, text)
        assert not await service.has_platform_message_id(session_id, text + "!")


REFUSED: list[Any] = [
    {"content": "no role"},
    {"role": None, "content": "x"},
    {"role": "", "content": "x"},
    {"role": "wizard", "content": "x"},
    {"role": "user"},
    {"role": "user", "content": None},
    {"role": "user", "content": 5},
    {"role": "tool", "tool_call_id": "c"},
    {"role": "user", "content": "lone \ud800 surrogate"},
    {"role": "user", "content": "x", "\udfff": 1},
    {"role": "user", "content": [{"type": "text", "text": "\udc00"}]},
    {"role": "user", "content": "x", "number": float("nan")},
    {"role": "user", "content": "x", "number": float("inf")},
    {"role": "user", "content": "x", 5: "x"},
    {"role": "user", "content": "x", "raw": b"bytes"},
    {"role": "user", "content": "x", "platform_message_id": ["1"]},
    {"role": "assistant", "content": None, "tool_calls": "look"},
    "hello",
    None,
]


async def test_message_that_would_not_come_back_is_refused(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("before"))
    for message in REFUSED:
        with pytest.raises(errors.InvalidMessage):
            await service.append_to_transcript(session_id, message)
        with pytest.raises(errors.InvalidMessage):
            await service.record_turn(session_id, [user_says("after"), message])
        with pytest.raises(errors.InvalidMessage):
            await service.rewrite_transcript(session_id, [message])
    assert await service.load_transcript(session_id) == [user_says("before")]


async def test_session_meta_needs_no_content(service: SessionStore, session_id: str) -> None:
    meta = {"role": "session_meta", "anything": {"goes": [1]}}
    await append(service, session_id, meta)
    assert await service.load_transcript(session_id) == [meta]


async def test_unknown_session_has_an_empty_transcript(service: SessionStore) -> None:
    assert await service.load_transcript(UNKNOWN_ID) == []
    assert await service.load_transcript(UNKNOWN_ID, include_ancestors=True) == []
    assert await service.list_revisions(UNKNOWN_ID) == []
    assert not await service.has_platform_message_id(UNKNOWN_ID, "1")


async def test_unknown_session_takes_no_messages(service: SessionStore) -> None:
    with pytest.raises(errors.UnknownSession):
        await service.append_to_transcript(UNKNOWN_ID, user_says())
    with pytest.raises(errors.UnknownSession):
        await service.record_turn(UNKNOWN_ID, [user_says()])
    assert not await service.rewrite_transcript(UNKNOWN_ID, [user_says()])
    assert await service.rewind_session(UNKNOWN_ID) is None
    assert await service.redo_session(UNKNOWN_ID) is None
    assert await service.close_tool_calls(UNKNOWN_ID) == 0


async def test_transcript_survives_a_restart(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await append(service, entry.session_id, user_says("\x00"), agent_calls("c"), tool_answers("c"))
    await service.close()
    service = await open_session_store(LASTING)
    assert await service.load_transcript(entry.session_id) == [
        user_says("\x00"),
        agent_calls("c"),
        tool_answers("c"),
    ]


# counting


async def test_every_message_but_meta_counts(
    service: SessionStore, session_id: str, clock: SettableClock
) -> None:
    clock.advance(minutes=1)
    spoken = [user_says(), agent_calls("c"), tool_answers("c"), user_says(observed=True)]
    await append(service, session_id, *spoken, {"role": "system", "content": "s"}, {"role": "session_meta"})
    entry = await entry_of(service, session_id)
    assert (entry.message_count, entry.updated_at) == (5, clock.now())
    assert await service.get_message_count(entry.session_key) == 5


async def test_late_message_to_an_ended_session_is_kept(service: SessionStore, session_id: str) -> None:
    entry = await entry_of(service, session_id)
    await service.reset_session(entry.session_key)
    await append(service, session_id, agent_says("late"))
    assert await service.load_transcript(session_id) == [agent_says("late")]
    assert await service.get_message_count(entry.session_key) == 0


# stored once


async def test_platform_message_id_is_stored_once(service: SessionStore, session_id: str) -> None:
    assert await service.append_to_transcript(session_id, user_says("one", platform_message_id="7"))
    assert not await service.append_to_transcript(session_id, user_says("two", platform_message_id="7"))
    assert not await service.append_to_transcript(session_id, user_says("old name", message_id=7))
    assert await service.record_turn(session_id, [user_says("three", platform_message_id="7")]) == 0
    assert await service.load_transcript(session_id) == [user_says("one", platform_message_id="7")]
    assert await count(service, session_id) == 1
    assert await service.has_platform_message_id(session_id, "7")
    assert not await service.has_platform_message_id(session_id, "8")


async def test_older_name_of_the_platform_message_id_is_read(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("one", message_id=7))
    assert await service.load_transcript(session_id) == [user_says("one", platform_message_id="7")]
    assert await service.has_platform_message_id(session_id, "7")


async def test_twelve_messages_are_twelve_rows_however_often_handed_in(
    service: SessionStore, session_id: str
) -> None:
    spoken = [
        (user_says if number % 2 else agent_says)(f"line {number}", platform_message_id=str(number))
        for number in range(12)
    ]
    for _ in range(3):
        await service.record_turn(session_id, spoken)
        for message in spoken:
            await service.append_to_transcript(session_id, message)
    assert await service.record_turn(session_id, spoken + spoken) == 0
    assert await service.load_transcript(session_id) == spoken
    assert await count(service, session_id) == 12


async def test_same_id_twice_in_one_turn_is_one_message(service: SessionStore, session_id: str) -> None:
    twice = [user_says("a", platform_message_id="1"), user_says("b", platform_message_id="1")]
    assert await service.record_turn(session_id, twice) == 1
    assert await service.load_transcript(session_id) == twice[:1]


async def test_same_text_without_an_id_is_two_messages(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("ok"), user_says("ok"))
    assert await service.load_transcript(session_id) == [user_says("ok"), user_says("ok")]


async def test_same_id_in_another_session_is_another_message(service: SessionStore) -> None:
    ann = await service.get_or_create_session(direct("ann"))
    bob = await service.get_or_create_session(direct("bob"))
    for entry in (ann, bob):
        await append(service, entry.session_id, user_says(platform_message_id="1"))
    assert await count(service, bob.session_id) == 1


async def test_message_of_a_turn_is_stored_once_by_its_position(
    service: SessionStore, session_id: str
) -> None:
    turn = [user_says("q"), agent_calls("c"), tool_answers("c"), agent_says("a")]
    assert await service.append_to_transcript(session_id, turn[0], turn_id="t", turn_position=0)
    assert not await service.append_to_transcript(session_id, turn[0], turn_id="t", turn_position=0)
    assert await service.record_turn(session_id, turn[:3], turn_id="t") == 2
    assert await service.record_turn(session_id, turn, turn_id="t") == 1
    assert await service.record_turn(session_id, turn[2:], turn_id="t", first_position=2) == 0
    assert await service.load_transcript(session_id) == turn
    assert await count(service, session_id) == 4
    assert await service.record_turn(session_id, turn, turn_id="next") == 4


async def test_what_names_no_row_of_a_turn_is_refused(service: SessionStore, session_id: str) -> None:
    for turn_id, position in (("", 0), ("a\x00", 0), ("\ud800", 0), ("x" * 501, 0), ("t", -1), ("t", 2**70)):
        with pytest.raises(errors.InvalidInput):
            await service.append_to_transcript(
                session_id, user_says(), turn_id=turn_id, turn_position=position
            )
        with pytest.raises(errors.InvalidInput):
            await service.record_turn(session_id, [user_says()], turn_id=turn_id, first_position=position)
    assert await service.load_transcript(session_id) == []


async def test_place_in_no_turn_is_nothing(service: SessionStore, session_id: str) -> None:
    for position in (0, 0, 10**30):
        assert await service.append_to_transcript(session_id, user_says(), turn_position=position)
    assert await count(service, session_id) == 3


async def test_usage_that_no_database_takes_is_refused(service: SessionStore, session_id: str) -> None:
    costs: list[Any] = [Decimal("0.01"), 10**30, -1, math.nan, math.inf, "1"]
    for cost in costs:
        with pytest.raises(errors.InvalidInput):
            await service.record_turn(session_id, [user_says()], usage=Usage(cost_usd=cost))
    assert await service.load_transcript(session_id) == []


async def test_usage_of_a_turn_is_added_once(service: SessionStore, session_id: str) -> None:
    turn = [user_says("q"), agent_says("a")]
    usage = Usage(input_tokens=5, output_tokens=7, cost_usd=0.5, cost_status="exact", last_prompt_tokens=3)
    for _ in range(3):
        await service.record_turn(session_id, turn, turn_id="t", usage=usage)
    entry = await entry_of(service, session_id)
    assert (entry.input_tokens, entry.output_tokens, entry.last_prompt_tokens) == (5, 7, 3)
    assert (entry.estimated_cost_usd, entry.cost_status) == (0.5, "exact")


async def test_turn_without_messages_adds_its_usage(service: SessionStore, session_id: str) -> None:
    await service.record_turn(session_id, [], usage=Usage(input_tokens=5))
    assert (await entry_of(service, session_id)).input_tokens == 5


async def test_turn_with_a_bad_message_leaves_nothing(service: SessionStore, session_id: str) -> None:
    with pytest.raises(errors.InvalidMessage):
        await service.record_turn(session_id, [user_says(), {"role": "?"}], usage=Usage(input_tokens=5))
    with pytest.raises(errors.InvalidInput):
        await service.record_turn(session_id, [user_says()], usage=Usage(input_tokens=-5))
    entry = await entry_of(service, session_id)
    assert (entry.message_count, entry.input_tokens) == (0, 0)


async def test_same_id_from_two_chats_is_two_messages(service: SessionStore) -> None:
    private = await service.get_or_create_session(direct())
    crowd = await service.get_or_create_session(in_group())
    in_private, in_crowd = (user_says(text, platform_message_id="5") for text in ("here", "there"))
    await append(service, private.session_id, in_private)
    await service.switch_session(crowd.session_key, private.session_id)
    await append(service, private.session_id, in_crowd)
    assert not await service.append_to_transcript(private.session_id, in_crowd)
    assert await service.load_transcript(private.session_id) == [in_private, in_crowd]
    assert await count(service, private.session_id) == 1


async def test_rewriting_keeps_messages_of_two_chats_apart(service: SessionStore) -> None:
    private = await service.get_or_create_session(direct())
    crowd = await service.get_or_create_session(in_group())
    spoken = [user_says(f"private {number}", platform_message_id=number) for number in ("5", "6")]
    await append(service, private.session_id, *spoken)
    await service.switch_session(crowd.session_key, private.session_id)
    await append(service, private.session_id, user_says("crowd 5", platform_message_id="5"))
    whole = await service.load_transcript(private.session_id)
    assert await service.rewrite_transcript(private.session_id, whole)
    assert await service.load_transcript(private.session_id) == whole
    assert not await service.append_to_transcript(private.session_id, whole[-1])
    await append(service, private.session_id, user_says("crowd 6", platform_message_id="6"))


async def test_compressing_keeps_messages_of_two_chats_apart(service: SessionStore) -> None:
    private = await service.get_or_create_session(direct())
    crowd = await service.get_or_create_session(in_group())
    spoken = [user_says(f"private {number}", platform_message_id=number) for number in ("5", "6")]
    await append(service, private.session_id, *spoken)
    await service.switch_session(crowd.session_key, private.session_id)
    await append(service, private.session_id, user_says("crowd 5", platform_message_id="5"))
    whole = await service.load_transcript(private.session_id)
    shorter = await service.compress_session(crowd.session_key, whole)
    assert shorter is not None
    assert await service.load_transcript(shorter.session_id) == whole
    assert not await service.append_to_transcript(shorter.session_id, whole[-1])
    await append(service, shorter.session_id, user_says("crowd 6", platform_message_id="6"))


async def test_branching_keeps_messages_of_two_chats_apart(service: SessionStore) -> None:
    private = await service.get_or_create_session(direct())
    crowd = await service.get_or_create_session(in_group())
    await append(service, private.session_id, user_says("private", platform_message_id="5"))
    await service.switch_session(crowd.session_key, private.session_id)
    branch = await service.branch_session(crowd.session_key)
    assert branch is not None
    in_crowd = user_says("crowd", platform_message_id="5")
    await append(service, branch.session_id, in_crowd)
    assert not await service.append_to_transcript(branch.session_id, in_crowd)


async def test_concurrent_appends_of_one_message_give_one_row(service: SessionStore, session_id: str) -> None:
    message = user_says("once", platform_message_id="1")
    stored = await asyncio.gather(
        *(service.append_to_transcript(session_id, message) for _ in range(30)),
        *(
            service.append_to_transcript(session_id, agent_says("turn"), turn_id="t", turn_position=1)
            for _ in range(30)
        ),
    )
    assert (sum(stored[:30]), sum(stored[30:])) == (1, 1)
    assert len(await service.load_transcript(session_id)) == 2
    assert await count(service, session_id) == 2


async def test_concurrent_appends_keep_every_message(service: SessionStore, session_id: str) -> None:
    texts = [f"line {number}" for number in range(60)]
    await asyncio.gather(*(service.append_to_transcript(session_id, user_says(text)) for text in texts))
    loaded = await service.load_transcript(session_id)
    assert sorted(message["content"] for message in loaded) == sorted(texts)
    assert await count(service, session_id) == 60


# rewriting


async def test_rewrite_replaces_the_transcript_and_keeps_the_previous_one(
    service: SessionStore, session_id: str
) -> None:
    before = [user_says("q", platform_message_id="1"), agent_says("a"), {"role": "session_meta"}]
    await append(service, session_id, *before)
    after = [user_says("short"), agent_says("b"), user_says("more")]
    assert await service.rewrite_transcript(session_id, after)
    assert await service.load_transcript(session_id) == after
    assert await count(service, session_id) == 3
    [revision] = await service.list_revisions(session_id)
    assert (revision.kind, revision.rows) == ("rewrite", 3)
    assert await service.load_transcript(session_id, revision=revision.number) == before
    assert not await service.has_platform_message_id(session_id, "1")
    assert await service.append_to_transcript(session_id, before[0])


async def test_rewrite_with_nothing_empties_the_transcript(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says(), agent_says())
    assert await service.rewrite_transcript(session_id, [])
    assert (await service.load_transcript(session_id), await count(service, session_id)) == ([], 0)


async def test_every_earlier_version_stays_recoverable(service: SessionStore, session_id: str) -> None:
    versions = [[user_says(f"version {number}")] * (number + 1) for number in range(4)]
    for version in versions:
        assert await service.rewrite_transcript(session_id, version)
    revisions = await service.list_revisions(session_id)
    assert [revision.rows for revision in revisions] == [0, 1, 2, 3]
    for revision, version in zip(revisions[1:], versions[:-1], strict=True):
        assert await service.load_transcript(session_id, revision=revision.number) == version


async def test_rewrite_that_the_store_refuses_has_not_landed(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await append(service, entry.session_id, user_says("kept"))
    await service.close()
    assert not await service.rewrite_transcript(entry.session_id, [user_says("lost")])
    service = await open_session_store(LASTING)
    assert await service.load_transcript(entry.session_id) == [user_says("kept")]


# rewinding and redoing


async def test_rewind_takes_back_the_last_turn(service: SessionStore, session_id: str) -> None:
    first = [user_says("one"), agent_says("uno")]
    second = [user_says("two"), agent_calls("c"), tool_answers("c"), agent_says("due")]
    await append(service, session_id, *first, *second)
    assert await service.rewind_session(session_id) == {
        "rewound_count": 4,
        "turns_undone": 1,
        "target_text": "two",
    }
    assert await service.load_transcript(session_id) == first
    assert await count(service, session_id) == 2
    [revision] = await service.list_revisions(session_id)
    assert (revision.kind, revision.rows) == ("rewind", 4)
    assert await service.load_transcript(session_id, revision=revision.number) == second


async def test_rewind_is_clamped_to_the_turns_there_are(service: SessionStore, session_id: str) -> None:
    turns = [says(f"{number}") for number in range(3) for says in (user_says, agent_says)]
    for n, undone in ((-3, 1), (0, 1), (1, 1), (2, 2), (3, 3), (99, 3)):
        await service.rewrite_transcript(session_id, [agent_says("welcome"), *turns])
        assert await service.rewind_session(session_id, n) == {
            "rewound_count": 2 * undone,
            "turns_undone": undone,
            "target_text": str(3 - undone),
        }
        assert await count(service, session_id) == 7 - 2 * undone
        assert await service.load_transcript(session_id) == [agent_says("welcome"), *turns][: 7 - 2 * undone]


async def test_rewind_without_a_user_turn_gives_none(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, agent_says("welcome"), user_says("overheard", observed=True))
    assert await service.rewind_session(session_id) is None
    assert len(await service.load_transcript(session_id)) == 2


async def test_rewind_joins_the_text_parts(service: SessionStore, session_id: str) -> None:
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "here"},
    ]
    await append(service, session_id, user_says(parts))
    rewound = await service.rewind_session(session_id)
    assert rewound is not None
    assert rewound["target_text"] == "look\nhere"


async def test_rewind_reaches_far_back(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("start"))
    await service.record_turn(session_id, [agent_says(f"line {number}") for number in range(150)])
    rewound = await service.rewind_session(session_id)
    assert rewound == {"rewound_count": 151, "turns_undone": 1, "target_text": "start"}
    assert await service.load_transcript(session_id) == []


async def test_rewound_message_may_be_said_again(service: SessionStore, session_id: str) -> None:
    said = user_says("q", platform_message_id="1")
    await append(service, session_id, said)
    await service.rewind_session(session_id)
    assert not await service.has_platform_message_id(session_id, "1")
    await append(service, session_id, said)
    assert not await service.append_to_transcript(session_id, said)
    assert await service.load_transcript(session_id) == [said]
    assert await count(service, session_id) == 1


async def test_redo_brings_back_what_rewinds_took(service: SessionStore, session_id: str) -> None:
    spoken = [
        user_says("one", platform_message_id="1"),
        agent_says("uno"),
        user_says("two"),
        agent_says("due"),
    ]
    await append(service, session_id, *spoken)
    await service.rewind_session(session_id)
    await service.rewind_session(session_id)
    assert await service.load_transcript(session_id) == []
    assert await service.redo_session(session_id) == {
        "rewound_count": 2,
        "turns_undone": 1,
        "target_text": "one",
    }
    assert await service.load_transcript(session_id) == spoken[:2]
    assert await service.has_platform_message_id(session_id, "1")
    assert await service.redo_session(session_id) is not None
    assert await service.load_transcript(session_id) == spoken
    assert await count(service, session_id) == 4
    assert await service.redo_session(session_id) is None
    assert await service.list_revisions(session_id) == []


async def test_redo_ends_with_the_next_append(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("one"), agent_says("uno"))
    await service.rewind_session(session_id)
    await append(service, session_id, user_says("other"))
    assert await service.redo_session(session_id) is None
    assert await service.load_transcript(session_id) == [user_says("other")]
    assert await count(service, session_id) == 1


async def test_message_handed_in_again_does_not_end_redo(service: SessionStore, session_id: str) -> None:
    kept = user_says("kept", platform_message_id="1")
    await append(service, session_id, kept, user_says("undone"))
    await service.rewind_session(session_id)
    assert not await service.append_to_transcript(session_id, kept)
    assert await service.redo_session(session_id) is not None


async def test_positions_are_never_reused(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("one"), agent_says("uno"))
    await service.rewind_session(session_id)
    await append(service, session_id, user_says("two"))
    await service.rewrite_transcript(session_id, [user_says("two"), user_says("three")])
    await append(service, session_id, user_says("four"))
    viewer = await service.viewer_for(direct())
    hits = [hit for word in ("two", "three", "four") for hit in await service.search(word, viewer)]
    assert [hit.position for hit in hits] == [3, 4, 5]


async def test_redo_does_not_reach_behind_a_rewrite(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("one"))
    await service.rewind_session(session_id)
    await service.rewrite_transcript(session_id, [user_says("new")])
    assert await service.redo_session(session_id) is None
    assert await service.load_transcript(session_id) == [user_says("new")]


async def test_redo_without_a_rewind_gives_none(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says("one"))
    assert await service.redo_session(session_id) is None


async def test_rewound_rows_survive_a_restart_and_can_be_redone(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await append(service, entry.session_id, user_says("one"), agent_says("uno"))
    await service.rewind_session(entry.session_id)
    await service.close()
    service = await open_session_store(LASTING)
    assert await service.load_transcript(entry.session_id) == []
    assert await service.redo_session(entry.session_id) is not None
    assert len(await service.load_transcript(entry.session_id)) == 2


# tool calls


async def test_tool_call_without_a_result_is_closed_before_the_next_user_message(
    service: SessionStore, session_id: str
) -> None:
    await append(service, session_id, user_says(), agent_calls("c1", "c2"), tool_answers("c1"))
    await append(service, session_id, user_says("still there?"))
    assert await service.load_transcript(session_id) == [
        user_says(),
        agent_calls("c1", "c2"),
        tool_answers("c1"),
        interrupted("c2"),
        user_says("still there?"),
    ]
    assert await count(service, session_id) == 5


async def test_tool_call_without_a_result_is_closed_before_the_next_reply(
    service: SessionStore, session_id: str
) -> None:
    assert await service.record_turn(session_id, [user_says(), agent_calls("c1"), agent_says("no luck")]) == 3
    assert (await service.load_transcript(session_id))[2:] == [interrupted("c1"), agent_says("no luck")]


async def test_overheard_message_does_not_close_tool_calls(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, agent_calls("c1"), user_says("psst", observed=True), tool_answers("c1"))
    assert len(await service.load_transcript(session_id)) == 3


async def test_open_tool_calls_are_closed_when_a_turn_ends(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says(), agent_calls("c1", "c2", "c3"), tool_answers("c2"))
    assert await service.close_tool_calls(session_id) == 2
    stored = await service.load_transcript(session_id, as_stored=True)
    assert stored[3:] == [interrupted("c1"), interrupted("c3")]
    assert await count(service, session_id) == 5
    assert await service.close_tool_calls(session_id) == 0


async def test_tool_calls_open_before_a_crash_are_closed_after_it(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await append(service, entry.session_id, user_says(), agent_calls("c1"))
    await service.close()
    service = await open_session_store(LASTING)
    assert await service.close_tool_calls(entry.session_id) == 1
    assert (await service.load_transcript(entry.session_id))[-1] == interrupted("c1")


async def test_rewritten_transcript_is_a_valid_conversation(service: SessionStore, session_id: str) -> None:
    await service.rewrite_transcript(session_id, [agent_calls("c1"), user_says(), agent_calls("c2")])
    assert (await service.load_transcript(session_id))[1] == interrupted("c1")
    assert await service.close_tool_calls(session_id) == 1


async def test_rewound_tool_calls_are_no_longer_open(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says(), agent_calls("c1"))
    await service.rewind_session(session_id)
    assert await service.close_tool_calls(session_id) == 0
    await append(service, session_id, user_says("again"))
    assert await service.load_transcript(session_id) == [user_says("again")]


async def test_redone_tool_calls_are_open_again(service: SessionStore, session_id: str) -> None:
    await append(service, session_id, user_says(), agent_calls("c1", "c2"), tool_answers("c1"))
    await service.rewind_session(session_id)
    await service.redo_session(session_id)
    assert await service.close_tool_calls(session_id) == 1
    assert (await service.load_transcript(session_id))[-1] == interrupted("c2")


async def test_unreadable_row_leaves_the_rest_of_the_transcript(
    open_session_store: OpenSessionStore,
    edit_store: EditStore,
    caplog: pytest.LogCaptureFixture,
    store_url: str,
) -> None:
    async with await open_session_store(LASTING) as service:
        entry = await service.get_or_create_session(direct())
        for text in ("one", "two", "three"):
            await service.append_to_transcript(entry.session_id, {"role": "user", "content": text})
    broken = "X'FF7B'" if store_url.startswith("sqlite") else r"'\xFF7B'"
    await edit_store(f"UPDATE messages SET body = {broken} WHERE position = 1")
    service = await open_session_store(LASTING)
    with caplog.at_level(logging.WARNING):
        left = await service.load_transcript(entry.session_id)
    assert [message["content"] for message in left] == ["one", "three"]
    assert "message_unreadable" in caplog.text
    assert (await service.rewind_session(entry.session_id, 2)) is not None
    assert (await service.redo_session(entry.session_id)) is not None
    assert len(await service.load_transcript(entry.session_id)) == 2


async def test_loaded_transcript_is_a_valid_conversation(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [user_says("go"), agent_calls("c1")], turn_id="t1")
    assert (await service.load_transcript(entry.session_id))[-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "[interrupted: the tool call has no result]",
    }
    assert len(await service.load_transcript(entry.session_id, as_stored=True)) == 2
    await service.append_to_transcript(entry.session_id, user_says("and?"))
    late = [user_says("go"), agent_calls("c1"), tool_answers("c1")]
    assert await service.record_turn(entry.session_id, late, turn_id="t1") == 1
    assert await service.load_transcript(entry.session_id) == [*late, user_says("and?")]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda service, key, id: service.get_or_create_session({"platform": "telegram"}),
        lambda service, key, id: service.viewer_for("ann"),
        lambda service, key, id: service.search("x", "ann"),
        lambda service, key, id: service.list_own_sessions(None),
        lambda service, key, id: service.rewrite_transcript(id, ""),
        lambda service, key, id: service.record_turn(id, None),
        lambda service, key, id: service.record_turn(id, [], usage={"input_tokens": 1}),
        lambda service, key, id: service.rewind_session(id, "1"),
        lambda service, key, id: service.load_transcript(id, revision="x"),
        lambda service, key, id: service.compress_session(key, "short"),
        lambda service, key, id: service.mark_resume_pending(key, 5),
        lambda service, key, id: service.reset_session(key, 5),
        lambda service, key, id: service.prune_old_entries("x"),
        lambda service, key, id: service.list_sessions(limit=1.5),
        lambda service, key, id: service.list_sessions(-1),
    ],
)
async def test_wrong_kinds_are_refused_by_name_and_change_nothing(service: SessionStore, wrong: Any) -> None:
    entry = await service.get_or_create_session(direct())
    await service.append_to_transcript(entry.session_id, user_says("kept"))
    before = await service.get_session(entry.session_key)
    with pytest.raises(errors.InvalidInput):
        await wrong(service, entry.session_key, entry.session_id)
    assert await service.get_session(entry.session_key) == before
    assert await service.load_transcript(entry.session_id) == [user_says("kept")]


async def test_records_tell_when_a_message_was_stored_unless_it_came_with_a_time(
    service: SessionStore, session_id: str, clock: SettableClock
) -> None:
    sent = "2026-01-01T00:00:00+00:00"
    await service.append_to_transcript(session_id, {"role": "user", "content": "a", "timestamp": sent})
    clock.advance(seconds=5)
    await service.append_to_transcript(session_id, {"role": "assistant", "content": "b"})
    asked, answered = await service.load_records(session_id)
    assert (asked["timestamp"], answered["timestamp"]) == (sent, clock.now().isoformat())
    assert "timestamp" not in (await service.load_transcript(session_id))[1]
