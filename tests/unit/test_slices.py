"""Many have their turn a few at a time, and others go on between them."""

import asyncio
from collections.abc import Callable
from typing import Any

from frontdesk.web import slices
from frontdesk.web.slices import Slices
from tests.patience import PATIENCE_SECONDS

NAMES = [str(number) for number in range(2 * slices.COST_AT_ONCE + 5)]


class Turns:
    """Who had a turn, in which order; a mark stands wherever others went on."""

    def __init__(self, last: str) -> None:
        self.had: list[str] = []
        self.over = asyncio.Event()
        self._last = last

    def take(self, name: str) -> None:
        self.had.append(name)
        asyncio.get_running_loop().call_soon(self.had.append, "|")
        if name == self._last:
            self.over.set()

    @property
    def at_once(self) -> int:
        """The most who had one without a break."""
        return max(len(each.split()) for each in " ".join(self.had).split("|"))

    @property
    def names(self) -> list[str]:
        return [each for each in self.had if each != "|"]


class Waiting:
    def __init__(
        self, name: str, turns: Turns, then: Callable[[], Any] = lambda: None, cost: int = 1
    ) -> None:
        self._name = name
        self._turns = turns
        self._then = then
        self._cost = cost

    def go(self) -> int:
        self._turns.take(self._name)
        self._then()
        return self._cost


def made(interval: float = 0.0, waits: Callable[[], bool] = lambda: False) -> Slices:
    return Slices(lambda: interval, waits)


async def test_others_go_on_after_a_few_and_everybody_has_one_turn_in_order() -> None:
    turns, many = Turns(NAMES[-1]), made()
    for name in NAMES:
        many.add(Waiting(name, turns))
    await asyncio.wait_for(turns.over.wait(), PATIENCE_SECONDS)
    assert turns.names == NAMES
    assert turns.at_once == slices.COST_AT_ONCE


async def test_what_costs_more_is_done_by_fewer_at_once() -> None:
    turns, many = Turns(NAMES[-1]), made()
    for name in NAMES:
        many.add(Waiting(name, turns, cost=slices.COST_AT_ONCE // 2))
    await asyncio.wait_for(turns.over.wait(), PATIENCE_SECONDS)
    assert turns.at_once == 2


async def test_who_fails_keeps_nobody_waiting() -> None:
    failed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: failed.append(about["exception"]))
    turns, many = Turns("last"), made()

    def fail() -> None:
        raise ValueError

    for name in NAMES:
        many.add(Waiting(name, turns, fail))
    many.add(Waiting("last", turns))
    await asyncio.wait_for(turns.over.wait(), PATIENCE_SECONDS)
    assert turns.names == [*NAMES, "last"]
    assert len(failed) == len(NAMES)


async def test_who_is_added_again_waits_for_the_next_round() -> None:
    turns, many = Turns("again"), made()
    again = Waiting("again", turns)
    many.add(Waiting("first", turns, lambda: many.add(again)))
    many.add(Waiting("second", turns))
    await asyncio.wait_for(turns.over.wait(), PATIENCE_SECONDS)
    assert turns.names == ["first", "second", "again"]


async def test_who_waits_for_an_answer_comes_first_but_not_for_ever() -> None:
    asked: list[int] = []

    def waits() -> bool:
        asked.append(len(turns.names))
        return True

    turns, many = Turns(NAMES[-1]), made(waits=waits)
    for name in NAMES:
        many.add(Waiting(name, turns))
    await asyncio.wait_for(turns.over.wait(), PATIENCE_SECONDS)
    assert turns.names == NAMES
    assert asked == [0] * slices.MOST_POSTPONED
