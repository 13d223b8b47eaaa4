"""Which session a message belongs to."""

import re
import secrets
from datetime import timedelta

import pytest

from frontdesk import (
    ChatType,
    EndReason,
    GatewayConfig,
    Platform,
    ResetMode,
    SessionSource,
    SessionStore,
    errors,
)
from frontdesk.testing import SettableClock
from tests.contracts.conftest import EditStore, OpenSessionStore
from tests.contracts.samples import (
    LASTING,
    agent_says,
    direct,
    flags_of,
    in_group,
    in_thread,
    tool_answers,
    user_says,
    with_policy,
)

SESSION_ID = re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}")
NO_DAILY = with_policy(mode=ResetMode.IDLE, idle_minutes=60)
ENDED_BY_A_PERSON = [
    EndReason.NEW,
    EndReason.SWITCH,
    EndReason.BRANCH,
    EndReason.COMPRESSED,
    EndReason.PRUNED,
    EndReason.FORGOTTEN,
]
ENDED_BY_THE_GATEWAY = [
    EndReason.IDLE,
    EndReason.DAILY,
    EndReason.MESSAGE_LIMIT,
    EndReason.TOKEN_LIMIT,
    EndReason.COST_LIMIT,
    EndReason.TIME_LIMIT,
    EndReason.SPIRAL,
]


async def test_first_message_creates_a_session_with_the_source_s_facts(
    service: SessionStore, clock: SettableClock
) -> None:
    source = in_group(chat_name="The crowd", scope_id="guild", message_id="17")
    entry = await service.get_or_create_session(source)
    assert entry.session_key == "agent:main:telegram:group:crowd:ann"
    assert entry.origin == source
    assert (entry.display_name, entry.platform, entry.chat_type) == ("The crowd", Platform.TELEGRAM, "group")
    assert entry.created_at == entry.updated_at == clock.now()
    assert (entry.message_count, entry.total_tokens, entry.last_prompt_tokens) == (0, 0, 0)
    assert (entry.estimated_cost_usd, entry.cost_status) == (0.0, "unknown")
    assert flags_of(entry) == []
    assert (entry.auto_reset_reason, entry.resume_reason, entry.model_override) == (None, None, None)
    assert await service.get_session(entry.session_key) == entry


