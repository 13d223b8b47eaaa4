"""Dying on purpose: parts of a gateway that kill their own process before or after a named step.

    crash = Crash("after:turns.finish:3")
    gateway = Gateway(SessionStore(fragile_store(store, crash)), agent, fragile_channels(channels, crash))

The process is killed as SIGKILL kills it: nothing is flushed, closed or said any more.
"""

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, cast

from frontdesk.contracts.channels import Channel
from frontdesk.stores.store import Store

TURN_STEPS = ("accept", "claim", "begin", "record", "finish", "rotate", "requeue", "recover")
DELIVERY_STEPS = ("claim", "settle")
STEPS = (
    *(f"turns.{name}" for name in TURN_STEPS),
    *(f"deliveries.{name}" for name in DELIVERY_STEPS),
    "channel.send",
    "agent.run",
)
"""Every step that a message takes through a gateway."""
STEPS_OF_BUTTONS = ("buttons.choose", "confirmations.vote")
"""Those that only a press takes."""
OPTIONAL = ("capabilities_in", "draft", "examine", "fetch", "find", "sign", "trouble")
"""What some channels have besides."""
STEPS_OF_FILES = ("files.keep", "shelf.write", "shelf.place")
"""Those that only one with files takes. Who has a shelf makes its steps with `Watched`."""


class When(StrEnum):
    BEFORE = "before"
    AFTER = "after"


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Crash:
    """When the process dies: ``before:turns.begin``, or ``after:channel.send:3``, which is the third time.

    A step that found nothing to do (a claim of nothing) has no after.
    """

    def __init__(self, order: str | None, die: Callable[[], None] = kill_self) -> None:
        when, _, rest = (order or "").partition(":")
        self._step, _, number = rest.partition(":")
        self._when = When(when) if order else None
        self._left = int(number or 1)
        self._die = die
        if order and self._step not in (*STEPS, *STEPS_OF_BUTTONS, *STEPS_OF_FILES):
            raise ValueError(f"no step is called {self._step!r}")

    def meet(self, when: When, step: str) -> None:
        if (when, step) != (self._when, self._step):
            return
        self._left -= 1
        if self._left == 0:
            self._die()

    async def around(
        self, step: str, work: Callable[..., Awaitable[Any]], *arguments: Any, **named: Any
    ) -> Any:
        """Do the work, and die where it was ordered."""
        self.meet(When.BEFORE, step)
        result = await work(*arguments, **named)
        if result != []:
            self.meet(When.AFTER, step)
        return result


class Watched:
    """Another object, some of whose methods are steps."""

    def __init__(self, inner: object, room: str, names: Sequence[str], crash: Crash) -> None:
        self._inner = inner
        self._room = room
        self._names = names
        self._crash = crash

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        step = f"{self._room}.{name}"
        return partial(self._crash.around, step, found) if name in self._names else found


class _FragileStore(Watched):
    def __init__(self, store: Store, crash: Crash) -> None:
        super().__init__(store, "store", (), crash)
        self.turns = Watched(store.turns, "turns", TURN_STEPS, crash)
        self.deliveries = Watched(store.deliveries, "deliveries", DELIVERY_STEPS, crash)
        self.buttons = Watched(store.buttons, "buttons", ("choose",), crash)
        self.confirmations = Watched(store.confirmations, "confirmations", ("vote",), crash)
        self.files = Watched(store.files, "files", ("keep",), crash)


def fragile_store(store: Store, crash: Crash) -> Store:
    return cast("Store", _FragileStore(store, crash))


def fragile_channels(channels: Sequence[Channel], crash: Crash) -> list[Channel]:
    return [_fragile_channel(channel, crash) for channel in channels]


def _fragile_channel(channel: Channel, crash: Crash) -> Channel:
    watched = Watched(channel, "channel", ("send",), crash)
    for name in OPTIONAL:
        if hasattr(channel, name):  # a protocol is found only where its methods stand, in newer Pythons
            setattr(watched, name, getattr(channel, name))
    return cast("Channel", watched)
