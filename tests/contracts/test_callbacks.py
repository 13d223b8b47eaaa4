"""Callbacks on every store: a program is told of the decision, again and again until it has heard it."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from frontdesk import errors, plugins
from frontdesk.contracts.confirmations import Backlog
from frontdesk.flow.confirmations.callbacks import CLAIM, MOST_ATTEMPTS, DecisionCallbacks
from frontdesk.model.confirmations import DEFAULT_TIMEOUT_SECONDS, GRANT_SECONDS, MOST_CALLBACKS
from frontdesk.stores.store import Store
from frontdesk.testing import SettableClock
from tests.contracts.asking import Asker, request

URL = "https://agent.example/decided"


class Program:
    """One that can be out."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, bytes]] = []
        self.tried = 0
        self.out = 0

    async def call(self, url: str, message_id: str, body: bytes) -> bool:
        self.tried += 1
        if self.out:
            self.out -= 1
            return False
        self.heard.append((url, message_id, body))
        return True


@pytest.fixture
async def asker(store_url: str, clock: SettableClock) -> AsyncIterator[Asker]:
    store: Store = await plugins.load_store(store_url)(store_url)
    yield Asker(store, clock)
    await store.close()


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def callbacks(asker: Asker, program: Program, clock: SettableClock) -> DecisionCallbacks:
    return DecisionCallbacks(asker.store, program.call, clock)


async def test_decision_is_told_once(asker: Asker, callbacks: DecisionCallbacks, program: Program) -> None:
    asked = await asker.ask(request(callback_url=URL))
    assert await callbacks.call_due() == 0
    await asker.vote(asked, approves=True)
    assert await callbacks.call_due() == 1
    assert await callbacks.call_due() == 0
    ((url, message_id, body),) = program.heard
    assert (url, message_id) == (URL, asked.id)
    told = json.loads(body)
    assert (told["status"], told["digest"]) == ("approved", asked.digest)


async def test_who_joined_is_told_too(asker: Asker, callbacks: DecisionCallbacks, program: Program) -> None:
    asked = await asker.ask()
    for url in (URL, f"{URL}/2", URL):
        joined = await asker.submit(request(callback_url=url))
        assert (joined.confirmation.id, joined.repeated) == (asked.id, True)
    await asker.vote(asked)
    await callbacks.call_due()
    assert sorted((url, name) for url, name, _ in program.heard) == [(URL, asked.id), (f"{URL}/2", asked.id)]


async def test_each_program_is_called_until_it_has_heard_it_itself(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.ask(request(callback_url=f"{URL}/2"))
    await asker.deny(asked)
    program.out = 1
    for _ in range(3):
        await callbacks.call_due()
        clock.advance(seconds=10)
    assert sorted(url for url, _, _ in program.heard) == [URL, f"{URL}/2"]
    assert program.tried == 3


async def test_renewal_is_told_to_all_who_wanted_to_hear_of_it(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.ask(request(callback_url=f"{URL}/2"))
    await asker.vote(asked)
    await callbacks.call_due()
    clock.advance(seconds=GRANT_SECONDS)
    renewal = (await asker.redeem(asked)).renewal
    assert renewal
    await asker.deny(renewal)
    await callbacks.call_due()
    assert sorted(url for url, name, _ in program.heard if name == renewal.id) == [URL, f"{URL}/2"]


async def test_programs_that_want_to_hear_of_one_request_are_bounded(
    asker: Asker, callbacks: DecisionCallbacks, program: Program
) -> None:
    asked = await asker.ask(request(callback_url=f"{URL}/0"))
    for number in range(1, MOST_CALLBACKS):
        await asker.ask(request(callback_url=f"{URL}/{number}"))
    with pytest.raises(errors.RateLimited) as refused:
        await asker.submit(request(callback_url=URL))
    assert vars(refused.value)["limit"] == MOST_CALLBACKS
    assert (await asker.submit(request(callback_url=f"{URL}/0"))).repeated
    await asker.vote(asked)
    while await callbacks.call_due():
        continue
    assert len(program.heard) == MOST_CALLBACKS


async def test_end_of_its_time_is_told(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    await asker.ask(request(callback_url=URL))
    clock.advance(timedelta(seconds=DEFAULT_TIMEOUT_SECONDS))
    await asker.kept.expire(clock.now(), 10, tell=asker.tell)
    await callbacks.call_due()
    assert [json.loads(body)["status"] for _, _, body in program.heard] == ["expired"]


async def test_program_that_was_out_is_called_again_later(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.vote(asked, approves=False)
    program.out = 2
    for _ in range(3):
        await callbacks.call_due()
        assert await callbacks.call_due() == 0
        clock.advance(timedelta(seconds=10))
    assert len(program.heard) == 1
    assert program.tried == 3


async def test_program_that_never_answers_is_given_up(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.vote(asked, approves=True)
    program.out = 10**6
    for _ in range(MOST_ATTEMPTS + 5):
        await callbacks.call_due()
        clock.advance(timedelta(hours=1))
    assert program.tried == MOST_ATTEMPTS


async def test_call_that_was_begun_by_a_node_that_died_is_made_by_another(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.vote(asked, approves=True)
    assert await asker.kept.claim_callbacks(clock.now(), clock.now() + CLAIM, 10)
    assert await callbacks.call_due() == 0
    clock.advance(CLAIM)
    assert await callbacks.call_due() == 1
    assert len(program.heard) == 1


async def test_erased_request_calls_nobody(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.vote(asked, approves=True)
    assert await asker.kept.erase(asked.id, "token:ann", clock.now())
    await callbacks.call_due()
    assert program.tried == 0


async def test_programs_that_nobody_calls_are_counted(
    asker: Asker, callbacks: DecisionCallbacks, clock: SettableClock
) -> None:
    for number in range(2):
        await asker.vote(await asker.ask(request(target=number, callback_url=URL)), approves=True)
        clock.advance(timedelta(minutes=2))
    clock.advance(timedelta(seconds=-1))
    assert await asker.kept.backlog(clock.now()) == Backlog(owed=2, overdue=1)
    await callbacks.call_due()
    assert await asker.kept.backlog(clock.now()) == Backlog(owed=0, overdue=0)


async def test_program_is_told_after_the_clock_was_set_back(
    asker: Asker, callbacks: DecisionCallbacks, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    program.out = 1
    await asker.vote(asked)
    assert await callbacks.call_due() == 1
    clock.advance(timedelta(hours=-1))
    assert await callbacks.call_due() == 1
    assert len(program.heard) == 1


async def test_program_is_told_after_a_start_with_an_earlier_clock(
    asker: Asker, program: Program, clock: SettableClock
) -> None:
    asked = await asker.ask(request(callback_url=URL))
    await asker.vote(asked)
    clock.advance(timedelta(hours=-1))
    assert await DecisionCallbacks(asker.store, program.call, clock).call_due() == 1
