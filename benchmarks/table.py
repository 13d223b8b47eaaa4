"""Results and how they are shown."""

import statistics
import time
from collections.abc import Awaitable, Callable
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


async def alternate(
    rounds: int, ours: Callable[[], Awaitable[object]], bare: Callable[[], Awaitable[object]]
) -> tuple[float, float]:
    """Median seconds of each, taken in turns so that both meet the same disk and the same neighbours."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for run, kept in zip((ours, bare), times, strict=True):
            start = time.perf_counter()
            await run()
            kept.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])
