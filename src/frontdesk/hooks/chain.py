"""Several hooks as one, and hooks that cannot stop anything."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from frontdesk import errors
from frontdesk.contracts.hooks import HookEvent, Hooks, LoadTranscript
from frontdesk.logs import get_logger
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import SessionEntry

Tell = Callable[[], Awaitable[None]]

log = get_logger(__name__)


class Chain:
    """Tells one after the other; all of them, also when one could not be started."""

    def __init__(self, parts: Sequence[Hooks]) -> None:
        self._parts = tuple(parts)

    async def on_session_start(self, entry: SessionEntry) -> None:
        await _each(partial(hooks.on_session_start, entry) for hooks in self._parts)

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        await _each(partial(hooks.on_session_end, entry, reason) for hooks in self._parts)

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        told = (entry, reason, load_transcript)
        await _each(partial(hooks.on_session_finalize, *told) for hooks in self._parts)

    async def has_active_processes(self, session_key: str) -> bool:
        for hooks in self._parts:
            if await hooks.has_active_processes(session_key):
                return True
        return False


async def _each(tellings: Iterable[Tell]) -> None:
    missed: errors.HookNotStarted | None = None
    for tell in tellings:
        try:
            await tell()
        except errors.HookNotStarted as error:
            missed = missed or error
    if missed:
        raise missed


class Guarded:
    """Hooks whose failures are logged and whose time, when ``seconds`` are given, is bounded.

    That one could not be started is for whoever tells it again.
    """

    def __init__(self, name: str, hooks: Hooks, seconds: float | None = None) -> None:
        self._name, self._hooks, self._seconds = name, hooks, seconds

    async def on_session_start(self, entry: SessionEntry) -> None:
        await self._guard(HookEvent.START, entry, partial(self._hooks.on_session_start, entry))

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        await self._guard(HookEvent.END, entry, partial(self._hooks.on_session_end, entry, reason))

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        tell = partial(self._hooks.on_session_finalize, entry, reason, load_transcript)
        await self._guard(HookEvent.FINALIZE, entry, tell)

    async def has_active_processes(self, session_key: str) -> bool:
        """Hooks that were written before there was this question know of no work. What goes wrong is raised:
        whoever asks takes it for a yes."""
        ask = getattr(self._hooks, "has_active_processes", None)
        async with asyncio.timeout(self._seconds):
            return ask is not None and bool(await ask(session_key))

    async def _guard(self, event: HookEvent, entry: SessionEntry, tell: Tell) -> None:
        facts = {"hook": self._name, "hook_event": str(event), "session": entry.session_id}
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                await tell()
        except errors.HookNotStarted:
            raise
        except Exception:
            if limit.expired():
                log.warning("hook_timed_out", seconds=self._seconds, **facts)
            else:
                log.exception("hook_raised", **facts)
