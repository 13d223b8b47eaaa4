"""Hooks: what outside parts are told about the life of sessions."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Protocol

import msgspec

from frontdesk.model.messages import Plain
from frontdesk.model.policies import EndReason
from frontdesk.model.sessions import SessionEntry

LoadTranscript = Callable[[], Awaitable[list[Plain]]]
"""Reads the transcript of the session, oldest message first; only whoever needs it pays for it."""


class HookEvent(StrEnum):
    """The names are those of the methods and of the settings."""

    START = "on_session_start"
    END = "on_session_end"
    FINALIZE = "on_session_finalize"


class Hooks(Protocol):
    """Told at least once of each event: after a crash it may be told again of what it has dealt with.

    Who raises `HookNotStarted` has not heard of the event, and is told again later.
    """

    async def on_session_start(self, entry: SessionEntry) -> None:
        """A session has begun."""

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        """A session has ended. It may still be resumed."""

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        """A session is about to be replaced: the place to save what is to be remembered."""

    async def has_active_processes(self, session_key: str) -> bool:
        """Whether work goes on for a conversation in the background. Asked before a policy would start it
        afresh, and before it is pruned."""


class NoHooks:
    """Hears of everything and does nothing: inherit from it and define what you want to hear of."""

    async def on_session_start(self, entry: SessionEntry) -> None:
        """A session has begun."""

    async def on_session_end(self, entry: SessionEntry, reason: EndReason) -> None:
        """A session has ended."""

    async def on_session_finalize(
        self, entry: SessionEntry, reason: EndReason, load_transcript: LoadTranscript
    ) -> None:
        """A session is about to be replaced."""

    async def has_active_processes(self, session_key: str) -> bool:  # noqa: ARG002
        """Whether work goes on for a conversation in the background."""
        return False


class Commands(msgspec.Struct, frozen=True, kw_only=True):
    """The programs to run, each with its arguments; an empty one is none."""

    on_session_start: tuple[str, ...] = ()
    on_session_end: tuple[str, ...] = ()
    on_session_finalize: tuple[str, ...] = ()
    has_active_processes: tuple[str, ...] = ()
    timeout_seconds: int = 30
    """How long each may take; a hook of a package may take as long."""

    def command_for(self, event: HookEvent) -> tuple[str, ...]:
        command: tuple[str, ...] = getattr(self, event)
        return command


async def tell(
    hooks: Hooks,
    event: HookEvent,
    entry: SessionEntry,
    reason: EndReason | None,
    load_transcript: LoadTranscript,
) -> None:
    """Tell of any event. A beginning has no reason."""
    match event, reason:
        case HookEvent.FINALIZE, EndReason():
            await hooks.on_session_finalize(entry, reason, load_transcript)
        case HookEvent.END, EndReason():
            await hooks.on_session_end(entry, reason)
        case _:
            await hooks.on_session_start(entry)


def idempotency_key(entry: SessionEntry, event: HookEvent) -> str:
    """The same for the same event of the same session, however often it is told."""
    return f"{entry.session_id}:{event}"
