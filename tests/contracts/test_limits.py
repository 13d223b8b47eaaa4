"""When sessions are stale: message limits, idle time and the daily boundary."""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk import EndReason, GatewayConfig, ResetMode, SessionResetPolicy, SessionStore
from frontdesk.testing import SettableClock
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import UNKNOWN_KEY, agent_says, direct, in_group, user_says, with_policy

DAILY = with_policy(mode=ResetMode.DAILY, max_messages=0)


@pytest.fixture
async def daily(open_session_store: OpenSessionStore) -> SessionStore:
    return await open_session_store(DAILY)


async def fill(service: SessionStore, session_id: str, count: int) -> None:
    await service.record_turn(session_id, [user_says(f"line {number}") for number in range(count)])


# the allowance


async def test_unknown_key_has_used_nothing(service: SessionStore) -> None:
    assert await service.get_message_limit_info(UNKNOWN_KEY) == {
        "message_count": 0,
        "max_messages": 0,
        "remaining": 0,
        "near_limit": False,
        "at_limit": False,
        "threshold": 0,
    }
    assert await service.get_message_count(UNKNOWN_KEY) == 0


ALLOWANCES: list[tuple[int, int, dict[str, Any]]] = [
    (10, 0, {"remaining": 10, "near_limit": False, "at_limit": False, "threshold": 0.0}),
    (10, 7, {"remaining": 3, "near_limit": False, "at_limit": False, "threshold": 0.7}),
    (10, 8, {"remaining": 2, "near_limit": True, "at_limit": False, "threshold": 0.8}),
    (10, 10, {"remaining": 0, "near_limit": True, "at_limit": True, "threshold": 1.0}),
    (10, 12, {"remaining": 0, "near_limit": True, "at_limit": True, "threshold": 1.2}),
    (1, 0, {"remaining": 1, "near_limit": False, "at_limit": False, "threshold": 0.0}),
    (1, 1, {"remaining": 0, "near_limit": True, "at_limit": True, "threshold": 1.0}),
    (0, 9, {"remaining": math.inf, "near_limit": False, "at_limit": False, "threshold": 0.0}),
]


async def test_limit_info_tells_how_much_is_used(open_session_store: OpenSessionStore) -> None:
    policies = {f"telegram:{limit}": SessionResetPolicy(max_messages=limit) for limit in (0, 1, 10)}
    service = await open_session_store(GatewayConfig(reset_by_chat=policies))
    for limit, count, expected in ALLOWANCES:
        source = direct(chat_id=str(limit))
        entry = await service.get_or_create_session(source, force_new=True)
        await fill(service, entry.session_id, count)
        info = await service.get_message_limit_info(entry.session_key)
        assert info == {"message_count": count, "max_messages": limit, **expected}


async def test_limit_info_follows_the_policy_of_the_chat(open_session_store: OpenSessionStore) -> None:
    config = GatewayConfig(
        default_reset_policy=SessionResetPolicy(max_messages=10),
        reset_by_type={"group": SessionResetPolicy(max_messages=20)},
        reset_by_platform={"discord": SessionResetPolicy(max_messages=30)},
        reset_by_chat={"discord:vip": SessionResetPolicy(max_messages=40)},
    )
    service = await open_session_store(config)
    sources = [
        direct(),
        in_group(),
        in_group(platform="discord"),
        in_group(platform="discord", chat="vip"),
    ]
    entries = [await service.get_or_create_session(source) for source in sources]
    infos = [await service.get_message_limit_info(entry.session_key) for entry in entries]
    assert [info["max_messages"] for info in infos] == [10, 20, 30, 40]


async def test_message_limit_holds_in_every_mode(open_session_store: OpenSessionStore) -> None:
    policies = {f"telegram:{mode}": SessionResetPolicy(mode=mode, max_messages=3) for mode in ResetMode}
    service = await open_session_store(GatewayConfig(reset_by_chat=policies))
    for mode in ResetMode:
        source = direct(chat_id=mode)
        first = await service.get_or_create_session(source)
        await fill(service, first.session_id, 2)
        assert (await service.get_or_create_session(source)).session_id == first.session_id
        await service.append_to_transcript(first.session_id, agent_says())
        fresh = await service.get_or_create_session(source)
        assert fresh.session_id != first.session_id
        assert (fresh.auto_reset_reason, fresh.message_count) == (EndReason.MESSAGE_LIMIT, 0)
        assert fresh.reset_had_activity


