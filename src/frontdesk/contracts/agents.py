"""The agent: takes a turn, says what happens, listens meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, runtime_checkable

import msgspec

from frontdesk.model import events

MAX_SIGNALS = 1000


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent can do while it runs; what it cannot, the gateway does in another way."""

    steers: bool = False
    """Takes a Steer signal. Otherwise the message waits for its own turn."""
    stops: bool = False
    """Comes to an end by itself after a Stop signal. Otherwise its iterator is closed at once."""
    models: bool = False
    """Heeds the model that a session has chosen, or fails where it cannot. Otherwise none can be chosen."""
    sends: bool = False
    """Whoever thinks in it has a way to send messages besides the answer (`Send`): it is told where to."""
    images: bool = False
    """Is shown images of messages as parts of them."""
    paths: bool = False
    """Works on this machine, and is told where files of messages lie."""
    counts: bool = False
    """Tells what each call to a model used once it is over. What one that was cut short used is estimated."""


class Line(msgspec.Struct, eq=False):
    """The way back to a running agent: decisions, steering and the wish to stop."""

    _confirm: Callable[[], Awaitable[None]] | None = None
    _signals: "asyncio.Queue[events.Signal]" = msgspec.field(default_factory=asyncio.Queue)
    _stopping: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    _steered: set[str] = set()
    _listeners: list[Callable[[events.Signal], None]] = []

    async def confirm(self) -> None:
        """Return if the turn is still to be run here; LeaseLost when somebody else has it by now.

        It was when the agent was begun. An agent that takes a while to get ready, such as a program that is
        started, asks again right before it hands the turn over.
        """
        if self._confirm:
            await self._confirm()

    def send(self, signal: events.Signal) -> bool:
        """Whether there was room for it; there always is for a stop."""
        stops = isinstance(signal, events.Stop)
        if self._signals.qsize() >= MAX_SIGNALS and not stops:
            return False
        self._signals.put_nowait(signal)
        if stops:
            self._stopping.set()
        return True

    async def take(self) -> events.Signal:
        """The next signal, in the order of sending. A Steer is not heeded yet: `mark_steered` says so."""
        signal = await self._signals.get()
        for hear in self._listeners:
            hear(signal)
        return signal

    def overhear(self, hear: Callable[[events.Signal], None]) -> None:
        """From now on, be told of each signal that the agent takes."""
        self._listeners.append(hear)

    def mark_steered(self, turn_id: str) -> None:
        """The agent heeds this message: from now on it belongs to the turn that runs."""
        self._steered.add(turn_id)

    async def receive(self) -> events.Signal:
        """The next signal, for an agent that heeds whatever it receives."""
        signal = await self.take()
        if isinstance(signal, events.Steer):
            self.mark_steered(signal.id)
        return signal

    def has_steered(self, turn_id: str) -> bool:
        """Whether the agent heeds that message; one that it does not waits for its own turn."""
        return turn_id in self._steered

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def stopped(self) -> None:
        """Wait until the agent is to stop."""
        await self._stopping.wait()


@runtime_checkable
class Checkable(Protocol):
    """What an agent has besides that can say beforehand whether turns will work."""

    async def check(self, working_dir: str) -> str | None:
        """Try what a turn will need, without one. An error of ours says what is wrong and what to do, a text
        what is doubtful, None that all is well. Called by people who wait: it takes seconds at most."""


class Agent(Protocol):
    @property
    def abilities(self) -> Abilities: ...

    def run(self, turn: events.Assignment, line: Line) -> AsyncGenerator[events.Event]:
        """Run a turn. Closing the generator ends everything that was begun for it."""

    async def release(self, session_id: str) -> None:
        """Free whatever is held for a session, which may still come back."""

    async def close(self) -> None: ...
