"""Budgets of tokens, cost and time, as messages meet them."""

from datetime import timedelta
from typing import Any

import pytest

from frontdesk import EndReason, ResetMode
from frontdesk.testing import SettableClock
from tests.contracts.conftest import OpenSessionStore
from tests.contracts.samples import direct, with_policy

BUDGETS = [
    (
        {"max_tokens": 100},
        {"input_tokens": 60, "output_tokens": 39},
        {"output_tokens": 1},
        EndReason.TOKEN_LIMIT,
    ),
    ({"max_cost_usd": 1.5}, {"estimated_cost_usd": 1.0}, {"estimated_cost_usd": 0.5}, EndReason.COST_LIMIT),
]


@pytest.mark.parametrize(("limit", "some", "rest", "reason"), BUDGETS)
async def test_message_after_the_budget_is_spent_starts_afresh(
    open_session_store: OpenSessionStore,
    limit: dict[str, Any],
    some: dict[str, Any],
    rest: dict[str, Any],
    reason: EndReason,
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, **limit))
    first = await service.get_or_create_session(direct())
    await service.update_session(first.session_key, **some)
    going_on = await service.get_or_create_session(direct())
    assert going_on.session_id == first.session_id
    assert await service.reset_reason(going_on) is None
    await service.update_session(first.session_key, **rest)
    spent = await service.get_session(first.session_key)
    assert spent
    assert await service.reset_reason(spent) is reason
    fresh = await service.get_or_create_session(direct())
    assert fresh.session_id != first.session_id
    assert (fresh.auto_reset_reason, fresh.total_tokens, fresh.estimated_cost_usd) == (reason, 0, 0)


async def test_time_is_counted_from_the_beginning_however_active_a_session_is(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_session_minutes=60))
    first = await service.get_or_create_session(direct())
    clock.advance(minutes=59)
    assert (await service.get_or_create_session(direct())).session_id == first.session_id
    clock.advance(minutes=1)
    fresh = await service.get_or_create_session(direct())
    assert fresh.auto_reset_reason is EndReason.TIME_LIMIT
    assert fresh.created_at - first.created_at == timedelta(hours=1)
    assert await service.is_session_finalizable(fresh)


RENEWED = [
    ({"max_tokens": 100}, {"input_tokens": 60, "output_tokens": 40}, {"output_tokens": 99}),
    ({"max_cost_usd": 1.5}, {"estimated_cost_usd": 1.5}, {"estimated_cost_usd": 1.25}),
]


@pytest.mark.parametrize(("limit", "all_of_it", "most_of_it"), RENEWED)
async def test_resumed_session_has_its_whole_budget_again(
    open_session_store: OpenSessionStore,
    limit: dict[str, Any],
    all_of_it: dict[str, Any],
    most_of_it: dict[str, Any],
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, **limit))
    first = await service.get_or_create_session(direct())
    await service.update_session(first.session_key, **all_of_it)
    await service.get_or_create_session(direct())
    resumed = await service.switch_session(first.session_key, first.session_id)
    assert resumed
    assert await service.reset_reason(resumed) is None
    await service.update_session(first.session_key, **most_of_it)
    going_on = await service.get_or_create_session(direct())
    assert going_on.session_id == first.session_id
    assert going_on.total_tokens + going_on.estimated_cost_usd > sum(most_of_it.values())
    await service.update_session(first.session_key, **all_of_it)
    assert (await service.get_or_create_session(direct())).session_id != first.session_id


async def test_time_of_a_resumed_session_is_counted_from_then_on(
    open_session_store: OpenSessionStore, clock: SettableClock
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE, max_session_minutes=60))
    first = await service.get_or_create_session(direct())
    clock.advance(hours=2)
    await service.get_or_create_session(direct())
    resumed = await service.switch_session(first.session_key, first.session_id)
    assert resumed
    assert resumed.created_at == first.created_at
    clock.advance(minutes=59)
    assert (await service.get_or_create_session(direct())).session_id == first.session_id
    clock.advance(minutes=1)
    assert (await service.get_or_create_session(direct())).auto_reset_reason is EndReason.TIME_LIMIT


async def test_session_that_goes_on_after_it_was_finalized_is_finalized_again(
    open_session_store: OpenSessionStore,
) -> None:
    service = await open_session_store(with_policy(mode=ResetMode.NONE))
    first = await service.get_or_create_session(direct())
    assert await service.store.sessions.finalize(first.session_id)
    assert not await service.store.sessions.finalize(first.session_id)
    going_on = await service.get_or_create_session(direct())
    assert (going_on.session_id, going_on.expiry_finalized) == (first.session_id, False)
    assert await service.store.sessions.finalize(first.session_id)