async def test_no_limit_means_no_limit(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=0))
    first = await service.get_or_create_session(direct())
    await fill(service, first.session_id, 500)
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_meta_rows_do_not_use_the_allowance(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=1))
    first = await service.get_or_create_session(direct())
    for _ in range(5):
        await service.append_to_transcript(first.session_id, {"role": "session_meta"})
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_reset_of_the_count_gives_a_fresh_allowance(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=3))
    entry = await service.get_or_create_session(direct())
    await fill(service, entry.session_id, 3)
    await service.reset_message_count(entry.session_key)
    assert await service.get_message_count(entry.session_key) == 0
    kept = await service.get_or_create_session(direct())
    assert (kept.session_id, len(await service.load_transcript(entry.session_id))) == (entry.session_id, 3)
    await service.append_to_transcript(entry.session_id, user_says("new"))
    assert await service.get_message_count(entry.session_key) == 1


async def test_count_after_a_fresh_allowance_stays_right_through_undo_and_redo(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await fill(service, entry.session_id, 3)
    await service.reset_message_count(entry.session_key)
    await service.record_turn(entry.session_id, [user_says("new"), agent_says()])
    counts = []
    for step in (service.rewind_session, service.rewind_session, service.redo_session, service.redo_session):
        await step(entry.session_id)
        counts.append(await service.get_message_count(entry.session_key))
    assert counts == [0, 0, 0, 2]


async def test_rewind_frees_allowance(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=3))
    entry = await service.get_or_create_session(direct())
    await fill(service, entry.session_id, 3)
    await service.rewind_session(entry.session_id)
    assert (await service.get_or_create_session(direct())).session_id == entry.session_id
    assert await service.get_message_count(entry.session_key) == 2


async def test_rewrite_counts_the_new_transcript(service: SessionStore) -> None:
    entry = await service.get_or_create_session(direct())
    await fill(service, entry.session_id, 5)
    await service.rewrite_transcript(entry.session_id, [user_says("a"), {"role": "session_meta"}])
    assert await service.get_message_count(entry.session_key) == 1
    await service.append_to_transcript(entry.session_id, user_says("b"))
    assert await service.get_message_count(entry.session_key) == 2


async def test_switch_gives_a_fresh_allowance(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=3))
    entry = await service.get_or_create_session(direct())
    await fill(service, entry.session_id, 3)
    await service.get_or_create_session(direct())
    back = await service.switch_session(entry.session_key, entry.session_id)
    assert back is not None
    assert back.message_count == 0
    await fill(service, entry.session_id, 2)
    assert (await service.get_or_create_session(direct())).session_id == entry.session_id
    assert await service.get_message_count(entry.session_key) == 2


async def test_limit_is_not_reached_by_another_key_s_messages(open_session_store: OpenSessionStore) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_messages=2))
    ann = await service.get_or_create_session(direct("ann"))
    bob = await service.get_or_create_session(direct("bob"))
    await fill(service, ann.session_id, 2)
    assert (await service.get_or_create_session(direct("bob"))).session_id == bob.session_id


# the order of reasons


async def test_idle_comes_before_daily_before_the_limit(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(idle_minutes=1440, max_messages=1))
    told = []
    for hours in (1, 17, 25):
        clock.set(datetime(2026, 1, 5, 12, tzinfo=UTC))
        entry = await service.get_or_create_session(direct(), force_new=True)
        await fill(service, entry.session_id, 1)
        clock.advance(hours=hours)
        told.append((await service.get_or_create_session(direct())).auto_reset_reason)
    assert told == [EndReason.MESSAGE_LIMIT, EndReason.DAILY, EndReason.IDLE]


