"""What happens to sessions by name: used, reset, switched, suspended, marked, pruned."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from frontdesk import (
    EndReason,
    GatewayConfig,
    ResetMode,
    SessionEntry,
    SessionResetPolicy,
    SessionStore,
    errors,
)
from frontdesk.testing import SettableClock
from tests.contracts.conftest import HasActiveProcesses, OpenSessionStore
from tests.contracts.samples import (
    LASTING,
    UNKNOWN_ID,
    UNKNOWN_KEY,
    agent_says,
    direct,
    flags_of,
    in_group,
    in_thread,
    user_says,
    with_policy,
)


async def current(service: SessionStore, entry: SessionEntry) -> SessionEntry:
    found = await service.get_session(entry.session_key)
    assert found is not None
    return found


async def end_of(service: SessionStore, entry: SessionEntry) -> EndReason | None:
    assert entry.origin is not None
    found = await service.find_session(entry.session_id, await service.viewer_for(entry.origin))
    assert found is not None
    return found.reason


# update_session


async def test_update_adds_counters_and_counts_as_activity(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    clock.advance(minutes=1)
    await service.update_session(
        entry.session_key, 10, 20, 3, 4, last_prompt_tokens=50, estimated_cost_usd=0.25, cost_status="exact"
    )
    await service.update_session(entry.session_key, input_tokens=1, output_tokens=2)
    after = await current(service, entry)
    assert (after.input_tokens, after.output_tokens, after.total_tokens) == (11, 22, 33)
    assert (after.cache_read_tokens, after.cache_write_tokens) == (3, 4)
    assert (after.estimated_cost_usd, after.cost_status) == (0.25, "exact")
    assert (after.last_prompt_tokens, after.updated_at) == (50, clock.now())


async def test_update_replaces_the_prompt_size_only_when_given(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.update_session(entry.session_key, last_prompt_tokens=70)
    await service.update_session(entry.session_key)
    assert (await current(service, entry)).last_prompt_tokens == 70
    await service.update_session(entry.session_key, last_prompt_tokens=0)
    assert (await current(service, entry)).last_prompt_tokens == 0


NO_AMOUNTS: list[dict[str, Any]] = [
    {"input_tokens": -1},
    {"output_tokens": 1.5},
    {"cache_read_tokens": True},
    {"last_prompt_tokens": -3},
    {"estimated_cost_usd": float("nan")},
    {"estimated_cost_usd": -0.1},
    {"cost_status": "Bad\x00"},
    {"input_tokens": 2**63},
]


async def test_update_refuses_what_is_no_amount(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    for usage in NO_AMOUNTS:
        with pytest.raises(errors.InvalidInput):
            await service.update_session(entry.session_key, **usage)
    assert await current(service, entry) == entry


# reset_session


async def test_reset_starts_a_session_that_carries_the_conversation_s_facts(
    service: SessionStore, clock: SettableClock
) -> None:
    old = await service.get_or_create_session(in_thread())
    await service.record_turn(old.session_id, [user_says(), agent_says()])
    await service.update_session(old.session_key, input_tokens=5, last_prompt_tokens=9)
    await service.set_model_override(old.session_key, {"model": "large"})
    await service.mark_resume_pending(old.session_key)
    clock.advance(minutes=1)
    fresh = await service.reset_session(old.session_key)
    assert fresh is not None
    assert fresh == SessionEntry(
        session_key=old.session_key,
        session_id=fresh.session_id,
        created_at=clock.now(),
        updated_at=clock.now(),
        origin=old.origin,
        display_name=old.display_name,
        platform=old.platform,
        chat_type=old.chat_type,
        is_fresh_reset=True,
    )
    assert fresh.session_id != old.session_id
    assert await current(service, fresh) == fresh
    assert await end_of(service, old) is EndReason.NEW
    assert len(await service.load_transcript(old.session_id)) == 2


async def test_reset_takes_a_new_display_name(service: SessionStore) -> None:
    old = await service.get_or_create_session(direct())
    fresh = await service.reset_session(old.session_key, display_name="Plans")
    assert fresh is not None
    assert fresh.display_name == "Plans"


async def test_reset_by_hand_sets_no_automatic_flags_even_when_the_policy_would(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(idle_minutes=1))
    old = await service.get_or_create_session(direct())
    await service.record_turn(old.session_id, [user_says(), agent_says()])
    clock.advance(days=3)
    fresh = await service.reset_session(old.session_key)
    assert fresh is not None
    assert (fresh.was_auto_reset, fresh.auto_reset_reason, fresh.reset_had_activity) == (False, None, False)


async def test_session_after_a_reset_is_not_the_old_one_again(service: SessionStore) -> None:
    old = await service.get_or_create_session(direct())
    fresh = await service.reset_session(old.session_key)
    assert fresh is not None
    assert (await service.get_or_create_session(direct())).session_id == fresh.session_id


# the reset flags


async def test_flags_of_an_automatic_reset_are_taken_once(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    config = with_policy(mode=ResetMode.IDLE, idle_minutes=1)
    service = await open_session_store(config)
    old = await service.get_or_create_session(direct())
    await service.record_turn(old.session_id, [user_says(), agent_says()])
    clock.advance(minutes=2)
    fresh = await service.get_or_create_session(direct())
    again = await service.get_or_create_session(direct())
    assert (again.was_auto_reset, again.auto_reset_reason) == (True, EndReason.IDLE)
    taken = await service.consume_reset(fresh.session_key)
    assert taken == again
    assert await service.consume_reset(fresh.session_key) is None
    left = await current(service, fresh)
    assert flags_of(left) == []
    assert left.auto_reset_reason is None
    await service.close()
    service = await open_session_store(config)
    assert await service.consume_reset(fresh.session_key) is None
    assert await current(service, fresh) == left


async def test_flag_of_a_fresh_reset_survives_a_restart_until_it_is_taken(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(LASTING)
    old = await service.get_or_create_session(direct())
    await service.reset_session(old.session_key)
    await service.close()
    service = await open_session_store(LASTING)
    taken = await service.consume_reset(old.session_key)
    assert taken is not None
    assert (taken.is_fresh_reset, taken.was_auto_reset) == (True, False)
    assert not (await current(service, old)).is_fresh_reset


async def test_closing_and_resuming_keeps_flags_that_no_turn_has_taken(service: SessionStore) -> None:
    old = await service.get_or_create_session(direct())
    fresh = await service.reset_session(old.session_key)
    assert fresh is not None
    await service.mark_resume_pending(fresh.session_key)
    await service.close_session(fresh.session_id)
    resumed = await service.get_or_create_session(direct())
    assert (resumed.is_fresh_reset, resumed.resume_pending) == (True, True)


# switch_session


async def test_switch_ends_the_current_session_and_reopens_the_target(
    service: SessionStore, clock: SettableClock
) -> None:
    target = await service.get_or_create_session(direct())
    await service.record_turn(target.session_id, [user_says(), agent_says()])
    left = await service.reset_session(target.session_key)
    assert left is not None
    clock.advance(hours=1)
    back = await service.switch_session(target.session_key, target.session_id)
    assert back is not None
    assert (back.session_id, back.created_at) == (target.session_id, target.created_at)
    assert (back.updated_at, back.message_count) == (clock.now(), 0)
    assert await current(service, target) == back
    assert await end_of(service, left) is EndReason.SWITCH
    assert await end_of(service, target) is None
    assert await service.load_transcript(target.session_id) == [user_says(), agent_says()]


async def test_switch_clears_marks_and_flags_of_the_target(
    service: SessionStore, clock: SettableClock
) -> None:
    old = await service.get_or_create_session(direct())
    target = await service.reset_session(old.session_key)
    assert target is not None
    await service.mark_resume_pending(target.session_key)
    await service.suspend_session(target.session_key)
    await service.mark_expiry_finalized(target.session_key)
    await service.switch_session(old.session_key, old.session_id)
    back = await service.switch_session(target.session_key, target.session_id)
    assert back is not None
    assert flags_of(back) == []
    assert (back.resume_reason, back.last_resume_marked_at) == (None, None)
    assert (await service.get_or_create_session(direct())).session_id == target.session_id


async def test_switch_to_the_current_session_returns_it_untouched(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    await service.append_to_transcript(entry.session_id, user_says())
    await service.mark_resume_pending(entry.session_key)
    before = await current(service, entry)
    clock.advance(hours=1)
    assert await service.switch_session(entry.session_key, entry.session_id) == before
    assert await current(service, entry) == before


async def test_switched_session_is_judged_from_now_on(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(max_messages=2))
    old = await service.get_or_create_session(direct())
    await service.record_turn(old.session_id, [user_says(), agent_says()])
    clock.advance(days=10)
    await service.get_or_create_session(direct())
    await service.switch_session(old.session_key, old.session_id)
    clock.advance(minutes=1)
    kept = await service.get_or_create_session(direct())
    assert (kept.session_id, kept.was_auto_reset) == (old.session_id, False)


async def test_switch_to_an_unknown_session_changes_nothing(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    clock.advance(hours=1)
    assert await service.switch_session(entry.session_key, UNKNOWN_ID) is None
    assert await current(service, entry) == entry


async def test_forgotten_session_is_never_reopened(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.end_session(entry.session_id, EndReason.FORGOTTEN)
    assert await service.switch_session(entry.session_key, entry.session_id) is None
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != entry.session_id
    assert await service.switch_session(entry.session_key, entry.session_id) is None
    assert await service.peek_session_id(entry.session_key) == fresh.session_id


async def test_session_is_current_for_one_key_only(service: SessionStore) -> None:
    ann = await service.get_or_create_session(direct("ann"))
    crowd = await service.get_or_create_session(in_group("ann"))
    taken = await service.switch_session(crowd.session_key, ann.session_id)
    assert taken is not None
    assert (taken.session_id, taken.session_key) == (ann.session_id, crowd.session_key)
    assert await service.peek_session_id(crowd.session_key) == ann.session_id
    assert await service.peek_session_id(ann.session_key) is None
    assert [entry.session_id for entry in await service.list_sessions()] == [ann.session_id]
    fresh = await service.get_or_create_session(direct("ann"))
    assert fresh.session_id not in (ann.session_id, crowd.session_id)


async def test_session_taken_into_another_chat_follows_that_chat_s_rules(
    open_session_store: OpenSessionStore,
) -> None:
    policies = {"dm": SessionResetPolicy(max_messages=10), "group": SessionResetPolicy(max_messages=20)}
    service = await open_session_store(GatewayConfig(reset_by_type=policies))
    ann = await service.get_or_create_session(direct("ann"))
    crowd = await service.get_or_create_session(in_group("ann"))
    taken = await service.switch_session(crowd.session_key, ann.session_id)
    assert taken is not None
    assert (taken.origin, taken.platform, taken.chat_type) == (crowd.origin, crowd.platform, crowd.chat_type)
    assert (taken.display_name, taken.created_at) == (ann.display_name, ann.created_at)
    assert (await service.get_message_limit_info(crowd.session_key))["max_messages"] == 20
    await service.close()
    service = await open_session_store(GatewayConfig(reset_by_type=policies))
    assert await service.get_session(crowd.session_key) == taken


async def test_manual_commands_ask_nobody_about_background_work(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(LASTING, has_active_processes_fn=lambda _: True)
    first = await service.get_or_create_session(direct())
    second = await service.reset_session(first.session_key)
    assert second is not None
    assert second.session_id != first.session_id
    back = await service.switch_session(first.session_key, first.session_id)
    assert back is not None
    assert back.session_id == first.session_id
    fresh = await service.get_or_create_session(direct(), force_new=True)
    assert fresh.session_id not in (first.session_id, second.session_id)


# suspend and resume marks


async def test_suspending_is_told_once(service: SessionStore, clock: SettableClock) -> None:
    entry = await service.get_or_create_session(direct())
    clock.advance(minutes=1)
    assert await service.suspend_session(entry.session_key)
    assert not await service.suspend_session(entry.session_key)
    after = await current(service, entry)
    assert (after.suspended, after.updated_at) == (True, entry.updated_at)


async def test_mark_is_never_put_over_a_suspension(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await service.suspend_session(entry.session_key)
    assert not await service.mark_resume_pending(entry.session_key)
    after = await current(service, entry)
    assert (after.suspended, after.resume_pending, after.resume_reason) == (True, False, None)


async def test_mark_carries_its_reason_and_time(service: SessionStore, clock: SettableClock) -> None:
    entry = await service.get_or_create_session(direct())
    clock.advance(minutes=1)
    assert await service.mark_resume_pending(entry.session_key, reason="shutdown_timeout")
    after = await current(service, entry)
    assert (after.resume_pending, after.resume_reason) == (True, "shutdown_timeout")
    assert (after.last_resume_marked_at, after.updated_at) == (clock.now(), entry.updated_at)


async def test_clearing_the_mark_takes_reason_and_time_with_it(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    assert not await service.clear_resume_pending(entry.session_key)
    await service.mark_resume_pending(entry.session_key)
    assert await service.clear_resume_pending(entry.session_key)
    assert await current(service, entry) == entry
    assert not await service.clear_resume_pending(entry.session_key)


async def test_marks_survive_a_restart(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(LASTING)
    ann = await service.get_or_create_session(direct("ann"))
    bob = await service.get_or_create_session(direct("bob"))
    await service.mark_resume_pending(ann.session_key)
    await service.suspend_session(bob.session_key)
    before = [await current(service, ann), await current(service, bob)]
    await service.close()
    service = await open_session_store(LASTING)
    assert [await current(service, ann), await current(service, bob)] == before


async def test_crash_marks_recently_active_sessions(service: SessionStore, clock: SettableClock) -> None:
    quiet = await service.get_or_create_session(direct("quiet"))
    clock.advance(seconds=1)
    recent = await service.get_or_create_session(direct("recent"))
    clock.advance(seconds=120)
    assert await service.suspend_recently_active() == 1
    marked = await current(service, recent)
    assert (marked.resume_pending, marked.resume_reason) == (True, "restart_interrupted")
    assert (marked.last_resume_marked_at, marked.updated_at) == (clock.now(), recent.updated_at)
    assert await current(service, quiet) == quiet
    assert await service.suspend_recently_active(max_age_seconds=121) == 1
    assert (await current(service, quiet)).resume_pending


async def test_crash_leaves_suspended_marked_and_ended_sessions_alone(
    service: SessionStore, clock: SettableClock
) -> None:
    suspended = await service.get_or_create_session(direct("suspended"))
    await service.suspend_session(suspended.session_key)
    marked = await service.get_or_create_session(direct("marked"))
    await service.mark_resume_pending(marked.session_key, "earlier")
    ended = await service.get_or_create_session(direct("ended"))
    await service.end_session(ended.session_id, EndReason.NEW)
    replaced = await service.get_or_create_session(direct("replaced"))
    await service.close_session(replaced.session_id)
    before = [await current(service, entry) for entry in (suspended, marked, ended, replaced)]
    clock.advance(seconds=5)
    assert await service.suspend_recently_active() == 0
    assert [await current(service, entry) for entry in (suspended, marked, ended, replaced)] == before


async def test_repeated_crashes_never_keep_a_dead_session_fresh(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    for _ in range(7):
        await service.suspend_recently_active(max_age_seconds=7200)
        clock.advance(minutes=10)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != entry.session_id
    assert fresh.auto_reset_reason is EndReason.RESUME_PENDING_EXPIRED


async def test_successful_turn_lets_the_session_be_marked_anew(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    await service.suspend_recently_active()
    await service.clear_resume_pending(entry.session_key)
    clock.advance(seconds=60)
    assert await service.suspend_recently_active() == 1
    assert (await current(service, entry)).last_resume_marked_at == clock.now()


# prune_old_entries


async def test_prune_forgets_keys_by_their_last_activity(service: SessionStore, clock: SettableClock) -> None:
    old = await service.get_or_create_session(direct("old"))
    used = await service.get_or_create_session(direct("used"))
    clock.advance(days=20)
    await service.update_session(used.session_key)
    clock.advance(days=10, microseconds=1)
    assert await service.prune_old_entries(30) == 1
    assert await service.get_session(old.session_key) is None
    assert await service.peek_session_id(used.session_key) == used.session_id
    assert await end_of(service, old) is EndReason.PRUNED
    assert await service.prune_old_entries(30) == 0


async def test_pruned_session_does_not_come_back(service: SessionStore, clock: SettableClock) -> None:
    old = await service.get_or_create_session(direct())
    await service.append_to_transcript(old.session_id, user_says())
    clock.advance(days=31)
    await service.prune_old_entries(30)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != old.session_id
    assert flags_of(fresh) == []
    assert await service.load_transcript(old.session_id) == [user_says()]


async def test_closed_session_that_was_pruned_does_not_come_back(
    service: SessionStore, clock: SettableClock
) -> None:
    old = await service.get_or_create_session(direct())
    await service.close_session(old.session_id)
    clock.advance(days=31)
    assert await service.prune_old_entries(30) == 1
    assert (await service.get_or_create_session(direct())).session_id != old.session_id


async def test_pruned_session_can_still_be_resumed_by_name(
    service: SessionStore, clock: SettableClock
) -> None:
    old = await service.get_or_create_session(direct())
    clock.advance(days=31)
    await service.prune_old_entries(30)
    await service.get_or_create_session(direct())
    back = await service.switch_session(old.session_key, old.session_id)
    assert back is not None
    assert back.session_id == old.session_id


async def test_prune_keeps_forgotten_sessions_forgotten(service: SessionStore, clock: SettableClock) -> None:
    old = await service.get_or_create_session(direct())
    await service.end_session(old.session_id, EndReason.FORGOTTEN)
    clock.advance(days=31)
    await service.prune_old_entries(30)
    await service.get_or_create_session(direct())
    assert await service.switch_session(old.session_key, old.session_id) is None


async def test_prune_keeps_suspended_and_busy_sessions(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(LASTING, has_active_processes_fn=lambda key: key.endswith("chat-busy"))
    entries = [await service.get_or_create_session(direct(name)) for name in ("busy", "suspended", "idle")]
    await service.suspend_session(entries[1].session_key)
    clock.advance(days=2)
    assert await service.prune_old_entries(1) == 1
    assert [await service.peek_session_id(entry.session_key) for entry in entries] == [
        entries[0].session_id,
        entries[1].session_id,
        None,
    ]


async def test_prune_can_be_off(service: SessionStore, clock: SettableClock) -> None:
    entry = await service.get_or_create_session(direct())
    clock.advance(days=5000)
    for days in (0, -1, -0.5):
        assert await service.prune_old_entries(days) == 0
    assert await service.peek_session_id(entry.session_key) == entry.session_id


# has_active_processes_fn


async def answer(busy: bool) -> bool:
    return busy


def fail(key: str) -> bool:
    raise RuntimeError(key)


BUSY: dict[str, HasActiveProcesses] = {
    "sync": lambda _: True,
    "async": lambda _: answer(True),
    "failing": fail,
}


@pytest.mark.parametrize("kind", BUSY)
async def test_background_work_holds_back_the_policy_and_pruning(
    open_session_store: OpenSessionStore, clock: SettableClock, kind: str
) -> None:
    policy = with_policy(max_messages=1)
    service = await open_session_store(policy, has_active_processes_fn=BUSY[kind])
    entry = await service.get_or_create_session(direct())
    await service.append_to_transcript(entry.session_id, user_says())
    clock.advance(days=40)
    assert await service.prune_old_entries(30) == 0
    assert await service.reset_reason(await current(service, entry)) is None
    kept = await service.get_or_create_session(direct())
    assert (kept.session_id, kept.updated_at) == (entry.session_id, clock.now())


@pytest.mark.parametrize("busy", [lambda _: False, lambda _: answer(False)])
async def test_without_background_work_the_policy_decides(
    open_session_store: OpenSessionStore, clock: SettableClock, busy: Any
) -> None:
    service = await open_session_store(with_policy(), has_active_processes_fn=busy)
    entry = await service.get_or_create_session(direct())
    clock.advance(days=40)
    assert await service.reset_reason(entry) is EndReason.IDLE
    assert (await service.get_or_create_session(direct())).auto_reset_reason is EndReason.IDLE


async def test_background_work_is_asked_about_by_key(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    asked: list[str] = []

    def ask(key: str) -> bool:
        asked.append(key)
        return False

    service = await open_session_store(with_policy(), has_active_processes_fn=ask)
    entry = await service.get_or_create_session(direct())
    assert asked == []
    clock.advance(days=40)
    await service.get_or_create_session(direct())
    assert set(asked) == {entry.session_key}


async def test_failing_question_about_background_work_is_logged(
    open_session_store: OpenSessionStore, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    service = await open_session_store(with_policy(), has_active_processes_fn=BUSY["failing"])
    entry = await service.get_or_create_session(direct())
    clock.advance(days=40)
    await service.get_or_create_session(direct())
    assert "has_active_processes_failed" in caplog.text
    assert entry.session_key in caplog.text


# background work that somebody told of


async def test_background_work_that_was_told_of_holds_back_the_policy_and_pruning(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(max_messages=1))
    entry = await service.get_or_create_session(direct())
    other = await service.get_or_create_session(direct("other"))
    await service.append_to_transcript(entry.session_id, user_says())
    clock.advance(days=40)
    await service.begin_background(entry.session_key, "build")
    assert await service.prune_old_entries(30) == 1
    assert await service.get_session(other.session_key) is None
    assert await service.reset_reason(await current(service, entry)) is None
    assert (await service.get_or_create_session(direct())).session_id == entry.session_id
    assert await service.end_background(entry.session_key, "build")
    assert await service.reset_reason(await current(service, entry)) is EndReason.MESSAGE_LIMIT


async def test_background_work_survives_the_service_and_ends_with_its_time(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy())
    entry = await service.get_or_create_session(direct())
    clock.advance(days=2)
    await service.begin_background(entry.session_key, seconds=600)
    clock.advance(seconds=300)
    await service.begin_background(entry.session_key, seconds=600)
    await service.close()
    again = await open_session_store(with_policy())
    clock.advance(seconds=599)
    assert await again.is_busy(entry.session_key)
    clock.advance(seconds=1)
    assert not await again.is_busy(entry.session_key)
    assert (await again.get_or_create_session(direct())).auto_reset_reason is EndReason.IDLE


async def test_works_of_a_conversation_end_one_by_one(service: SessionStore, clock: SettableClock) -> None:
    entry = await service.get_or_create_session(direct())
    for name in ("build", "tests"):
        await service.begin_background(entry.session_key, name)
    assert [work.name for work in await service.store.background.list(clock.now(), 10)] == ["build", "tests"]
    assert await service.end_background(entry.session_key, "build")
    assert not await service.end_background(entry.session_key, "build")
    assert await service.is_busy(entry.session_key)
    assert await service.end_background(entry.session_key, "tests")
    assert not await service.is_busy(entry.session_key)


async def test_background_work_never_holds_back_a_suspension_or_an_expired_mark_or_a_command(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE))
    entry = await service.get_or_create_session(direct())
    await service.begin_background(entry.session_key, seconds=24 * 3600)
    await service.suspend_session(entry.session_key)
    second = await service.get_or_create_session(direct())
    assert second.auto_reset_reason is EndReason.SUSPENDED
    await service.mark_resume_pending(entry.session_key)
    clock.advance(hours=2)
    third = await service.get_or_create_session(direct())
    assert third.auto_reset_reason is EndReason.RESUME_PENDING_EXPIRED
    fourth = await service.reset_session(entry.session_key)
    assert fourth
    assert fourth.session_id != third.session_id


@pytest.mark.parametrize(
    "wrong", [{"seconds": 0}, {"seconds": 8 * 24 * 3600}, {"name": " "}, {"name": "x" * 101}]
)
async def test_background_work_has_a_name_and_a_bound(service: SessionStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        await service.begin_background("agent:main:matrix:dm:1", **wrong)


# reset_reason


async def test_reset_reason_is_the_policy_s_and_changes_nothing(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(max_messages=1))
    entry = await service.get_or_create_session(direct())
    assert await service.reset_reason(entry) is None
    await service.append_to_transcript(entry.session_id, user_says())
    full = await current(service, entry)
    assert await service.reset_reason(full) is EndReason.MESSAGE_LIMIT
    clock.advance(hours=17)
    assert await service.reset_reason(full) is EndReason.DAILY
    clock.advance(days=1)
    assert await service.reset_reason(full) is EndReason.IDLE
    assert await current(service, entry) == full


async def test_reset_reason_uses_the_source_when_there_is_one(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    hasty = with_policy(mode=ResetMode.IDLE, idle_minutes=1).default_reset_policy
    config = GatewayConfig(default_reset_policy=LASTING.default_reset_policy, reset_by_type={"group": hasty})
    service = await open_session_store(config)
    private = await service.get_or_create_session(direct())
    crowd = await service.get_or_create_session(in_group())
    clock.advance(minutes=2)
    assert await service.reset_reason(private) is None
    assert await service.reset_reason(private, in_group()) is EndReason.IDLE
    assert await service.reset_reason(crowd) is EndReason.IDLE
    assert await service.reset_reason(crowd, direct()) is None


# reading


async def test_lists_are_newest_first(service: SessionStore, clock: SettableClock) -> None:
    entries = []
    for name in ("ann", "bob", "cid"):
        entries.append(await service.get_or_create_session(direct(name)))
        clock.advance(minutes=10)
    await service.update_session(entries[1].session_key)
    listed = await service.list_sessions()
    assert [entry.session_id for entry in listed] == [entries[i].session_id for i in (1, 2, 0)]
    active = await service.list_sessions(active_minutes=15)
    assert [entry.session_id for entry in active] == [entries[i].session_id for i in (1, 2)]
    assert await service.list_sessions(limit=1) == listed[:1]
    assert await service.list_sessions(limit=9, after=listed[0]) == listed[1:]


async def test_list_can_be_read_in_pages(service: SessionStore, clock: SettableClock) -> None:
    for number in range(25):
        clock.advance(seconds=number % 3 and 20)
        await service.get_or_create_session(direct(f"user-{number}"))
    whole = await service.list_sessions()
    pages: list[SessionEntry] = []
    while page := await service.list_sessions(limit=4, after=pages[-1] if pages else None):
        pages += page
    assert pages == whole
    assert len(whole) == 25


async def test_list_holds_each_key_s_current_session_once(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    second = await service.reset_session(first.session_key)
    assert await service.list_sessions() == [second]


async def test_lookup_finds_a_session_by_its_id(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    assert await service.lookup_by_session_id(entry.session_id) == entry
    assert await service.lookup_by_session_id(UNKNOWN_ID) is None


async def test_peek_gives_the_current_id(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    assert await service.peek_session_id(entry.session_key) == entry.session_id


async def test_very_first_conversation_has_no_other_sessions(service: SessionStore) -> None:
    assert not await service.has_any_sessions()
    entry = await service.get_or_create_session(direct())
    assert not await service.has_any_sessions()
    await service.get_or_create_session(direct())
    assert not await service.has_any_sessions()
    await service.reset_session(entry.session_key)
    assert await service.has_any_sessions()


async def test_ended_sessions_count_as_ever_created(service: SessionStore, clock: SettableClock) -> None:
    for name in ("ann", "bob"):
        await service.get_or_create_session(direct(name))
    clock.advance(days=9)
    await service.prune_old_entries(1)
    assert await service.list_sessions() == []
    assert await service.has_any_sessions()


async def test_reading_never_counts_as_activity_nor_resets(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(idle_minutes=1, max_messages=1))
    entry = await service.get_or_create_session(direct())
    await service.append_to_transcript(entry.session_id, user_says("needle", platform_message_id="1"))
    viewer = await service.viewer_for(direct())
    await service.set_title(entry.session_id, "Plans", viewer)
    await service.mark_resume_pending(entry.session_key)
    before = await current(service, entry)
    clock.advance(days=9)
    key, session_id = entry.session_key, entry.session_id
    await service.list_sessions()
    await service.list_sessions(active_minutes=5)
    await service.peek_session_id(key)
    await service.lookup_by_session_id(session_id)
    await service.has_any_sessions()
    await service.get_model_override(key)
    await service.get_message_limit_info(key)
    await service.get_message_count(key)
    await service.explain(direct())
    await service.reset_reason(before, direct())
    await service.is_session_finalizable(before)
    await service.load_transcript(session_id, include_ancestors=True)
    await service.list_revisions(session_id)
    await service.has_platform_message_id(session_id, "1")
    await service.find_session(session_id, viewer)
    await service.find_title("Plans", viewer)
    await service.follow_lineage(session_id, viewer)
    await service.list_own_sessions(viewer)
    await service.search("needle", viewer)
    await service.session_key_for(direct())
    assert await service.get_session(key) == before
    assert await service.lookup_by_session_id(session_id) == before


# unknown keys


async def test_unknown_key_gives_nothing(service: SessionStore) -> None:
    assert await service.get_session(UNKNOWN_KEY) is None
    assert await service.reset_session(UNKNOWN_KEY) is None
    assert await service.branch_session(UNKNOWN_KEY) is None
    assert await service.compress_session(UNKNOWN_KEY, [user_says()]) is None
    assert await service.switch_session(UNKNOWN_KEY, UNKNOWN_ID) is None
    assert await service.peek_session_id(UNKNOWN_KEY) is None
    assert await service.lookup_by_session_id(UNKNOWN_ID) is None
    assert await service.get_model_override(UNKNOWN_KEY) is None
    assert await service.consume_reset(UNKNOWN_KEY) is None
    assert await service.suspend_session(UNKNOWN_KEY) is False
    assert await service.mark_resume_pending(UNKNOWN_KEY) is False
    assert await service.clear_resume_pending(UNKNOWN_KEY) is False
    assert await service.mark_expiry_finalized(UNKNOWN_KEY) is False
    await service.update_session(UNKNOWN_KEY, input_tokens=1)
    await service.set_model_override(UNKNOWN_KEY, {"model": "m"})
    await service.reset_message_count(UNKNOWN_KEY)
    assert await service.list_sessions() == []
    assert not await service.has_any_sessions()


async def test_unknown_key_cannot_take_a_known_session(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    assert await service.switch_session(UNKNOWN_KEY, entry.session_id) is None
    assert await service.peek_session_id(entry.session_key) == entry.session_id


# model override


async def test_model_override_keeps_three_texts_and_nothing_else(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    assert await service.get_model_override(entry.session_key) is None
    override = {"model": " large ", "provider": "acme", "base_url": "https://models.example/v1"}
    await service.set_model_override(entry.session_key, override | {"api_key": "sk-secret", "token": "t"})
    kept = override | {"model": "large"}
    assert await service.get_model_override(entry.session_key) == kept
    assert (await current(service, entry)).model_override == kept


NOTHING: list[dict[str, Any] | None] = [
    None,
    {},
    {"model": ""},
    {"model": "  "},
    {"model": 5, "api_key": "sk"},
    {"provider": None},
]


async def test_model_override_with_nothing_left_is_cleared(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    for nothing in NOTHING:
        await service.set_model_override(entry.session_key, {"model": "large"})
        await service.set_model_override(entry.session_key, nothing)
        assert await service.get_model_override(entry.session_key) is None


async def test_model_override_survives_restarts_and_continuations_and_dies_with_its_session(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    await service.set_model_override(entry.session_key, {"model": "large"})
    await service.close()
    service = await open_session_store(LASTING)
    assert await service.get_model_override(entry.session_key) == {"model": "large"}
    for step in (service.branch_session, partial(service.compress_session, transcript=[])):
        await step(entry.session_key)
        assert await service.get_model_override(entry.session_key) == {"model": "large"}
    await service.reset_session(entry.session_key)
    assert await service.get_model_override(entry.session_key) is None


async def test_setting_a_model_is_no_activity_of_the_conversation(
    service: SessionStore, clock: SettableClock
) -> None:
    entry = await service.get_or_create_session(direct())
    clock.advance(hours=1)
    await service.set_model_override(entry.session_key, {"model": "large"})
    assert (await current(service, entry)).updated_at == entry.updated_at


# finalizing


@pytest.mark.parametrize(
    ("mode", "expires"), [("both", True), ("daily", True), ("idle", True), ("none", False)]
)
async def test_only_time_makes_a_session_finalizable(
    open_session_store: OpenSessionStore, mode: str, expires: bool
) -> None:
    service = await open_session_store(with_policy(mode=mode, max_messages=1))
    entry = await service.get_or_create_session(direct())
    assert await service.is_session_finalizable(entry) is expires


async def test_expiry_is_recorded_once_and_survives_a_restart(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(direct())
    assert await service.mark_expiry_finalized(entry.session_key)
    assert not await service.mark_expiry_finalized(entry.session_key)
    await service.close()
    service = await open_session_store(LASTING)
    assert (await current(service, entry)).expiry_finalized
    assert not await service.mark_expiry_finalized(entry.session_key)


async def test_every_fact_survives_a_restart(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    clock.advance(timedelta(microseconds=123_457))
    service = await open_session_store(LASTING)
    entry = await service.get_or_create_session(in_thread(chat_topic="日本", scope_id="s", message_id="m"))
    await service.record_turn(entry.session_id, [user_says(), agent_says()])
    await service.update_session(entry.session_key, 1, 2, 3, 4, 5, 0.1, "exact")
    await service.set_model_override(entry.session_key, {"model": "large"})
    await service.mark_resume_pending(entry.session_key, "why\x00not")
    before = await current(service, entry)
    await service.close()
    service = await open_session_store(LASTING)
    assert await current(service, entry) == before
