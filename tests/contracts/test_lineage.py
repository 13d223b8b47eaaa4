"""Generations of a conversation: branches and compressions."""

import pytest

from frontdesk import EndReason, Session, SessionStore, errors
from frontdesk.testing import SettableClock
from tests.contracts.samples import agent_calls, agent_says, direct, flags_of, tool_answers, user_says


async def own(service: SessionStore, session_id: str) -> Session:
    found = await service.find_session(session_id, await service.viewer_for(direct()))
    assert found is not None
    return found


async def test_compression_goes_on_in_a_shorter_session(service: SessionStore, clock: SettableClock) -> None:
    first = await service.get_or_create_session(direct())
    long = [user_says("one", platform_message_id="1"), agent_says("uno"), user_says("two")]
    await service.record_turn(first.session_id, long)
    clock.advance(minutes=1)
    short = [user_says("[summary]"), user_says("two")]
    tip = await service.compress_session(first.session_key, short)
    assert tip is not None
    assert tip.session_id != first.session_id
    assert (tip.message_count, tip.created_at) == (2, clock.now())
    assert flags_of(tip) == []
    assert (tip.origin, tip.display_name) == (first.origin, first.display_name)
    assert await service.get_session(first.session_key) == tip
    assert await service.load_transcript(tip.session_id) == short
    assert await service.load_transcript(first.session_id) == long
    ended = await own(service, first.session_id)
    assert (ended.reason, ended.ended_at) == (EndReason.COMPRESSED, clock.now())
    assert (await own(service, tip.session_id)).parent_id == first.session_id