async def test_mode_chooses_which_time_counts(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    policies = {f"telegram:{mode}": SessionResetPolicy(mode=mode, timezone="UTC") for mode in ResetMode}
    service = await open_session_store(GatewayConfig(reset_by_chat=policies))
    entries = {mode: await service.get_or_create_session(direct(chat_id=mode)) for mode in ResetMode}
    clock.advance(days=3)
    reasons = {mode: await service.reset_reason(entry) for mode, entry in entries.items()}
    assert reasons == {"none": None, "idle": EndReason.IDLE, "daily": EndReason.DAILY, "both": EndReason.IDLE}


# the daily boundary


async def test_session_is_stale_after_the_hour_has_passed(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(DAILY)
    clock.set(datetime(2026, 1, 5, 3, 59, 59, tzinfo=UTC))
    first = await service.get_or_create_session(direct())
    clock.set(datetime(2026, 1, 5, 4, 0, tzinfo=UTC))
    fresh = await service.get_or_create_session(direct())
    assert (fresh.session_id != first.session_id, fresh.auto_reset_reason) == (True, EndReason.DAILY)


async def test_before_the_hour_yesterday_s_boundary_counts(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(DAILY)
    clock.set(datetime(2026, 1, 5, 4, 0, tzinfo=UTC))
    first = await service.get_or_create_session(direct())
    clock.set(datetime(2026, 1, 6, 3, 59, 59, tzinfo=UTC))
    assert (await service.get_or_create_session(direct())).session_id == first.session_id


async def test_boundary_is_in_the_policy_s_own_zone(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.DAILY, timezone="Asia/Tokyo"))
    clock.set(datetime(2026, 1, 5, 18, 59, tzinfo=UTC))
    first = await service.get_or_create_session(direct())
    clock.set(datetime(2026, 1, 5, 19, 0, tzinfo=UTC))
    assert (await service.get_or_create_session(direct())).session_id != first.session_id


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize(
    "start", [datetime(2026, 3, 26, 13, tzinfo=UTC), datetime(2026, 10, 22, 13, tzinfo=UTC)]
)
async def test_one_reset_per_local_day(
    open_session_store: OpenSessionStore, clock: SettableClock, zone: str, start: datetime
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.DAILY, at_hour=2, timezone=zone))
    clock.set(start)
    resets: list[datetime] = []
    current = await service.get_or_create_session(direct())
    for _ in range(5 * 24 * 2):
        clock.advance(minutes=30)
        entry = await service.get_or_create_session(direct())
        if entry.session_id != current.session_id:
            assert entry.auto_reset_reason is EndReason.DAILY
            resets.append(clock.now())
            current = entry
    assert len(resets) == 5
    days = [moment.astimezone(SessionResetPolicy(timezone=zone).zone(UTC)).date() for moment in resets]
    assert len(set(days)) == 5


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jumps=st.lists(st.integers(-40, 40), min_size=5, max_size=25))
async def test_no_boundary_is_served_twice_whatever_the_clock_does(
    daily: SessionStore, clock: SettableClock, jumps: list[int]
) -> None:
    clock.set(datetime(2026, 1, 5, 12, tzinfo=UTC))
    current = await daily.get_or_create_session(direct(), force_new=True)
    served: Counter[datetime] = Counter()
    for hours in jumps:
        clock.advance(hours=hours)
        entry = await daily.get_or_create_session(direct())
        assert await daily.get_session(entry.session_key) == entry
        if entry.session_id != current.session_id:
            served[boundary_before(clock.now())] += 1
            current = entry
    assert set(served.values()) <= {1}


def boundary_before(now: datetime) -> datetime:
    today = now.replace(hour=4, minute=0, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)


async def test_boundary_served_survives_a_restart_and_a_clock_set_back(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(DAILY)
    await service.get_or_create_session(direct())
    clock.set(datetime(2026, 1, 6, 5, tzinfo=UTC))
    fresh = await service.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.DAILY
    await service.close()
    service = await open_session_store(DAILY)
    clock.set(datetime(2026, 1, 6, 3, tzinfo=UTC))
    assert (await service.get_or_create_session(direct())).session_id == fresh.session_id
    clock.set(datetime(2026, 1, 6, 6, tzinfo=UTC))
    assert (await service.get_or_create_session(direct())).session_id == fresh.session_id
    clock.set(datetime(2026, 1, 7, 6, tzinfo=UTC))
    assert (await service.get_or_create_session(direct())).session_id != fresh.session_id


async def test_going_back_to_yesterday_s_session_is_no_second_reset(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(DAILY)
    first = await service.get_or_create_session(direct())
    clock.set(datetime(2026, 1, 6, 5, tzinfo=UTC))
    await service.get_or_create_session(direct())
    await service.switch_session(first.session_key, first.session_id)
    clock.set(datetime(2026, 1, 6, 3, tzinfo=UTC))
    await service.get_or_create_session(direct())
    assert (await service.list_sessions())[0].updated_at == clock.now()
    clock.set(datetime(2026, 1, 6, 6, tzinfo=UTC))
    assert (await service.get_or_create_session(direct())).session_id == first.session_id
