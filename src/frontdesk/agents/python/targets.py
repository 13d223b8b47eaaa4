"""The function behind a name, as something that gives pieces."""

import importlib
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from frontdesk import errors
from frontdesk.agents.python.threads import Threads
from frontdesk.contracts.agents import Line
from frontdesk.model import events

Function = Callable[..., Any]
Pieces = Callable[[events.Assignment, Line], AsyncGenerator[object, None]]


def load(target: str) -> Function:
    """The function; AgentFailed when there is none of this name."""
    module, _, name = target.partition(":")
    if not module or not name:
        raise errors.InvalidSetting(key="target", value=target, allowed="package.module:name")
    try:
        found = reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise errors.AgentFailed(why=f"{target!r} cannot be imported ({error})") from error
    if not callable(found) or _is(inspect.isgeneratorfunction, found):
        raise errors.AgentFailed(why=f"{target!r} is no function or async generator function")
    function: Function = found
    return function


def pieces_of(function: Function, threads: Threads) -> Pieces:
    """The function as an async generator function, whatever kind it is."""
    if _is(inspect.isasyncgenfunction, function):
        return function
    call = function if _is(inspect.iscoroutinefunction, function) else threads.calling(function)

    async def pieces(turn: events.Assignment, line: Line) -> AsyncGenerator[object, None]:
        with heard(line) as kept:
            yield await call(turn, kept)

    return pieces


class Kept(Line):
    """A line that also says stop once nobody waits for the answer any more."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.given_up = False

    async def confirm(self) -> None:
        await self._line.confirm()

    def send(self, signal: events.Signal) -> bool:
        return self._line.send(signal)

    async def take(self) -> events.Signal:
        return await self._line.take()

    def mark_steered(self, turn_id: str) -> None:
        self._line.mark_steered(turn_id)

    def has_steered(self, turn_id: str) -> bool:
        return self._line.has_steered(turn_id)

    @property
    def stopping(self) -> bool:
        return self.given_up or self._line.stopping

    async def stopped(self) -> None:
        await self._line.stopped()


@contextmanager
def heard(line: Line) -> Iterator[Kept]:
    kept = Kept(line)
    try:
        yield kept
    finally:
        kept.given_up = True


def _is(kind: Callable[[object], bool], function: object) -> bool:
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004
