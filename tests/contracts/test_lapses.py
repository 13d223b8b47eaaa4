"""Grants that have lapsed stay so on every store, whatever the clock says later."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from frontdesk import errors
from frontdesk.app.confirmations import watching
from frontdesk.flow.confirmations.confirming import ConfirmationService
from frontdesk.model.confirmations import GRANT_SECONDS, Caller, CallerKind, Confirmation, Settings
from frontdesk.testing import SettableClock
from tests.contracts.asking import AGENT, ANN, Asker, request
from tests.contracts.test_audit import opened
from tests.patience import LOOK_SECONDS, PATIENCE_SECONDS

BACK = timedelta(seconds=-30)
"""So far that a grant which has just lapsed would count again."""
REQUESTER = Caller(id=AGENT, kind=CallerKind.AGENT)


@pytest.fixture
async def asker(store_url: str, clock: SettableClock) -> AsyncIterator[Asker]:
    async with opened(store_url, clock) as one:
        yield one


class Boot:
    """The time since boot, which goes on when the clock is set."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def pass_by(self, clock: SettableClock, seconds: float) -> None:
        self.seconds += seconds
        clock.advance(seconds=seconds)


async def refusal(service: ConfirmationService, granted: Confirmation) -> errors.GrantUnusable:
    with pytest.raises(errors.GrantUnusable) as refused:
        await service.redeem(granted.id, REQUESTER, granted.digest)
    return refused.value


async def test_grant_that_was_swept_stays_lapsed_when_the_clock_steps_back(
    asker: Asker, clock: SettableClock
) -> None:
    granted = await asker.approved()
    used = await asker.approved(request(target="used"))
    await asker.redeem(used)
    clock.advance(seconds=GRANT_SECONDS)
    assert await asker.kept.lapse(clock.now(), 10) == 1
    assert await asker.kept.lapse(clock.now(), 10) == 0
    clock.advance(seconds=BACK.total_seconds())
    refused = await asker.redeem(granted)
    assert (refused.refused, refused.payload) == ("lapsed", None)
    assert refused.renewal is not None
    assert (await asker.redeem(used)).refused == "redeemed"


async def test_grant_that_was_refused_stays_lapsed_when_the_clock_steps_back(
    asker: Asker, clock: SettableClock
) -> None:
    granted = await asker.approved()
    clock.advance(seconds=GRANT_SECONDS)
    first = await asker.redeem(granted)
    clock.advance(seconds=BACK.total_seconds())
    second = await asker.redeem(granted)
    assert (first.refused, second.refused) == ("lapsed", "lapsed")
    assert second.renewal == first.renewal
    assert first.renewal is not None
    await asker.vote(first.renewal)
    assert (await asker.redeem(first.renewal)).payload == granted.payload


async def test_grant_is_due_when_it_lapses(asker: Asker, clock: SettableClock) -> None:
    granted = await asker.approved()
    assert granted.resolved_at is not None
    assert await asker.kept.next_due() == granted.grant_until
    clock.advance(seconds=GRANT_SECONDS - 1)
    assert await asker.kept.lapse(clock.now(), 10) == 0
    clock.advance(seconds=1)
    assert await asker.kept.lapse(clock.now(), 10) == 1
    assert await asker.kept.next_due() is None


async def test_service_notes_what_lapses_while_nobody_asks(asker: Asker, clock: SettableClock) -> None:
    boot = Boot()
    async with watching(ConfirmationService(asker.store, Settings(), clock=clock, elapsed=boot)) as service:
        granted = await asker.approved()
        boot.pass_by(clock, GRANT_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await service.find(granted.id)).lapsed_at is None:  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(LOOK_SECONDS)
    # Another service, which was not there when the clock was set back.
    clock.advance(seconds=BACK.total_seconds())
    service = ConfirmationService(asker.store, Settings(), clock=clock, elapsed=boot)
    assert (await refusal(service, granted)).refused == "lapsed"


@pytest.mark.parametrize("back", [2, 45, 3600])
async def test_no_grant_outlives_a_clock_that_is_set_back(
    asker: Asker, clock: SettableClock, back: int
) -> None:
    boot = Boot()
    service = ConfirmationService(asker.store, Settings(), clock=clock, elapsed=boot)
    granted = await asker.approved()
    boot.pass_by(clock, GRANT_SECONDS - 1)
    clock.advance(seconds=-back)
    refused = await refusal(service, granted)
    assert refused.refused == "lapsed"
    assert refused.renewal is not None
    # What is approved by the clock as it is now counts as usual.
    later = await asker.approved(request(target="later"))
    boot.pass_by(clock, GRANT_SECONDS - 1)
    _, payload = await service.redeem(later.id, REQUESTER, later.digest)
    assert payload == later.payload


async def test_clock_that_goes_as_time_does_takes_no_grant_away(asker: Asker, clock: SettableClock) -> None:
    boot = Boot()
    service = ConfirmationService(asker.store, Settings(), clock=clock, elapsed=boot)
    granted = await asker.vote(await asker.ask(), by=ANN)
    boot.pass_by(clock, GRANT_SECONDS - 2)
    clock.advance(seconds=-0.5)  # put right
    await service.sweep()
    restarted = ConfirmationService(asker.store, Settings(), clock=clock, elapsed=boot)
    await restarted.sweep()
    _, payload = await restarted.redeem(granted.id, REQUESTER, granted.digest)
    assert payload == granted.payload