async def test_session_id_is_time_and_eight_hex_digits(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    assert SESSION_ID.fullmatch(entry.session_id)
    assert entry.session_id.startswith("20260105_120000_")


async def test_session_id_collision_is_retried(
    service: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["aaaaaaaa", "aaaaaaaa", "aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(drawn))
    first = await service.get_or_create_session(direct("ann"))
    second = await service.get_or_create_session(direct("bob"))
    assert (first.session_id[-8:], second.session_id[-8:]) == ("aaaaaaaa", "bbbbbbbb")
    assert await service.peek_session_id(first.session_key) == first.session_id


async def test_next_message_finds_the_same_session_and_counts_as_activity(
    service: SessionStore, clock: SettableClock
) -> None:
    first = await service.get_or_create_session(direct())
    clock.advance(days=3)
    again = await service.get_or_create_session(direct())
    assert again.session_id == first.session_id
    assert (again.created_at, again.updated_at) == (first.created_at, clock.now())
    assert await service.get_session(first.session_key) == again


async def test_people_of_a_group_have_sessions_of_their_own(service: SessionStore) -> None:
    ann = await service.get_or_create_session(in_group("ann"))
    bob = await service.get_or_create_session(in_group("bob"))
    private = await service.get_or_create_session(direct("ann"))
    assert len({ann.session_id, bob.session_id, private.session_id}) == 3


async def test_people_of_a_thread_share_its_session(service: SessionStore) -> None:
    ann = await service.get_or_create_session(in_thread("ann"))
    bob = await service.get_or_create_session(in_thread("bob"))
    other = await service.get_or_create_session(in_thread("bob", "another"))
    assert ann.session_id == bob.session_id != other.session_id


async def test_settings_decide_about_sharing(open_session_store: OpenSessionStore) -> None:
    shared = GatewayConfig(group_sessions_per_user=False, thread_sessions_per_user=True)
    service = await open_session_store(shared)
    ann = await service.get_or_create_session(in_group("ann"))
    assert (await service.get_or_create_session(in_group("bob"))).session_id == ann.session_id
    in_topic = await service.get_or_create_session(in_thread("ann"))
    assert (await service.get_or_create_session(in_thread("bob"))).session_id == in_topic.session_id


async def test_threads_are_per_person_when_both_settings_say_so(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(GatewayConfig(thread_sessions_per_user=True))
    ann = await service.get_or_create_session(in_thread("ann"))
    bob = await service.get_or_create_session(in_thread("bob"))
    assert ann.session_id != bob.session_id


async def test_profile_selects_a_namespace_only_when_profiles_are_multiplexed(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(LASTING)
    assert (await service.session_key_for(direct(profile="work"))).startswith("agent:main:")
    await service.close()
    config = GatewayConfig(multiplex_profiles=True, active_profile="home")
    service = await open_session_store(config)
    work = await service.get_or_create_session(direct(profile="work"))
    home = await service.get_or_create_session(direct())
    assert work.session_key.startswith("agent:work:")
    assert home.session_key.startswith("agent:home:")
    assert work.session_id != home.session_id


async def test_event_without_an_address_is_refused(service: SessionStore) -> None:
    for chat_type in ChatType:
        with pytest.raises(errors.Unroutable):
            await service.get_or_create_session(SessionSource(platform=Platform.SIGNAL, chat_type=chat_type))
    assert await service.list_sessions() == []


async def test_local_source_needs_no_address(service: SessionStore) -> None:
    entry = await service.get_or_create_session(SessionSource(platform=Platform.LOCAL))
    assert entry.session_key == "agent:main:local:dm"


async def test_platform_ids_may_contain_anything(service: SessionStore) -> None:
    for chat_id in ("owner/repo", "<a@b>..c", "C:\\x", "nul\x00end", "日本語", "%2F", " ", "a:b"):
        entry = await service.get_or_create_session(direct(chat_id=chat_id))
        assert entry.origin is not None
        assert entry.origin.chat_id == chat_id
        assert await service.get_session(entry.session_key) == entry
    assert len(await service.list_sessions()) == 8


async def test_two_accounts_of_one_platform_never_share_a_session(service: SessionStore) -> None:
    ours = await service.get_or_create_session(direct(account="bot-1"))
    other = await service.get_or_create_session(direct(account="bot-2"))
    assert ours.session_id != other.session_id


# 2. the tip of a compression


async def test_key_of_a_compressed_session_goes_on_at_its_tip(
    open_session_store: OpenSessionStore, edit_store: EditStore, clock: SettableClock
) -> None:
    service = await open_session_store(LASTING)
    first = await service.get_or_create_session(direct())
    await service.compress_session(first.session_key, [user_says("short")])
    tip = await service.compress_session(first.session_key, [user_says("shorter")])
    assert tip is not None
    await service.close()
    await edit_store(f"UPDATE routes SET session_id = '{first.session_id}'")
    service = await open_session_store(LASTING)
    clock.advance(minutes=5)
    resolved = await service.get_or_create_session(direct())
    assert (resolved.session_id, resolved.updated_at) == (tip.session_id, clock.now())
    assert not resolved.was_auto_reset
    assert await service.peek_session_id(first.session_key) == tip.session_id


async def test_policy_judges_the_tip(
    open_session_store: OpenSessionStore, edit_store: EditStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    clock.advance(minutes=50)
    tip = await service.compress_session(first.session_key, [user_says("short")])
    assert tip is not None
    await service.close()
    await edit_store(f"UPDATE routes SET session_id = '{first.session_id}'")
    service = await open_session_store(NO_DAILY)
    clock.advance(minutes=30)
    assert (await service.get_or_create_session(direct())).session_id == tip.session_id


# 3. ended elsewhere


async def test_closed_session_is_resumed_by_the_next_message(
    service: SessionStore, clock: SettableClock
) -> None:
    first = await service.get_or_create_session(direct())
    await service.append_to_transcript(first.session_id, user_says())
    assert await service.close_session(first.session_id)
    clock.advance(hours=1)
    again = await service.get_or_create_session(direct())
    assert (again.session_id, again.created_at) == (first.session_id, first.created_at)
    assert (again.updated_at, again.message_count) == (clock.now(), 1)
    assert flags_of(again) == []
    assert await service.load_transcript(first.session_id) == [user_says()]
    assert not await service.close_session("20260101_000000_00000000")


async def test_resumed_session_can_be_closed_again(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    for _ in range(3):
        assert await service.close_session(first.session_id)
        assert not await service.close_session(first.session_id)
        assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_closed_session_that_reached_its_limit_starts_afresh(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=2))
    first = await service.get_or_create_session(direct())
    await service.record_turn(first.session_id, [user_says(), agent_says()])
    await service.close_session(first.session_id)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert fresh.auto_reset_reason is EndReason.MESSAGE_LIMIT


async def test_closed_session_that_was_suspended_starts_afresh(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.suspend_session(first.session_key)
    await service.close_session(first.session_id)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert fresh.auto_reset_reason is EndReason.SUSPENDED


async def test_closed_session_that_became_stale_starts_afresh(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    await service.close_session(first.session_id)
    clock.advance(minutes=61)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert fresh.auto_reset_reason is EndReason.IDLE


async def test_background_work_keeps_a_closed_session(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY, has_active_processes_fn=lambda _: True)
    first = await service.get_or_create_session(direct())
    await service.close_session(first.session_id)
    clock.advance(minutes=61)
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_session_that_a_person_ended_is_replaced_without_flags(service: SessionStore) -> None:
    for reason in ENDED_BY_A_PERSON:
        first = await service.get_or_create_session(direct())
        await service.record_turn(first.session_id, [user_says(), agent_says()])
        assert await service.end_session(first.session_id, reason)
        fresh = await service.get_or_create_session(direct())
        assert fresh.session_id != first.session_id
        assert flags_of(fresh) == []
        assert (fresh.auto_reset_reason, fresh.message_count) == (None, 0)
        assert len(await service.load_transcript(first.session_id)) == 2


async def test_session_ended_elsewhere_is_logged_when_it_is_replaced(
    service: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first = await service.get_or_create_session(direct())
    await service.end_session(first.session_id, EndReason.NEW)
    caplog.clear()
    await service.get_or_create_session(direct())
    [line] = [message for message in caplog.messages if "ended_elsewhere=true" in message.lower()]
    assert first.session_id in line


async def test_flags_of_a_session_that_a_person_ended_are_ignored(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    for flag in (service.suspend_session, service.mark_resume_pending):
        first = await service.get_or_create_session(direct())
        await flag(first.session_key)
        await service.end_session(first.session_id, EndReason.NEW)
        clock.advance(days=2)
        fresh = await service.get_or_create_session(direct())
        assert fresh.session_id != first.session_id
        assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (False, None)
        assert flags_of(fresh) == []


async def test_session_that_the_gateway_rotated_elsewhere_is_replaced_as_an_automatic_reset(
    service: SessionStore,
) -> None:
    for reason in ENDED_BY_THE_GATEWAY:
        first = await service.get_or_create_session(direct())
        await service.record_turn(first.session_id, [user_says(), agent_says()])
        await service.end_session(first.session_id, reason)
        fresh = await service.get_or_create_session(direct())
        assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (True, reason)
        assert fresh.reset_had_activity


# 4. suspended


async def test_suspended_session_always_starts_afresh(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    assert await service.suspend_session(first.session_key)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (True, EndReason.SUSPENDED)
    assert not fresh.suspended
    assert (await service.get_or_create_session(direct())).session_id == fresh.session_id


async def test_suspended_wins_over_policy_mark_and_background_work(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY, has_active_processes_fn=lambda _: True)
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    await service.suspend_session(first.session_key)
    clock.advance(days=2)
    fresh = await service.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.SUSPENDED


# 5. resume_pending


async def test_marked_session_goes_on_with_its_transcript(
    service: SessionStore, clock: SettableClock
) -> None:
    first = await service.get_or_create_session(direct())
    await service.append_to_transcript(first.session_id, user_says())
    assert await service.mark_resume_pending(first.session_key)
    marked_at = clock.now()
    clock.advance(seconds=3600)
    again = await service.get_or_create_session(direct())
    assert (again.session_id, again.message_count) == (first.session_id, 1)
    assert (again.resume_pending, again.resume_reason) == (True, "restart_timeout")
    assert again.last_resume_marked_at == marked_at


async def test_policy_reason_wins_over_the_mark(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.IDLE, idle_minutes=30))
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(minutes=31)
    assert (await service.get_or_create_session(direct())).auto_reset_reason is EndReason.IDLE


async def test_policy_reason_wins_over_an_expired_mark(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(minutes=61)
    assert (await service.get_or_create_session(direct())).auto_reset_reason is EndReason.IDLE


async def test_expired_mark_starts_afresh(service: SessionStore, clock: SettableClock) -> None:
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(seconds=3600, microseconds=1)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert fresh.auto_reset_reason is EndReason.RESUME_PENDING_EXPIRED
    assert (fresh.resume_pending, fresh.resume_reason, fresh.last_resume_marked_at) == (False, None, None)


async def test_messages_do_not_renew_the_mark(service: SessionStore, clock: SettableClock) -> None:
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    for _ in range(6):
        clock.advance(minutes=10)
        assert (await service.get_or_create_session(direct())).session_id == first.session_id
        await service.append_to_transcript(first.session_id, user_says())
        await service.update_session(first.session_key, input_tokens=1)
    clock.advance(minutes=1)
    fresh = await service.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.RESUME_PENDING_EXPIRED


async def test_background_work_does_not_hold_back_an_expired_mark(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(
        with_policy(mode=ResetMode.IDLE, idle_minutes=30), has_active_processes_fn=lambda _: True
    )
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(minutes=61)
    fresh = await service.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.RESUME_PENDING_EXPIRED


async def test_missing_mark_time_falls_back_to_the_last_activity(
    open_session_store: OpenSessionStore, edit_store: EditStore, clock: SettableClock
) -> None:
    service = await open_session_store(LASTING)
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(minutes=30)
    await service.update_session(first.session_key)
    await service.close()
    await edit_store("UPDATE sessions SET last_resume_marked_at = NULL")
    service = await open_session_store(LASTING)
    clock.advance(minutes=59)
    kept = await service.get_or_create_session(direct())
    assert (kept.session_id, kept.last_resume_marked_at) == (first.session_id, None)
    clock.advance(minutes=61)
    fresh = await service.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.RESUME_PENDING_EXPIRED


@pytest.mark.parametrize("seconds", [0, -1])
async def test_freshness_window_can_be_disabled(
    open_session_store: OpenSessionStore, clock: SettableClock, seconds: int
) -> None:
    config = GatewayConfig(
        default_reset_policy=LASTING.default_reset_policy, auto_continue_freshness_seconds=seconds
    )
    service = await open_session_store(config)
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(days=400)
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_freshness_window_is_a_setting(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    config = GatewayConfig(
        default_reset_policy=LASTING.default_reset_policy, auto_continue_freshness_seconds=10
    )
    service = await open_session_store(config)
    first = await service.get_or_create_session(direct())
    await service.mark_resume_pending(first.session_key)
    clock.advance(seconds=11)
    assert (await service.get_or_create_session(direct())).session_id != first.session_id


# 6. the policy


async def test_policy_starts_afresh_and_says_why(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(in_group(chat_name="Crowd"))
    await service.record_turn(first.session_id, [user_says(), agent_says()])
    clock.advance(minutes=60)
    assert (await service.get_or_create_session(in_group())).session_id == first.session_id
    clock.advance(minutes=60, microseconds=1)
    fresh = await service.get_or_create_session(in_group(chat_name="Renamed"))
    assert fresh.session_id != first.session_id
    assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (True, EndReason.IDLE)
    assert fresh.reset_had_activity
    assert not fresh.is_fresh_reset
    assert (fresh.origin, fresh.display_name) == (first.origin, "Crowd")
    assert (fresh.platform, fresh.chat_type) == (Platform.TELEGRAM, ChatType.GROUP)
    assert fresh.created_at == fresh.updated_at == clock.now()
    assert len(await service.load_transcript(first.session_id)) == 2
    assert await service.load_transcript(fresh.session_id) == []


async def test_reset_had_activity_only_when_a_model_turn_ran(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    await service.append_to_transcript(first.session_id, user_says())
    clock.advance(hours=2)
    silent = await service.get_or_create_session(direct())
    assert (silent.was_auto_reset, silent.reset_had_activity) == (True, False)
    await service.update_session(silent.session_key, output_tokens=1)
    clock.advance(hours=2)
    assert (await service.get_or_create_session(direct())).reset_had_activity


async def test_model_turn_that_was_undone_still_is_activity(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    await service.record_turn(first.session_id, [user_says(), agent_says()])
    await service.rewind_session(first.session_id)
    clock.advance(hours=2)
    assert (await service.get_or_create_session(direct())).reset_had_activity


# 7. recovery


@pytest.mark.parametrize("closed", [False, True])
async def test_unknown_key_takes_up_the_newest_session_of_its_peer(
    open_session_store: OpenSessionStore, edit_store: EditStore, clock: SettableClock, closed: bool
) -> None:
    service = await open_session_store(NO_DAILY)
    older = await service.get_or_create_session(direct())
    clock.advance(minutes=1)
    newest = await service.get_or_create_session(direct(), force_new=True)
    await service.append_to_transcript(newest.session_id, user_says())
    if closed:
        await service.close_session(newest.session_id)
    await service.close()
    await edit_store("DELETE FROM routes")
    service = await open_session_store(NO_DAILY)
    clock.advance(days=2)
    recovered = await service.get_or_create_session(direct())
    assert (recovered.session_id, recovered.message_count) == (newest.session_id, 1)
    assert (recovered.created_at, recovered.updated_at) == (newest.created_at, clock.now())
    assert flags_of(recovered) == []
    assert older.session_id != recovered.session_id
    assert (await service.get_or_create_session(direct())).session_id == newest.session_id


async def test_force_new_recovers_nothing(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    service = await open_session_store(LASTING)
    first = await service.get_or_create_session(direct())
    await service.close()
    await edit_store("DELETE FROM routes")
    service = await open_session_store(LASTING)
    fresh = await service.get_or_create_session(direct(), force_new=True)
    assert fresh.session_id != first.session_id


async def test_session_that_a_person_ended_is_not_recovered(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    service = await open_session_store(LASTING)
    first = await service.get_or_create_session(direct())
    await service.end_session(first.session_id, EndReason.NEW)
    await service.close()
    await edit_store("DELETE FROM routes")
    service = await open_session_store(LASTING)
    assert (await service.get_or_create_session(direct())).session_id != first.session_id


async def test_suspended_session_is_not_recovered(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    service = await open_session_store(LASTING)
    first = await service.get_or_create_session(direct())
    await service.suspend_session(first.session_key)
    await service.close()
    await edit_store("DELETE FROM routes")
    service = await open_session_store(LASTING)
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert fresh.auto_reset_reason is EndReason.SUSPENDED


async def test_session_of_another_peer_is_not_recovered(
    open_session_store: OpenSessionStore, edit_store: EditStore
) -> None:
    service = await open_session_store(LASTING)
    first = await service.get_or_create_session(direct("ann", chat_id="shared", user_id="ann"))
    await service.close()
    await edit_store("DELETE FROM routes")
    service = await open_session_store(LASTING)
    bob = await service.get_or_create_session(direct("bob", chat_id="shared", user_id="bob"))
    assert bob.session_key == first.session_key
    assert bob.session_id != first.session_id


async def test_closed_session_that_was_replaced_is_never_recovered(
    service: SessionStore, clock: SettableClock
) -> None:
    first = await service.get_or_create_session(direct())
    await service.close_session(first.session_id)
    second = await service.reset_session(first.session_key)
    assert second is not None
    clock.advance(days=100)
    assert await service.prune_old_entries(30) == 1
    third = await service.get_or_create_session(direct())
    assert third.session_id not in (first.session_id, second.session_id)


# force_new


async def test_force_new_ends_the_current_session_without_flags(
    service: SessionStore, clock: SettableClock
) -> None:
    first = await service.get_or_create_session(direct())
    await service.record_turn(first.session_id, [user_says(), agent_says()])
    clock.advance(minutes=1)
    fresh = await service.get_or_create_session(direct(), force_new=True)
    assert fresh.session_id != first.session_id
    assert flags_of(fresh) == []
    assert (fresh.auto_reset_reason, fresh.created_at) == (None, clock.now())
    viewer = await service.viewer_for(direct())
    ended = await service.find_session(first.session_id, viewer)
    assert ended is not None
    assert (ended.reason, ended.ended_at) == (EndReason.NEW, clock.now())


async def test_force_new_asks_neither_state_nor_policy(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    await service.suspend_session(first.session_key)
    clock.advance(days=2)
    fresh = await service.get_or_create_session(direct(), force_new=True)
    assert (fresh.was_auto_reset, fresh.auto_reset_reason) == (False, None)


async def test_force_new_does_not_continue_a_closed_session(service: SessionStore) -> None:
    first = await service.get_or_create_session(direct())
    await service.close_session(first.session_id)
    fresh = await service.get_or_create_session(direct(), force_new=True)
    assert fresh.session_id != first.session_id


async def test_clock_that_went_back_starts_nothing_afresh(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy())
    first = await service.get_or_create_session(direct())
    clock.advance(-timedelta(hours=30))
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_explain_says_where_a_message_would_go_and_changes_nothing(
    service: SessionStore, clock: SettableClock
) -> None:
    told = await service.explain(in_thread())
    assert (told["session_key"], told["session"]) == ("agent:main:telegram:group:crowd:topic", None)
    assert (told["shared"], told["reset_reason"]) == (True, None)
    assert told["policy"]["mode"] == "none"
    assert await service.list_sessions() == []
    entry = await service.get_or_create_session(in_thread())
    clock.advance(days=1)
    assert (await service.explain(in_thread()))["session"] == entry.to_dict()
    assert await service.get_session(entry.session_key) == entry


async def test_tool_results_alone_are_no_model_turn(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(NO_DAILY)
    first = await service.get_or_create_session(direct())
    await service.append_to_transcript(first.session_id, tool_answers("c1"))
    clock.advance(hours=2)
    assert not (await service.get_or_create_session(direct())).reset_had_activity
