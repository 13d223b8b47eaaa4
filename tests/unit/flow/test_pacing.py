"""The barrier before a chat: who may pass, and when."""

import asyncio
from typing import Any

import pytest

from frontdesk import Platform, SessionSource
from frontdesk.flow import pacing
from frontdesk.flow.pacing import Pacing
from frontdesk.model.deliveries import NotSent, Outcome, Sent, Unknown

DAY_SECONDS = 24 * 3600.0


class Hours:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def chat(number: int = 1, **fields: Any) -> SessionSource:
    return SessionSource(**({"platform": Platform.TELEGRAM, "chat_id": str(number)} | fields))


def told(seconds: float | None, **fields: Any) -> NotSent:
    return NotSent(why="too many requests", retry_after_seconds=seconds, **fields)


def test_pause_after_a_call_holds_for_its_chat_alone_in_all_its_threads() -> None:
    time = Hours()
    barrier = Pacing(time)
    barrier.pass_by(chat(1, thread_id="7"), 3.0)
    assert barrier.seconds_left(chat(1)) == barrier.seconds_left(chat(1, thread_id="8")) == 3.0
    elsewhere = [chat(2), chat(1, account="other"), chat(1, platform=Platform.MATRIX)]
    assert [barrier.seconds_left(each) for each in elsewhere] == [0.0, 0.0, 0.0]
    time.now += 3.0
    assert barrier.may_pass(chat(1))


@pytest.mark.parametrize(
    "outcome", [told(50.0), told(50.0, hopeless=True), Unknown(why="busy", retry_after_seconds=50.0)]
)
def test_nothing_goes_where_the_platform_said_wait(outcome: Outcome) -> None:
    barrier = Pacing(Hours())
    barrier.heed(chat(1), outcome)
    assert (barrier.seconds_left(chat(1)), barrier.may_pass(chat(1)), barrier.may_pass(chat(2))) == (
        50.0,
        False,
        True,
    )


def test_wait_for_the_whole_account_holds_for_each_chat_of_it() -> None:
    barrier = Pacing(Hours())
    barrier.heed(chat(1), told(50.0, whole_account=True))
    assert [barrier.seconds_left(each) for each in (chat(1), chat(2))] == [50.0, 50.0]
    assert barrier.may_pass(chat(1, account="other"))


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (Sent(), 0.0),
        (told(None), 0.0),
        (told(-5.0), 0.0),
        (told(float("nan")), 0.0),
        (told(1e300), DAY_SECONDS),
    ],
)
def test_wait_is_bounded_whatever_the_platform_says(outcome: Outcome, seconds: float) -> None:
    barrier = Pacing(Hours())
    barrier.heed(chat(), outcome)
    assert barrier.seconds_left(chat()) == seconds


def test_shorter_wait_does_not_end_a_longer_one() -> None:
    barrier = Pacing(Hours())
    barrier.heed(chat(), told(50.0))
    barrier.pass_by(chat(), 1.0)
    assert barrier.seconds_left(chat()) == 50.0


async def test_answer_that_would_wait_long_is_told_how_long() -> None:
    barrier = Pacing(Hours())
    barrier.heed(chat(), told(50.0))
    assert await barrier.wait(chat(), 1.0, most_seconds=1.0) == 50.0
    assert barrier.may_pass(chat(2))


async def test_draft_waits_for_the_answers_at_the_barrier() -> None:
    time = Hours()
    barrier = Pacing(time)
    barrier.pass_by(chat(), 0.01)
    answers = [asyncio.create_task(barrier.wait(chat(), 0.01, 1.0)) for _ in range(2)]
    await asyncio.sleep(0)
    time.now += 0.01
    assert (barrier.seconds_left(chat()), barrier.may_pass(chat())) == (0.0, False)
    async with asyncio.timeout(60):
        while not all(each.done() for each in answers):
            await asyncio.sleep(0.001)
            time.now += 0.005
    time.now += 0.01
    assert barrier.may_pass(chat())


def test_barriers_that_are_open_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "FEW_BARRIERS", 10)
    time = Hours()
    barrier = Pacing(time)
    for number in range(1000):
        barrier.pass_by(chat(number), 1.0)
        time.now += 0.5
    assert len(barrier.closed_until) <= 11
