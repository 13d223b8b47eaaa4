"""Spirals: an agent that makes the same tool call over and over, or whose tool calls mostly fail.

The transcript alone tells. A turn that ends in a spiral is followed by a warning; a spiral ends the session
when the turn after the warning ends in one again, or when it has become twice as long within one turn.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from frontdesk.model import calls
from frontdesk.model.events import Call
from frontdesk.model.messages import any_tools
from frontdesk.model.policies import SessionResetPolicy

TAIL_FACTOR = 8
"""So many times the longer of the two lengths is looked at: two turns, both of them twice too long."""
PATIENCE = 2
"""A spiral this many times as long as the limit is not warned of any more."""


class SpiralKind(StrEnum):
    REPEAT = "repeat"
    ERRORS = "errors"


class Stage(StrEnum):
    WARN = "warn"
    ROTATE = "rotate"


class Spiral(msgspec.Struct, frozen=True, kw_only=True):
    """A spiral that the last turn ended in."""

    kind: SpiralKind
    stage: Stage
    tool: str | None
    """The tool that is repeated, or that failed most often; the model chose the name."""
    count: int
    """How many equal calls, or how many errors."""
    share: float = 1.0
    """The share of errors among the results that were looked at."""


class CallResult(msgspec.Struct, frozen=True):
    failed: bool
    tool: str | None


class Stretch(msgspec.Struct):
    """What was done between two messages of a person."""

    calls: list[Call] = []
    results: list[CallResult] = []
    begun: bool = False
    """Whether the agent said or did anything."""


def tail_rows(policy: SessionResetPolicy) -> int:
    """How many of the last rows are read."""
    return TAIL_FACTOR * max(policy.spiral_repeats, policy.spiral_window)


def look(messages: Sequence[Mapping[str, Any]], policy: SessionResetPolicy) -> Spiral | None:
    """The spiral at the end of a transcript, or None; only its last rows are read.

    A message that is not answered yet is no turn: before a turn this is what the previous one ended in, after
    it what it ended in itself.
    """
    tail = messages[-tail_rows(policy) :]
    if not any_tools(tail):
        return None
    turns = _turns(tail)
    found = [spiral for spiral in (_repeats(turns, policy), _errors(turns, policy)) if spiral]
    return next((spiral for spiral in found if spiral.stage is Stage.ROTATE), found[0] if found else None)


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    turns = [Stretch()]
    names: dict[str, str] = {}
    for message in messages:
        if calls.is_request(message):
            turns = [*turns, Stretch()] if turns[-1].begun else turns
            continue
        turn = turns[-1]
        turn.begun = turn.begun or message.get("role") in ("assistant", "tool")
        made = list(calls.calls_of(message))
        names.update((call.id, call.name) for call in made)
        turn.calls += made
        if calls.is_result(message):
            turn.results.append(CallResult(calls.is_failed(message), calls.tool_of(message, names)))
    return turns if turns[-1].begun else turns[:-1]


def _repeats(turns: list[Stretch], policy: SessionResetPolicy) -> Spiral | None:
    limit = policy.spiral_repeats
    count = _run_length(turns[-1].calls) if limit and turns else 0
    if not limit or count < limit:
        return None
    warned = len(turns) > 1 and _run_length(turns[-2].calls) >= limit
    stage = Stage.ROTATE if warned or count >= PATIENCE * limit else Stage.WARN
    return Spiral(kind=SpiralKind.REPEAT, stage=stage, tool=turns[-1].calls[-1].name, count=count)


def _run_length(made: list[Call]) -> int:
    """How many calls at the end are the same."""
    count = 0
    for call in reversed(made):
        last = made[-1]
        if call.name != last.name:
            break
        if call.arguments != last.arguments and _canonical(call.arguments) != _canonical(last.arguments):
            break
        count += 1
    return count


def _canonical(arguments: str) -> str:
    """The arguments in one spelling; text that is no JSON stays as it is."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _errors(turns: list[Stretch], policy: SessionResetPolicy) -> Spiral | None:
    if not policy.spiral_errors or not _keeps_failing(turns, policy):
        return None
    window = _results(turns)[-policy.spiral_window :]
    failed = [result for result in window if result.failed]
    long = _mostly_failed(turns[-1].results, PATIENCE * policy.spiral_window, policy.spiral_errors)
    names = Counter(result.tool for result in failed if result.tool is not None)
    return Spiral(
        kind=SpiralKind.ERRORS,
        stage=Stage.ROTATE if long or _keeps_failing(turns[:-1], policy) else Stage.WARN,
        tool=min(names, key=lambda name: (-names[name], name), default=None),
        count=len(failed),
        share=len(failed) / len(window),
    )


def _keeps_failing(turns: list[Stretch], policy: SessionResetPolicy) -> bool:
    """Whether the results up to the end of the last turn are mostly errors, some of them from that turn."""
    if not turns or not any(result.failed for result in turns[-1].results):
        return False
    return _mostly_failed(_results(turns), policy.spiral_window, policy.spiral_errors)


def _mostly_failed(results: list[CallResult], window: int, share: float) -> bool:
    """Whether there are as many results as are looked at, and so many of them errors."""
    latest = results[-window:]
    return len(latest) == window and sum(result.failed for result in latest) / window >= share


def _results(turns: list[Stretch]) -> list[CallResult]:
    return [result for turn in turns for result in turn.results]