async def test_transcript_with_ancestors_begins_with_the_oldest(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.append_to_transcript(first.session_id, user_says("one"))
    second = await service.compress_session(first.session_key, [user_says("two")])
    third = await service.compress_session(first.session_key, [user_says("three")])
    assert second is not None
    assert third is not None
    whole = await service.load_transcript(third.session_id, include_ancestors=True)
    assert [message["content"] for message in whole] == ["one", "two", "three"]
    part = await service.load_transcript(second.session_id, include_ancestors=True)
    assert [message["content"] for message in part] == ["one", "two"]


async def test_ancestors_of_a_reset_session_are_not_its_transcript(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.append_to_transcript(first.session_id, user_says("one"))
    fresh = await service.reset_session(first.session_key)
    assert fresh is not None
    assert await service.load_transcript(fresh.session_id, include_ancestors=True) == []


async def test_lineage_is_followed_to_its_tip(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    first = await service.get_or_create_session(direct())
    await service.compress_session(first.session_key, [])
    tip = await service.compress_session(first.session_key, [])
    assert tip is not None
    for session_id in (first.session_id, tip.session_id):
        found = await service.follow_lineage(session_id, viewer)
        assert found is not None
        assert found.id == tip.session_id


async def test_lineage_does_not_lead_into_resets_and_branches(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    for step in (service.reset_session, service.branch_session):
        first = await service.get_or_create_session(direct())
        await step(first.session_key)
        found = await service.follow_lineage(first.session_id, viewer)
        assert found is not None
        assert found.id == first.session_id


async def test_compressed_session_that_is_resumed_goes_on_itself(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    tip = await service.compress_session(first.session_key, [user_says("short")])
    assert tip is not None
    back = await service.switch_session(first.session_key, first.session_id)
    assert back is not None
    assert (await service.get_or_create_session(direct())).session_id == first.session_id
    found = await service.follow_lineage(first.session_id, await service.viewer_for(direct()))
    assert found is not None
    assert found.id == first.session_id


async def test_compressed_transcript_is_a_valid_conversation(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    tip = await service.compress_session(first.session_key, [agent_calls("c1"), user_says("go on")])
    assert tip is not None
    roles = [message["role"] for message in await service.load_transcript(tip.session_id)]
    assert roles == ["assistant", "tool", "user"]


async def test_branch_is_a_copy_that_goes_its_own_way(service: SessionStore, clock: SettableClock) -> None:
    first = await service.get_or_create_session(direct())
    spoken = [user_says("one", platform_message_id="1"), agent_says("uno"), {"role": "session_meta", "x": 1}]
    await service.record_turn(first.session_id, spoken)
    clock.advance(minutes=1)
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    assert branch.session_id != first.session_id
    assert (branch.message_count, branch.created_at) == (2, clock.now())
    assert flags_of(branch) == []
    assert await service.get_session(first.session_key) == branch
    assert await service.load_transcript(branch.session_id) == spoken
    assert (await own(service, first.session_id)).reason is EndReason.BRANCH
    await service.append_to_transcript(branch.session_id, user_says("two"))
    assert await service.load_transcript(first.session_id) == spoken
    await service.append_to_transcript(first.session_id, user_says("late"))
    assert await service.load_transcript(branch.session_id) == [*spoken, user_says("two")]


async def test_branch_knows_the_messages_it_was_copied_with(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    said = user_says("one", platform_message_id="1")
    await service.append_to_transcript(first.session_id, said)
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    assert not await service.append_to_transcript(branch.session_id, said)


async def test_branch_leaves_out_what_was_undone(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.record_turn(first.session_id, [user_says("one"), agent_says("uno"), user_says("two")])
    await service.rewind_session(first.session_id)
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    assert await service.load_transcript(branch.session_id) == [user_says("one"), agent_says("uno")]
    assert await service.redo_session(branch.session_id) is None
    assert branch.message_count == 2


async def test_branch_can_be_undone_and_redone(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.record_turn(first.session_id, [user_says("one"), agent_says("uno")])
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    await service.rewind_session(branch.session_id)
    assert await service.load_transcript(branch.session_id) == []
    assert len(await service.load_transcript(first.session_id)) == 2
    await service.redo_session(branch.session_id)
    assert await service.get_message_count(branch.session_key) == 2


async def test_branch_knows_which_tool_calls_are_open(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.record_turn(first.session_id, [user_says(), agent_calls("c1", "c2"), tool_answers("c1")])
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    assert await service.close_tool_calls(branch.session_id) == 1


async def test_original_of_a_branch_can_be_resumed(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    back = await service.switch_session(first.session_key, first.session_id)
    assert back is not None
    assert (await own(service, branch.session_id)).reason is EndReason.SWITCH
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_title_stays_with_the_original_of_a_branch(service: SessionStore) -> None:
    viewer = await service.viewer_for(direct())
    first = await service.get_or_create_session(direct())
    await service.set_title(first.session_id, "Plans", viewer)
    branch = await service.branch_session(first.session_key)
    assert branch is not None
    found = await service.find_title("Plans", viewer)
    assert found is not None
    assert found.id == first.session_id


async def test_many_generations_keep_one_current_session(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    for step in (service.branch_session, service.reset_session, service.branch_session) * 4:
        await step(first.session_key)
        await service.compress_session(first.session_key, [user_says("short")])
    assert len(await service.list_sessions()) == 1
    viewer = await service.viewer_for(direct())
    sessions = await service.list_own_sessions(viewer, limit=100)
    assert len(sessions) == 25
    assert sum(session.ended_at is None for session in sessions) == 1


async def test_branch_keeps_what_is_left_of_the_allowance(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.record_turn(entry.session_id, [{"role": "user", "content": "old"}] * 5)
    await service.reset_message_count(entry.session_key)
    await service.append_to_transcript(entry.session_id, {"role": "user", "content": "new"})
    branch = await service.branch_session(entry.session_key)
    assert branch is not None
    assert branch.message_count == 1
    assert len(await service.load_transcript(branch.session_id)) == 6


async def test_unknown_end_reason_is_refused(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    with pytest.raises(errors.InvalidInput, match="bored"):
        await service.end_session(entry.session_id, "bored")  # type: ignore[arg-type]
    assert await service.close_session(entry.session_id)


async def test_branch_knows_the_turns_of_its_parent(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    turn = [user_says("one"), agent_says("uno")]
    await service.record_turn(entry.session_id, turn, turn_id="t1")
    branch = await service.branch_session(entry.session_key)
    assert branch is not None
    assert await service.record_turn(branch.session_id, turn, turn_id="t1") == 0
    assert await service.load_transcript(branch.session_id) == turn
