"""Echoes on every store: what happens again and again does not fill the log, and nothing of it is lost."""

from collections.abc import AsyncIterator

import pytest

from frontdesk import errors, plugins
from frontdesk.flow import audits
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.audit import ECHO_SECONDS, AuditEntry, AuditKind
from frontdesk.model.confirmations import MOST_KEYS, Settings
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.asking import AGENT, Asker, pages, request

OTHER = "0" * 64


@pytest.fixture
async def asker(store_url: str, clock: SettableClock) -> AsyncIterator[Asker]:
    store: Store = await plugins.load_store(store_url)(store_url)
    yield Asker(store, clock)
    await store.close()


async def written(asker: Asker, kind: AuditKind) -> list[AuditEntry]:
    return [entry for entry in await asker.entries() if entry.kind is kind]


async def test_requests_that_join_another_are_written_down_once_in_a_minute(
    asker: Asker, clock: SettableClock
) -> None:
    first = await asker.ask()
    for _ in range(20):
        assert (await asker.submit()).confirmation.id == first.id
    assert len(await written(asker, AuditKind.COALESCED)) == 1
    clock.advance(seconds=ECHO_SECONDS)
    await asker.submit()
    assert [entry.facts.get("left_out") for entry in await written(asker, AuditKind.COALESCED)] == [None, 19]


async def test_refusals_to_redeem_hold_and_are_written_down_once_in_a_minute(
    asker: Asker, clock: SettableClock
) -> None:
    asked = await asker.approved()
    refused = {(await asker.redeem(asked, OTHER)).refused for _ in range(20)}
    assert refused == {"digest"}
    assert len(await written(asker, AuditKind.REDEEM_REFUSED)) == 1
    clock.advance(seconds=ECHO_SECONDS)
    assert (await asker.redeem(asked, OTHER)).refused == "digest"
    assert [entry.facts.get("left_out") for entry in await written(asker, AuditKind.REDEEM_REFUSED)] == [
        None,
        19,
    ]


async def test_another_reason_actor_or_request_is_written_down_at_once(asker: Asker) -> None:
    asked, other = await asker.ask(), await asker.ask(request(target="db"))
    for each in (asked, asked, other):
        await asker.redeem(each)
    await asker.redeem(asked, by="token:thief")
    await asker.redeem(asked, OTHER)
    found = [(entry.confirmation_id, entry.facts["why"], entry.actor) for entry in await refusals(asker)]
    assert found == [
        (asked.id, "pending", AGENT),
        (other.id, "pending", AGENT),
        (asked.id, "pending", "token:thief"),
        (asked.id, "digest", AGENT),
    ]


async def refusals(asker: Asker) -> list[AuditEntry]:
    return await written(asker, AuditKind.REDEEM_REFUSED)


async def test_what_was_left_out_is_summed_up_when_nothing_more_comes(
    asker: Asker, clock: SettableClock
) -> None:
    service = ConfirmationService(asker.store, Settings(), clock=clock)
    asked = await asker.approved()
    for _ in range(3):
        await asker.redeem(asked, OTHER)
    await service.tidy()
    assert len(await refusals(asker)) == 1
    clock.advance(seconds=ECHO_SECONDS)
    for _ in range(2):
        await service.tidy()
        clock.advance(seconds=ECHO_SECONDS)
    _, summed = await refusals(asker)
    assert (summed.confirmation_id, summed.actor) == (asked.id, AGENT)
    assert summed.facts == {"why": "digest", "left_out": 2}
    assert (await audits.verify(pages(asker.kept))).whole


async def test_lapsed_grant_is_asked_again_although_its_refusal_is_not_written(
    asker: Asker, clock: SettableClock
) -> None:
    asked = await asker.approved()
    clock.advance(seconds=ECHO_SECONDS)
    first, second = await asker.redeem(asked), await asker.redeem(asked)
    assert first.renewal
    assert first.renewal == second.renewal
    assert [str(entry.kind) for entry in await asker.entries()][-2:] == ["redeem_refused", "renewed"]


async def test_keys_that_lead_to_one_request_are_bounded(asker: Asker, clock: SettableClock) -> None:
    first = await asker.ask()
    for number in range(MOST_KEYS):
        joined = await asker.submit(request(idempotency_key=f"k{number}"))
        assert joined.confirmation.id == first.id
    with pytest.raises(errors.RateLimited):
        await asker.submit(request(idempotency_key="one more"))
    for key in ("k0", None):
        assert (await asker.submit(request(idempotency_key=key))).confirmation.id == first.id
