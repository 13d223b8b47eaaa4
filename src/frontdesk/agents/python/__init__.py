"""An agent that is a Python function, named as ``package.module:name`` and called with the turn and the line.

An async generator function gives texts and events; an async function gives the answer. A plain function
gives the answer, too, and runs in a thread of its own: it may block, but nobody can end it from outside, so
it should look at ``line.stopping`` now and then, and touch nothing else of the line. That is true after a
stop, and also once nobody waits for the answer any more.
"""

import asyncio
import contextvars
import importlib
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import aclosing
from functools import reduce
from typing import Any

import msgspec

from frontdesk import errors
from frontdesk.agents.bounds import Count
from frontdesk.contracts.agents import Abilities, Line
from frontdesk.logs import get_logger
from frontdesk.model import events

log = get_logger(__name__)

PASSING = (ConnectionError, TimeoutError, errors.AgentFailed)
"""What may be otherwise the next time."""
Function = Callable[..., Any]
Pieces = Callable[[events.Assignment, Line], AsyncGenerator[object, None]]


class PythonOptions(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    """`package.module:name`."""
    steers: bool = False
    """The function takes Steer signals from the line."""
    stops: bool = False
    """The function ends by itself when it is to stop. Otherwise it is cancelled where it waits."""
    models: bool = False
    """The function heeds the `model` of its turn. Otherwise nobody can choose one with /model."""
    sends: bool = False
    """The function has a way for whoever thinks in it to send messages (`Send`): it is told where to."""
    images: bool = False
    """The function takes images as parts of a message. Otherwise it is told where they lie."""
    max_threads: Count = 32
    """How many plain functions may run at once; one that was given up counts until it returns."""


Options = PythonOptions


class Threads:
    """Plain functions, each in a thread of its own that holds nobody up, not even the end of the program."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = threading.BoundedSemaphore(most)

    def calling(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """The function as an async one. Cancelled, it runs on unheard."""

        async def call(*arguments: Any) -> Any:
            if not self._free.acquire(blocking=False):
                raise errors.AgentFailed(why=f"{self._most} threads are at work already")
            future: Future[Any] = Future()
            future.set_running_or_notify_cancel()
            context = contextvars.copy_context()

            def work() -> None:
                try:
                    future.set_result(context.run(function, *arguments))
                except StopIteration:
                    future.set_exception(RuntimeError("the function raised StopIteration"))
                except BaseException as error:  # noqa: BLE001  # whoever waits for the function gets it
                    future.set_exception(error)
                finally:
                    self._free.release()

            threading.Thread(target=work, name="agent", daemon=True).start()
            return await asyncio.wrap_future(future)

        return call


class Driver:
    Options = PythonOptions

    def __init__(self, options: PythonOptions) -> None:
        """Import the function; AgentFailed when that cannot be done."""
        self._options = options
        self._pieces = pieces_of(load(options.target), Threads(options.max_threads))

    @property
    def abilities(self) -> Abilities:
        options = self._options
        able = {name: getattr(options, name) for name in ("steers", "stops", "models", "sends", "images")}
        return Abilities(paths=True, **able)

    async def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event, None]:
        try:
            async with aclosing(self._pieces(turn, line)) as pieces:
                async for piece in pieces:
                    event = _event(piece)
                    yield event
                    if isinstance(event, events.Done | events.Failed):
                        return
        except (Exception, SystemExit) as error:
            log.exception("agent_raised", target=self._options.target, turn=turn.turn_id)
            # Without the error's words, which may hold anything; they are in the log.
            message = f"the agent's function raised {type(error).__name__}; the log says more"
            yield events.Failed(message=message, retryable=isinstance(error, PASSING))
            return
        yield events.Done()

    async def release(self, session_id: str) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is open."""


def _event(piece: object) -> events.Event:
    if isinstance(piece, str):
        return events.Text(text=piece)
    if isinstance(piece, events.Event):
        return piece
    name = type(piece).__name__
    return events.Failed(message=f"the agent's function gave a value of type {name}, not a text or an event")


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
        try:
            answer = await call(turn, line)
        except asyncio.CancelledError:
            # Nobody waits for it any more; in its thread a plain function runs on until it looks.
            line.send(events.Stop())
            raise
        yield answer

    return pieces


def _is(kind: Callable[[object], bool], function: object) -> bool:
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004
