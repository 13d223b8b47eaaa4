"""Results and how they are shown."""

import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple


class Result(NamedTuple):
    """One line of the table. A figure meets its target from below, or from above when ``at_least``."""

    what: str
    ours: str
    bare: str
    figure: float
    target: float | None
    at_least: bool = False
    unit: str = "×"

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        reached = self.figure >= self.target if self.at_least else self.figure <= self.target
        return "reached" if reached else "MISSED"

    @property
    def goal(self) -> str:
        if self.target is None:
            return "-"
        return f"{'≥' if self.at_least else '≤'} {self.target:g} {self.unit}"


HEAD = ("what", "frontdesk", "bare", "figure", "target", "")


def show(results: list[Result]) -> str:
    lines = [HEAD, *(_cells(result) for result in results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cells(result: Result) -> tuple[str, ...]:
    figure = f"{result.figure:.2f} {result.unit}"
    return (result.what, result.ours, result.bare, figure, result.goal, result.verdict)


def micros(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def millis(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"


class Spent(NamedTuple):
    """What something took: of the clock, and of this process's processors. The latter depends less on what
    else the machine does."""

    seconds: float
    cpu: float

    @property
    def shown(self) -> str:
        return f"{micros(self.seconds)}, {micros(self.cpu)} cpu"

    def each(self, count: int) -> "Spent":
        return Spent(self.seconds / count, self.cpu / count)


def compared(what: str, ours: Spent, bare: Spent, target: float | None) -> Result:
    """How many times as long ours takes."""
    return Result(what, ours.shown, bare.shown, ours.seconds / bare.seconds, target)


async def alternate(rounds: int, *runs: Callable[[], Awaitable[object]]) -> list[Spent]:
    """The medians of what each takes, by turns."""
    return await medians(rounds, *(partial(timed, run) for run in runs))


async def medians(rounds: int, *runs: Callable[[], Awaitable[Spent]]) -> list[Spent]:
    """The medians of what each says. They take turns, so that all meet the same disk and the same neighbours,
    and another one begins each round, so that none always finds what the same one left behind."""
    found: list[list[Spent]] = [[] for _ in runs]
    for number in range(rounds):
        for place in range(len(runs)):
            which = (number + place) % len(runs)
            found[which].append(await runs[which]())
    return [Spent(*map(statistics.median, zip(*each, strict=True))) for each in found]


async def timed(run: Callable[[], Awaitable[object]]) -> Spent:
    start, used = time.perf_counter(), time.process_time()
    await run()
    return Spent(time.perf_counter() - start, time.process_time() - used)


def rank_of(taken: list[float], rank: float) -> float:
    return sorted(taken)[int(len(taken) * rank)]
