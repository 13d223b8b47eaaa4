"""Several hooks as one, which cannot stop anything."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from frontdesk import errors
from frontdesk.contracts.hooks import HookEvent, Hooks, LoadTranscript
from frontdesk.logs import get_logger
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import SessionEntry

log = get_logger(__name__)


class Guarded(NamedTuple):
    """Hooks whose failures are logged and whose time, when ``seconds`` are given, is bounded.

    That one could not be started is for whoever tells it again.
    """

    name: str
    hooks: Hooks
    seconds: float | None = None

    async def tell(self, event: HookEvent, entry: SessionEntry, *more: Any) -> None:
        facts = {"hook": self.name, "hook_event": str(event), "session": entry.session_id}
        limit = asyncio.timeout(self.seconds)
        try:
            async with limit:
                await getattr(self.hooks, event)(entry, *more)
        except errors.HookNotStarted:
            raise
        except Exception:
            if limit.expired():
                log.warning("hook_timed_out", seconds=self.seconds, **facts)
            else:
                log.exception("hook_raised", **facts)

    async def has_active_processes(self, session_key: str) -> bool:
        """Hooks that were written before there was this question know of no work. What goes wrong is raised:
        whoever asks takes it for a yes."""
        ask = getattr(self.hooks, "has_active_processes", None)
        async with asyncio.timeout(self.seconds):
            return ask is not None and bool(await ask(session_key))


class Chain:
    """Tells one after the other; all of them, also when one could not be started."""

    def __init__(self, parts: Sequence[Guarded]) -> None:
        self._parts = tuple(parts)

    async def on_session_start(self, entry: SessionEntry) -> None:
        await self._tell(HookEvent.START, entry)

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        await self._tell(HookEvent.END, entry, reason)

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        await self._tell(HookEvent.FINALIZE, entry, reason, load_transcript)

    async def has_active_processes(self, session_key: str) -> bool:
        for part in self._parts:
            if await part.has_active_processes(session_key):
                return True
        return False

    async def _tell(self, event: HookEvent, entry: SessionEntry, *more: Any) -> None:
        missed: errors.HookNotStarted | None = None
        for part in self._parts:
            try:
                await part.tell(event, entry, *more)
            except errors.HookNotStarted as error:
                missed = missed or error
        if missed:
            raise missed
