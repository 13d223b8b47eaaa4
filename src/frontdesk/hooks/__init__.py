"""Hooks as they are configured and installed: commands first, then those of packages by name."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

from frontdesk import errors, plugins
from frontdesk.contracts.hooks import Commands, HookEvent, Hooks, LoadTranscript
from frontdesk.hooks.commands import CommandHooks
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
    """Several hooks as one, which cannot stop anything: told one after the other, also after one that could
    not be started."""

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


def open_hooks(
    commands: Commands | None = None, packages: Iterable[tuple[str, Hooks]] | None = None
) -> Hooks:
    """Everything that is to be told, as one; without ``packages``, those that are installed."""
    commands = commands or Commands()
    parts: list[Guarded] = []
    if commands.has_active_processes or any(commands.command_for(event) for event in HookEvent):
        parts.append(Guarded("commands", CommandHooks(commands)))
    for name, hooks in load_packages() if packages is None else packages:
        parts.append(Guarded(name, hooks, commands.timeout_seconds))
    return Chain(parts)


def load_packages() -> Iterator[tuple[str, Hooks]]:
    """Name and hooks of each, in the order of the names; one that cannot be loaded is an error."""
    for point in sorted(plugins.points("hook"), key=lambda point: point.name):
        yield point.name, _load(point)


def _load(point: EntryPoint) -> Hooks:
    """An entry point names a class, or a function without arguments, that makes the hooks."""
    try:
        hooks: Hooks = point.load()()
    except Exception as error:
        raise errors.BrokenHook(name=point.name, why=f"{type(error).__name__}: {error}") from error
    if missing := [event for event in HookEvent if not callable(getattr(hooks, event, None))]:
        raise errors.BrokenHook(name=point.name, why=f"there is no {missing[0]}")
    return hooks
